"""What an order of autoencoders leaves open, settled from the declared schema and n alone."""

from __future__ import annotations

from typing import TypeVar

from service.base.errors import InvalidOrder
from service.base.messages import Message, whole
from service.domain.shapes import ImageShape
from service.methods.conditions import MAX_STRATA, categories_of, condition_of
from service.methods.dpgm.order import AutoencoderOrder
from service.methods.facts import Facts
from service.methods.idpgan.images import LABEL
from service.methods.knobs import rate_of

A = TypeVar("A", bound=AutoencoderOrder)

MOST_PIXELS = 32 * 32 * 3
"""The networks are perceptrons with one hidden layer."""


def resolve(order: A, facts: Facts) -> A:
    """Condition and sampling probability; `InvalidOrder` where these networks cannot make such data."""
    shape = facts.shape(order.numeric_bins)
    if isinstance(shape, ImageShape):
        if shape.pixels > MOST_PIXELS:
            raise InvalidOrder(
                Message(
                    "method: this one makes images of at most %(most)s numbers; method: mixture takes larger ones",
                    most=whole(MOST_PIXELS),
                ),
                where="method",
            )
        condition = LABEL if shape.classes > 1 else None
    else:
        condition = condition_of(order, shape)
        if categories_of(condition, shape) > MAX_STRATA:
            raise InvalidOrder(
                Message("condition_on: this method makes rows for at most %(most)s values", most=MAX_STRATA),
                where="condition_on",
            )
        if not shape.cells.keys() - {condition}:
            raise InvalidOrder(Message("method: this one needs a column beside the condition"), where="method")
    q = rate_of(order.sampling_probability, facts.units)
    return order.model_copy(update={"condition_on": condition, "sampling_probability": q})
