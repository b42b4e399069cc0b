"""What people are told about `queries`."""

from __future__ import annotations

from service.methods.interface import Card, Measured
from service.methods.queries.price import COUNTS, KEYS, LARGEST, MEAN_COUNT, MEAN_SUM, MEDIAN, QUANTILE, SUM

RELEASES = {
    COUNTS: Measured("numbers of rows, of all cells of a question together", "{rows} in all counts"),
    SUM: Measured(
        "sum of a column on its public lattice", "{rows} times the larger end of the declared range, in absolute value"
    ),
    MEAN_COUNT: Measured("number of rows that have a value", "{rows}"),
    MEAN_SUM: Measured(
        "sum of a column about the middle of its range, on its public lattice", "{rows} times half of the range"
    ),
    QUANTILE: Measured(
        "a value of a public grid, by how many rows lie below it",
        "{rows} times the larger of p and 1 - p, p the probability of the quantile",
    ),
    LARGEST: Measured(
        "the most frequent cell, and no count",
        "{rows}/2: a unit that is zeroed out lowers counts only, so the score needs no factor of 2",
    ),
    MEDIAN: Measured(
        "median on the public lattice, with Cauchy noise of 6/epsilon times the smooth sensitivity",
        "its β-smooth local sensitivity, β = epsilon/6",
    ),
    KEYS: Measured(
        "combinations of values whose noisy number of rows is above a threshold", "{rows} in the counts of all keys"
    ),
}

CARD = Card(
    summary="Each question is answered once from the rows, with noise of its own kind.",
    makes="answers to questions about the private rows: numbers with noise, and how far off they may be",
    source="Dwork and Roth 2014; Ghosh et al. 2012 (geometric noise); McSherry and Talwar 2007 (quantiles, most frequent value); "
    "Nissim et al. 2007 (median); Korolova et al. 2009 (keys)",
    paper_holds="Those of the mechanisms named, as docs/privacy.md restates them for zeroed-out units of several rows.",
    releases=RELEASES,
)
