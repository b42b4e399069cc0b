"""What a field may say instead of bounds or categories: that they are to be bought from the rows, and afterwards that they were.

A column with `infer` is open: its values are checked for their type alone, and nothing is ordered from the dataset but its
`declaration` (docs/decisions/0049-bought-declarations.md). What that order found stands in the constraints, and `bought` beside them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

from service.base.messages import Message
from service.domain.bounds import is_unicode

OTHER = "other"
MOST_CHARACTERS = 200
"""Of a category that is bought; a longer text counts as another one."""

WIDEST: dict[str, tuple[Any, Any]] = {
    "integer": (-(2**53), 2**53),
    "number": (-(2**53), 2**53),
    "date": ("1600-01-01", "2400-01-01"),
    "datetime": ("1600-01-01T00:00:00+00:00", "2400-01-01T00:00:00+00:00"),
}
"""What bounds are looked for in, by type; values outside it are moved to its ends."""

End = Literal["minimum", "maximum"]
ENDS: tuple[End, End] = ("minimum", "maximum")


class Infer(BaseModel):
    """That the declaration of a column is to be bought, and for how much."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    epsilon: Annotated[float, Field(ge=1e-3, le=100.0)]
    """Its part of the price of the order `declaration`."""
    other: Annotated[str | None, Field(min_length=1, max_length=MOST_CHARACTERS)] = None
    """Of a string column: the category of all values that are too rare to be told. Default: other."""


class Bought(BaseModel):
    """That it was bought: for how much, by which release, and which words of the constraints. Written by the service alone."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epsilon: float
    release: str
    words: tuple[Literal["minimum", "maximum", "enum"], ...]
    events: tuple[dict[str, Any], ...]
    """Of the price list that was charged."""
    other: str | None = None


class InferringField(Protocol):
    """What of a field is checked."""

    @property
    def type(self) -> str: ...
    @property
    def infer(self) -> Infer | None: ...
    @property
    def bought(self) -> Bought | None: ...
    @property
    def role(self) -> str | None: ...
    @property
    def hierarchy(self) -> Any: ...
    @property
    def edges(self) -> Any: ...
    @property
    def bins(self) -> int | None: ...
    @property
    def constraints(self) -> Any: ...


def check_infer(field: InferringField) -> None:
    """Raise a ValueError where the words of a field do not go together with `infer`."""
    infer = field.infer
    if infer is None:
        return
    if field.bought is not None:
        raise ValueError(Message("infer: these constraints were bought already; leave out infer"))
    if field.role is not None or field.hierarchy is not None:
        other = "role" if field.role is not None else "hierarchy"
        raise ValueError(
            Message("infer: a column with a %(other)s has nothing to buy; leave out infer or %(other)s", other=other)
        )
    if field.type == "boolean":
        raise ValueError(Message("infer: a boolean column has two values, true and false; leave it out"))
    if field.constraints.enum is not None:
        raise ValueError(Message("infer: the enum says all values already; leave out infer or constraints.enum"))
    if field.type == "string":
        _check_categories(field, infer)
    else:
        _check_range(field, infer)


def _check_categories(field: InferringField, infer: Infer) -> None:
    says = field.constraints
    if says.minimum is not None or says.maximum is not None or field.bins or field.edges:
        raise ValueError(Message("a string column has no range; infer buys its categories"))
    _check_other(infer.other)


def _check_range(field: InferringField, infer: Infer) -> None:
    says = field.constraints
    if infer.other is not None:
        raise ValueError(Message("infer.other: this is for string columns, whose categories are bought"))
    if says.minimum is not None and says.maximum is not None:
        raise ValueError(
            Message("infer: minimum and maximum are declared already; leave out infer, or the one that is to be bought")
        )
    if field.edges is not None:
        raise ValueError(Message("infer: edges say the bounds already; leave out infer, or give bins instead of edges"))


def _check_other(other: str | None) -> None:
    if other is None:
        return
    if not other.isprintable() or other != other.strip() or not is_unicode(other):
        raise ValueError(Message("infer.other must be printable and not begin or end with a space"))
