"""What people are told about `marginals`."""

from __future__ import annotations

from service.methods.interface import Card, Measured
from service.methods.marginals.price import MARGINALS, ONE_WAY_TABLES, PAIR_SCORES, SHARED_VALUES, VALUE_TREES

RELEASES = {
    VALUE_TREES: Measured(
        "counts of parts of the ranges that declare no bins, level by level down to single values",
        "{rows} in each level of each column",
    ),
    ONE_WAY_TABLES: Measured("one-way marginals: counts of the bins of each column", "{rows} in each marginal"),
    PAIR_SCORES: Measured(
        "for each pair of columns, how far its counts are from those of independent columns", "{rows} in each score"
    ),
    MARGINALS: Measured("one-way or two-way marginals: counts of bins", "{rows} in each marginal"),
    SHARED_VALUES: Measured("counts of single values of columns that are ranges", "{rows} in each column"),
}

CARD = Card(
    summary="Noisy one- and two-way marginals are measured once; a mixture of product distributions is fitted to them.",
    makes="a mixture of product distributions, written as a network and fitted to noisy marginals",
    source="McKenna, Miklau, Sheldon 2021 (select, measure, generate); docs/decisions",
    paper_holds="Nothing is trained on rows: the whole analysis is that of Gaussian releases of counts and scores (docs/privacy.md).",
    releases=RELEASES,
    cannot_learn=(
        "Interactions of many columns that show in no pair of them, at any ε: it measures pairs of columns, at most within each value "
        "of the column that the order conditions on. If a label is the parity of five columns, all these tables look independent, and "
        "classifiers learn nothing from the synthetic label."
    ),
)
