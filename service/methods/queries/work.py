"""How much it is to answer questions: passes over the columns that they read."""

from __future__ import annotations

from service.methods.facts import Facts
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.methods.queries.check import MOST_CELLS
from service.methods.queries.lattice import MOST_CANDIDATES
from service.methods.queries.order import Quantiles, QueriesOrder
from service.methods.work import Work

NUMBER = 8
"""Bytes of a value while questions are answered."""


def estimate(order: QueriesOrder, facts: Facts) -> Work:
    """Every question goes over all rows, whatever its conditions."""
    shape = facts.table(DEFAULT_NUMERIC_BINS)
    rows = float(facts.units) * shape.max_rows_per_unit
    columns = len({name for question in order.questions for name in question.columns_read})
    passes = sum(2.0 + 2.0 * len(question.columns_read) for question in order.questions)
    quantiles = sum(len(each.probabilities) for each in order.questions if isinstance(each, Quantiles))
    return Work(
        elements=20.0 * rows * columns + 10.0 * rows * passes,
        draws=min(float(MOST_CELLS), rows) * len(order.questions),
        calls=float(len(order.questions)) + quantiles * MOST_CANDIDATES / 40.0,
        memory_bytes=NUMBER * rows * (columns + 6.0),
    )
