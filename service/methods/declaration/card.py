"""What people are told about `declaration`."""

from __future__ import annotations

from service.methods.declaration.price import BOUND, CATEGORIES
from service.methods.interface import Card, Measured

RELEASES = {
    BOUND: Measured(
        "an end of a column's range: a value of a public grid, by how many rows lie beyond it",
        "{rows} times the larger of p and 1 - p, p the part of the rows that is to lie beyond it",
    ),
    CATEGORIES: Measured(
        "values of a column whose noisy number of rows is above a threshold", "{rows} in the counts of all values"
    ),
}

CARD = Card(
    summary="Bounds and categories that the owner did not declare are bought from the rows, and are the dataset's declaration from then on.",
    makes="bounds and categories of columns, chosen with noise, which the dataset's declaration says from now on",
    source="McSherry and Talwar 2007 and Smith 2011 (quantiles); Korolova et al. 2009 (values above a threshold)",
    paper_holds="Those of the mechanisms named, as docs/privacy.md restates them for zeroed-out units of several rows.",
    releases=RELEASES,
    cannot_learn="Values that few units share: they are clamped to the bounds, or counted as the category for all others.",
)
