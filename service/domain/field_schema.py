"""One declared column: its name, its type, a closed public domain, and how its values are spelled.

`bins` and `edges` are our extension of Table Schema for public grids. How values are spelled in text is in `spellings.py`, words that are
refused in `table_words.py`, columns that no model learns in `roles.py`.
"""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, field_validator, model_validator

from service.base.messages import Message
from service.domain.bounds import a_kind, as_number, check_storable
from service.domain.inferred import OTHER, WIDEST, Bought, Infer, check_infer
from service.domain.roles import Fine, Role, check_role, fine_shares
from service.domain.spellings import (
    SpelledField,
    check_spelling,
    check_two_digit_years,
    texts_of,
)
from service.domain.table_words import DeclaredValues
from service.domain.zones import offsets_of

MAX_CATEGORIES = 10_000
MAX_BINS = 1_024

SECONDS_OF = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}

RESOLUTIONS = {
    "second": Message("second"),
    "minute": Message("minute"),
    "hour": Message("hour"),
    "day": Message("day"),
}

FieldType = Literal["string", "integer", "number", "boolean", "date", "datetime"]
Scalar = str | int | float | bool


class Constraints(BaseModel):
    """The part of Frictionless constraints that closes a column's domain. Others are refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    required: bool = False
    enum: tuple[Scalar, ...] | None = None
    minimum: Scalar | None = None
    maximum: Scalar | None = None
    pattern: str | None = None


class ValueRange(BaseModel):
    """From minimum to maximum, both included; without one of them, to the end of the declared range."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    minimum: Scalar | None = None
    maximum: Scalar | None = None


Values = Annotated[tuple[Scalar | None, ...], Field(min_length=1)]


def _kind_of(condition: Any) -> str:
    return "range" if isinstance(condition, dict | ValueRange) else "values"


Condition = Annotated[Annotated[Values, Tag("values")] | Annotated[ValueRange, Tag("range")], Discriminator(_kind_of)]
"""On one column: one of these values (None: missing), or a value in this range."""


