"""What people are told about `marginals`."""

from __future__ import annotations

from service.methods.interface import Card, Measured
from service.privacy.events import MARGINALS, ONE_WAY_TABLES, PAIR_SCORES, SHARED_VALUES

RELEASES = {
    ONE_WAY_TABLES: Measured("one-way tables: counts of the cells of each column", "{rows} in each table"),
    PAIR_SCORES: Measured("for each pair of columns, how far its counts are from independent", "{rows} in each score"),
    MARGINALS: Measured("one-way or two-way tables: counts of cells", "{rows} in each table"),
    SHARED_VALUES: Measured("counts of single values of columns that are ranges", "{rows} in each column"),
}

CARD = Card(
    summary="Noisy one- and two-way marginals are measured once, and a mixture of product distributions is fitted to them.",
    makes="a mixture of simple distributions, written as a network, that was fitted to noised counts of",
    source="McKenna, Miklau, Sheldon 2021 (select, measure, generate); docs/decisions",
    paper_holds="Nothing is trained on rows: the whole analysis is that of Gaussian releases of counts (docs/privacy.md).",
    releases=RELEASES,
)
