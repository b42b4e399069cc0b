"""`method: declaration`: what is bought, as the schema says it."""

from __future__ import annotations

import math
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.base.messages import Message
from service.domain.inferred import End
from service.methods.knobs import Knobs, Order


class Purchase(Knobs):
    """Of one column, its categories or these ends of its range."""

    column: Annotated[str, Field(description="Its name.")]
    ends: Annotated[tuple[End, ...], Field(description="Those of its range that are bought; none: its categories.")]
    epsilon: Annotated[float, Field(description="As the schema says it.")]
    candidates: Annotated[int, Field(description="Values that each end is chosen from.")] = 0


class DeclarationOrder(Order):
    """Buy the bounds and categories that the schema leaves open (`infer`). Nothing else can be ordered before; it is bought once."""

    method: Literal["declaration"]
    purchases: Annotated[
        tuple[Purchase, ...] | None,
        Field(description="Filled in from the schema; leave it out. So is epsilon: the schema says it of each column."),
    ] = None

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        if self.share is not None:
            raise ValueError(Message("leave out share: the schema says the epsilon of each column"))
        return self

    @property
    def total(self) -> float:
        """The epsilon of all purchases."""
        return math.fsum(one.epsilon for one in self.purchases or ())