def has_at_most(decimals: int, value: object) -> bool:
    """Whether it is a number with no more digits after the point."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return False
    return round(Decimal(repr(value)), decimals) == Decimal(repr(value))


def _check_whole_hours(zone: str, low: float, high: float) -> None:
    offsets = offsets_of(zone)
    ends = [*(offset.start for offset in offsets[1:]), math.inf]
    if any(one.seconds % 3_600 for one, end in zip(offsets, ends, strict=True) if one.start <= high and low < end):
        raise ValueError(
            Message("hours of %(zone)s are no whole hours of UTC: write minutes (%%M) into the format, too", zone=zone)
        )


WORDS_OF_A_DOMAIN = frozenset(
    {
        *("constraints", "decimals", "resolution", "bins", "edges", "infer", "format", "timezone"),
        *("decimalChar", "groupChar", "bareNumber", "prefix", "suffix", "negative", "trailingZeros"),
        *("trueValues", "falseValues", "hierarchy", "pattern", "placeholder"),
    }
)
"""What a field says of its values. None of it stays where another type or role is chosen."""


class FieldSchema(SpelledField):
    """One column: name, type, a closed public domain, and how its values are spelled."""

    name: Annotated[str, Field(min_length=1, max_length=200)]
    type: FieldType
    constraints: Constraints = Constraints()
    title: str | None = None
    description: str | None = None
    rdf_type: Annotated[Any, Field(alias="rdfType", exclude=True)] = None
    example: Annotated[Any, Field(exclude=True)] = None
    bins: Annotated[int, Field(ge=1, le=MAX_BINS)] | None = None
    """Number of equal-width cells of the public grid (integer, number, date, datetime); default chosen by the encoder."""
    decimals: Annotated[int, Field(ge=0, le=15)] | None = None
    """Digits after the point that values of a number column have, for example 2 for money; of an integer, zeros that are written there. Our extension."""
    resolution: Literal["second", "minute", "hour", "day"] | None = None
    """What moments of a datetime column are whole multiples of, since 1970-01-01 UTC; our extension."""
    edges: tuple[float, ...] | None = None
    """Explicit, increasing cell edges instead of `bins` (integer and number only); first and last equal the bounds."""
    role: Role | None = None
    """Of a column that no model learns; our extension."""
    pattern: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    """By which the values of an identifier are made anew: `uuid`, or as P[0-9]{6}."""
    placeholder: Annotated[str | None, Field(max_length=1_000)] = None
    """What stands in a synthetic row for a free text; without it the column is left out."""
    hierarchy: Fine | None = None
    """Of a string column, coarse categories, which are modelled, and of each the finer ones; our extension."""
    infer: Infer | None = None
    """Bounds or categories are to be bought from the rows; our extension."""
    bought: Bought | None = None
    """They were. No owner declares this."""

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError(Message("a column name must be printable and not begin or end with a space"))
        return name

    @model_validator(mode="after")
    def _is_spelled_as_its_type(self) -> FieldSchema:
        check_spelling(self, self.type)
        if self.strptime_pattern is not None and (self.constraints.minimum is not None or self.infer is not None):
            check_two_digit_years(self.strptime_pattern, *self.first_and_last_day)
        if self.resolution == "day" and self.timezone not in {None, "UTC"}:
            raise ValueError(
                Message("resolution: days begin at midnight UTC; with a timezone write hour, or type date")
            )
        return self

    @model_validator(mode="after")
    def _closed_domain(self) -> FieldSchema:
        check_infer(self)
        return self if check_role(self) else self._with_closed_domain()

    def _with_closed_domain(self) -> FieldSchema:
        enum = self.constraints.enum
        if enum is not None:
            self._check_enum(enum)
            if self._says_a_range:
                raise ValueError(Message("give either enum or a range (minimum, maximum, bins, edges), not both"))
        elif self.type == "string" and self.hierarchy is None and self.infer is None:
            raise ValueError(Message("a string column needs constraints.enum: the categories must be declared"))
        elif not self.is_categorical:
            low, high = self.bounds
            if not low < high:
                raise ValueError(Message("constraints.minimum must be below constraints.maximum"))
        if self.type == "boolean" and self._says_a_range:
            raise ValueError(Message("a boolean column has no range"))
        if self.edges is not None:
            self._check_edges(self.edges)
        self._check_decimals()
        self._check_steps()
        return self

    def _check_decimals(self) -> None:
        """Of an enum they say how its values are written, so none may have more."""
        words = (self.decimals, self.decimal_char, self.trailing_zeros)
        if self.type == "integer" and any(word is not None for word in words) and not self._writes_zeros:
            raise ValueError(
                Message(
                    "an integer has no decimals: leave out decimals, decimalChar and trailingZeros; where it is written "
                    'as 3.0, say "decimals": 1, "trailingZeros": true'
                )
            )
        if self.decimals is None:
            if self.trailing_zeros:
                raise ValueError(Message("trailingZeros: say how many digits are written after the point, in decimals"))
            return
        if self.type not in {"integer", "number"}:
            raise ValueError(Message("decimals are for number columns"))
        for value in self.constraints.enum or ():
            if not has_at_most(self.decimals, value):
                raise ValueError(
                    Message(
                        "the enum has a value with more than %(decimals)s decimals: %(value)s",
                        decimals=self.decimals,
                        value=repr(value),
                    )
                )

    def _check_steps(self) -> None:
        """Moments come out as they are written, no finer."""
        if self.resolution is not None and self.type != "datetime":
            raise ValueError(Message("resolution is for datetime columns"))
        if self.resolution is not None and SECONDS_OF[self.resolution] < self.written_step:
            raise ValueError(
                Message(
                    "the format does not write every %(resolution)s: add %%H, %%M or %%S to it, or declare a coarser "
                    "resolution",
                    resolution=RESOLUTIONS[self.resolution],
                )
            )
        if self.type == "datetime" and self.timezone is not None and self.written_step % 3_600 == 0:
            _check_whole_hours(self.timezone, *self.bounds)

    @property
    def _writes_zeros(self) -> bool:
        return bool(self.trailing_zeros and self.decimals)

    @property
    def decimals_of_values(self) -> int | None:
        """The declared decimals; None of an integer, which may be written with decimals but has none."""
        return self.decimals if self.type == "number" else None

    @property
    def _says_a_range(self) -> bool:
        c = self.constraints
        return c.minimum is not None or c.maximum is not None or bool(self.bins) or bool(self.edges)

    def _check_enum(self, enum: tuple[Scalar, ...]) -> None:
        if not 1 <= len(enum) <= MAX_CATEGORIES:
            raise ValueError(
                Message("enum needs between 1 and %(max_categories)s values", max_categories=MAX_CATEGORIES)
            )
        if self.type in {"boolean", "date", "datetime"}:
            instead = (
                Message("leave it out")
                if self.type == "boolean"
                else Message("write minimum and maximum, or type string with these texts")
            )
            raise ValueError(
                Message("enum is not supported for %(type)s columns: %(instead)s", type=self.type, instead=instead)
            )
        expected: tuple[type, ...] = {"string": (str,), "integer": (int,), "number": (int, float)}[self.type]
        if any(isinstance(v, bool) or not isinstance(v, expected) for v in enum):
            quoted = Message(': write codes in quotes, as "0311"') if self.type == "string" else ""
            raise ValueError(
                Message(
                    "every enum value of %(kind)s column must be %(kind)s%(quoted)s",
                    kind=a_kind(self.type),
                    quoted=quoted,
                )
            )
        check_storable(enum)
        if len(set(enum)) != len(enum):
            raise ValueError(Message("enum repeats a value"))
        if self.type == "string" and any("\x00" in str(v) for v in enum):
            raise ValueError(Message("enum values must not contain NUL"))

    def _check_edges(self, edges: tuple[float, ...]) -> None:
        if self.type not in {"integer", "number"}:
            raise ValueError(Message("edges are for integer and number columns; use bins"))
        if self.bins is not None:
            raise ValueError(Message("give bins or edges, not both"))
        if not 2 <= len(edges) <= MAX_BINS + 1 or any(not a < b for a, b in pairwise(edges)):
            raise ValueError(Message("edges must increase and number between 2 and 1025"))
        if (edges[0], edges[-1]) != self.bounds:
            raise ValueError(Message("the first and last edge must equal minimum and maximum"))

    @property
    def categories(self) -> tuple[Scalar, ...] | None:
        """The declared values in the order of their codes, from 0; None of a range. A missing value, if any, has the code after them."""
        if self.hierarchy is not None:
            return tuple(fine_shares(self.hierarchy))
        if self.infer is not None and self.type == "string":
            return (self.infer.other or OTHER,)  # until others are bought
        return (False, True) if self.type == "boolean" else self.constraints.enum

    @property
    def other(self) -> str | None:
        """The category that stands for all values that are not among bought categories; None where nothing was bought."""
        return None if self.bought is None else self.bought.other

    @property
    def is_categorical(self) -> bool:
        return self.categories is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """Declared minimum and maximum as numbers: dates as days, datetimes as seconds since 1970-01-01 (UTC)."""
        low, high = self.constraints.minimum, self.constraints.maximum
        if self.infer is not None and self.type in WIDEST:  # until they are bought
            widest = WIDEST[self.type]
            low, high = widest[0] if low is None else low, widest[1] if high is None else high
        if low is None or high is None:
            raise ValueError(
                Message(
                    "%(type)s column needs constraints.minimum and constraints.maximum (or an enum)",
                    type=a_kind(self.type),
                )
            )
        return self.number_of(low), self.number_of(high)

    def number_of(self, value: Scalar) -> float:
        """A bound as a number; raises a ValueError where it is none of this type."""
        return as_number(self.type, value, self.zone)

    @property
    def declared_values(self) -> DeclaredValues:
        bounds = None if self.is_categorical or self.type in {"date", "datetime"} else self.bounds
        texts = {str(bound) for bound in (self.constraints.minimum, self.constraints.maximum) if isinstance(bound, str)}
        if self.spells_booleans:
            texts = {text for truth in (True, False) for text in texts_of(self, truth=truth)}
        elif self.type == "boolean":
            texts = {"true", "false", "0", "1"}
        enum = self.categories if self.infer is not None else self.constraints.enum
        return DeclaredValues(self.name, self.type, enum, bounds, frozenset(texts))

    @property
    def first_and_last_day(self) -> tuple[dt.date, dt.date]:
        """The first and last day of the range of a date or datetime column, as its zone counts days."""
        if self.type == "date":
            low, high = (dt.date(1970, 1, 1) + dt.timedelta(days=bound) for bound in self.bounds)
            return low, high
        first, last = (dt.datetime.fromtimestamp(bound, self.zone).date() for bound in self.bounds)
        return first, last

    @property
    def step(self) -> int:
        """Whole values of a range are multiples of it: 1, or of a datetime the seconds of its resolution."""
        if self.type != "datetime":
            return 1
        return self.written_step if self.resolution is None else SECONDS_OF[self.resolution]

    def check_condition(self, condition: Condition) -> None:
        """Raise a ValueError if this can be no condition on the column."""
        if isinstance(condition, ValueRange):
            self._check_range(condition)
            return
        if None in condition and self.constraints.required:
            raise ValueError(Message("%(name)s is required, so that no value of it is missing", name=self.name))
        values = [value for value in condition if value is not None]
        if values and not self.is_categorical:
            raise ValueError(
                Message("%(name)s has a range: give minimum, maximum or both instead of values", name=self.name)
            )
        declared = frozenset(self.categories or ())  # equal as in a list: 1 is in it if True is
        for value in values:
            # True is 1 in Python, and 1 is 1.0.
            is_of_type = isinstance(value, bool) == (self.type == "boolean")
            is_of_type &= not (isinstance(value, float) and self.type == "integer")
            if value not in declared or not is_of_type:
                raise ValueError(
                    Message("%(value)s is not a declared value of %(name)s", value=repr(value), name=self.name)
                )
        if len(set(condition)) != len(condition):
            raise ValueError(Message("%(name)s repeats a value", name=self.name))

    def _check_range(self, condition: ValueRange) -> None:
        if self.is_categorical:
            raise ValueError(Message("%(name)s has declared values: list those that are meant", name=self.name))
        if condition.minimum is None and condition.maximum is None:
            raise ValueError(Message("%(name)s needs a minimum, a maximum or both", name=self.name))
        low, high = self.numbers_of(condition)
        if not low <= high:
            raise ValueError(Message("no value of %(name)s is in this range", name=self.name))

    def numbers_of(self, condition: ValueRange) -> tuple[float, float]:
        """The range within the declared one, as `bounds` are."""
        low, high = self.bounds
        if condition.minimum is not None:
            low = max(low, self.number_of(condition.minimum))
        if condition.maximum is not None:
            high = min(high, self.number_of(condition.maximum))
        return low, high
