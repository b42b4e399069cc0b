"""What an order of a declaration leaves open: everything, and the schema says it."""

from __future__ import annotations

import math

from service.base.errors import InvalidOrder
from service.base.messages import Figure, Message
from service.methods.declaration.order import DeclarationOrder, Purchase
from service.methods.facts import Facts
from service.methods.knobs import DEFAULT_NUMERIC_BINS


def resolve(order: DeclarationOrder, facts: Facts) -> DeclarationOrder:
    """The order with its purchases, and their ε, as the schema says them."""
    purchases = tuple(
        Purchase(column=one.name, ends=one.ends, epsilon=one.epsilon, candidates=one.candidates)
        for one in facts.table(DEFAULT_NUMERIC_BINS).open_columns
    )
    resolved = order.model_copy(update={"purchases": purchases})
    if order.epsilon is not None and not math.isclose(order.epsilon, resolved.total, rel_tol=1e-9):
        raise InvalidOrder(
            Message(
                "epsilon: the schema gives these purchases %(total)s in all; leave epsilon out, or replace the declaration "
                "while nothing is ordered (PUT /v1/datasets/{id}/declaration)",
                total=Figure(f"{resolved.total:g}"),
            ),
            where="epsilon",
        )
    return resolved.model_copy(update={"epsilon": resolved.total})
