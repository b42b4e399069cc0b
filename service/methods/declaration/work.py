"""How much it is to buy a declaration: a pass or two over the columns that are open."""

from __future__ import annotations

from service.methods.declaration.order import DeclarationOrder
from service.methods.facts import Facts
from service.methods.knobs import DEFAULT_NUMERIC_BINS
from service.methods.work import Work

BYTES_OF_A_TEXT = 120
"""And of its place among all, at most, on average."""


def estimate(order: DeclarationOrder, facts: Facts) -> Work:
    """The work of all purchases, estimated as that of questions."""
    shape = facts.table(DEFAULT_NUMERIC_BINS)
    rows = float(facts.units) * shape.max_rows_per_unit
    purchases = order.purchases or ()
    ends = sum(len(one.ends) for one in purchases)
    texts = sum(not one.ends for one in purchases)
    candidates = sum(one.candidates * len(one.ends) for one in purchases)
    return Work(
        elements=20.0 * rows * len(purchases) + 10.0 * rows * (ends + 3.0 * texts),
        draws=rows * texts,
        calls=1.0 + ends + candidates / 40.0,
        memory_bytes=rows * (8.0 * (len(purchases) + 4.0) + BYTES_OF_A_TEXT * texts),
    )
