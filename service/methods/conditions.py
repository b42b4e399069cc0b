"""The condition of an order of a table: the field within whose values rows are made."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.shapes import TableShape
from service.methods.knobs import AnyOrder

MAX_STRATA = 64
"""Every value of the condition has a mixture of its own, fitted to its own marginals. A target of more values is a column like the others."""


def condition_of(order: AnyOrder, shape: TableShape) -> str | None:
    """The field that the order names, or the schema's target unless it has too many values or rows are for tables."""
    if order.condition_on is not None or order.purpose == "tables":
        return order.condition_on
    target = shape.target if categories_of(shape.target, shape) <= MAX_STRATA else None
    if order.purpose == "classifiers" and target is None:
        raise InvalidOrder(
            Message(
                "purpose: classifiers need something to predict, a `target` of at most %(max_strata)s categories in "
                "the schema or condition_on in the order",
                max_strata=MAX_STRATA,
            ),
            where="purpose",
        )
    return target


def categories_of(condition: str | None, shape: TableShape) -> int:
    """How many categories a condition has, a missing one included; 1 without a condition, or where the field is not known."""
    return 1 if condition is None else shape.cells.get(condition, 1)


def nothing_to_predict(where: str, choose: str) -> InvalidOrder:
    """The refusal of an order that needs a target and has none; `choose` says which there are."""
    sentence = Message(
        "%(where)s: a classifier needs a column of categories to predict; %(choose)s", where=where, choose=choose
    )
    return InvalidOrder(sentence, where=where)
