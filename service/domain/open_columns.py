"""Columns whose bounds or categories are bought: what is bought of each, the public values to choose from, and what follows for the declaration.

Pure, and from the declaration alone, but for `closed`, which takes what was bought.
"""

from __future__ import annotations

import copy
import datetime as dt
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from service.base.errors import DeclarationNeeded, InvalidSchema
from service.base.messages import Figure, Message
from service.base.text import some_of
from service.domain.field_schema import MAX_CATEGORIES, FieldSchema, Scalar
from service.domain.inferred import ENDS, MOST_CHARACTERS, OTHER, Bought, End
from service.domain.spellings import is_marker_of_number
from service.domain.table_schema import TableSchema, parse_table_schema

if TYPE_CHECKING:
    from service.domain.image_schema import DeclaredSchema

FINEST_DECIMALS = 6
"""Of bounds that are bought for a number column: they have no more digits after the point."""
LARGEST_POWER = 15
FIRST_YEAR, FIRST_OF_MONTHS, LAST_OF_MONTHS, LAST_YEAR = 1600, 1900, 2100, 2400
"""Bounds of dates: the first days of years, and between the second and the third of months."""

ORDER = '{"method": "declaration"}'
COMMAND = "imprimatur release DATASET --method declaration"


class Candidate(NamedTuple):
    """A value that a bound may become."""

    number: float
    """As `FieldSchema.bounds` are."""
    said: Scalar
    """As a declaration says it."""


@dataclass(frozen=True)
class OpenColumn:
    """What is to be bought of one column."""

    name: str
    ends: tuple[End, ...]
    """Of a range, those that are not declared; none of a column whose categories are bought."""
    epsilon: float
    candidates: int
    """Values that a bound is chosen from; 0 of categories."""

    @property
    def is_categorical(self) -> bool:
        return not self.ends

    @property
    def what(self) -> str:
        """What is bought of the column, in words."""
        return "categories" if self.is_categorical else " and ".join(self.ends)


def open_fields(schema: DeclaredSchema) -> tuple[FieldSchema, ...]:
    """The fields that are still to be bought; none of images."""
    return tuple(field for field in schema.fields if field.infer is not None) if isinstance(schema, TableSchema) else ()


def open_columns(schema: TableSchema) -> tuple[OpenColumn, ...]:
    """What is to be bought of each open field, as prices and the run go by it."""
    return tuple(_open_column(schema, field) for field in open_fields(schema))


def _open_column(schema: TableSchema, field: FieldSchema) -> OpenColumn:
    epsilon = 0.0 if field.infer is None else field.infer.epsilon
    if field.type == "string":
        return OpenColumn(field.name, (), epsilon, 0)
    says = field.constraints
    ends = tuple(end for end in ENDS if getattr(says, end) is None)
    return OpenColumn(field.name, ends, epsilon, len(candidates(schema, field)))


def require_closed(schema: DeclaredSchema) -> None:
    """Raise `DeclarationNeeded` where columns are still to be bought: until then nothing else is released from the rows."""
    fields = open_fields(schema)
    if not fields:
        return
    names = [field.name for field in fields]
    total = math.fsum(field.infer.epsilon for field in fields if field.infer is not None)
    raise DeclarationNeeded(
        Message(
            "%(columns)s: bounds or categories are to be bought first, for an epsilon of %(total)s in all: order "
            "%(order)s (%(command)s), wait until it is published, and order again",
            columns=some_of(names),
            total=Figure(f"{total:g}"),
            order=ORDER,
            command=COMMAND,
        ),
        columns=names[:20],
        epsilon=total,
    )


def refuse_bought(schema: DeclaredSchema) -> None:
    """Raise `InvalidSchema` where an owner's declaration says that something was bought: only the service writes that."""
    bought = (
        [] if not isinstance(schema, TableSchema) else [one.name for one in schema.fields if one.bought is not None]
    )
    if bought:
        raise InvalidSchema(
            Message(
                "schema: column %(column)s: bought: the service writes this once it is so; leave it out (then the "
                'constraints are your declaration), or write "infer" instead of the constraints',
                column=repr(bought[0]),
            ),
            where="schema",
        )


# -- the public values that a bound may become


def candidates(schema: TableSchema, field: FieldSchema) -> tuple[Candidate, ...]:
    """Increasing: from the type, digits, zone, missing values and the declared end of the field."""
    makes = _days if field.type in {"date", "datetime"} else _numbers
    low, high = field.bounds
    says, markers = field.constraints, _Markers(schema.missing_values_of(field))
    found = {
        one.number: one
        for one in makes(field)
        if (low < one.number if says.minimum is not None else low <= one.number)
        and (one.number < high if says.maximum is not None else one.number <= high)
        and not markers.hold(one)
    }
    return tuple(found[number] for number in sorted(found))


class _Markers:
    """Texts and numbers that mean a missing value, and so are no bound."""

    def __init__(self, markers: Sequence[str]) -> None:
        self._texts = {marker.strip(" \t") for marker in markers}
        self._numbers = {float(text) for text in self._texts if is_marker_of_number(text)}

    def hold(self, candidate: Candidate) -> bool:
        said = candidate.said
        return said in self._texts if isinstance(said, str) else candidate.number in self._numbers


def _numbers(field: FieldSchema) -> list[Candidate]:
    """0, and numbers of two significant digits."""
    decimals = 0 if field.type == "integer" else min(FINEST_DECIMALS, _digits(field))
    sizes = [Fraction(mantissa) * Fraction(10) ** -decimals for mantissa in range(1, 10)]
    for power in range(-decimals, LARGEST_POWER):
        sizes += [Fraction(mantissa) * Fraction(10) ** power for mantissa in range(10, 100)]
    return [Candidate(float(one), _said(one)) for size in (*sizes, Fraction(0)) for one in (size, -size)]


def _digits(field: FieldSchema) -> int:
    return FINEST_DECIMALS if field.decimals is None else field.decimals


def _said(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)


def _days(field: FieldSchema) -> list[Candidate]:
    days = [
        dt.date(year, month, 1)
        for year in range(FIRST_YEAR, LAST_YEAR + 1)
        for month in (range(1, 13) if FIRST_OF_MONTHS <= year < LAST_OF_MONTHS else (1,))
    ]
    texts = [day.isoformat() if field.type == "date" else f"{day.isoformat()}T00:00:00" for day in days]
    return [Candidate(field.number_of(text), text) for text in texts]


# -- what was bought


def closed(stored: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]], release: str) -> dict[str, Any]:
    """The stored declaration with what was bought: {column: {"minimum": …, "maximum": …} or {"enum": […]}, and "events"}.

    Only values that a declaration may say become categories; all others are `other`.
    """
    schema, document = parse_table_schema(stored), copy.deepcopy(dict(stored))
    for said in document["fields"]:
        field = schema.field(said["name"])
        if field is None or field.infer is None:
            continue
        bought = dict(found[field.name])
        events = bought.pop("events")
        other = (field.infer.other or OTHER) if field.type == "string" else None
        if other is not None:
            bought["enum"] = _categories(schema, field, bought["enum"], other)
        del said["infer"]
        said["constraints"] = said.get("constraints", {}) | bought
        words = tuple(bought)
        said["bought"] = Bought(
            epsilon=field.infer.epsilon, release=release, words=words, events=tuple(events), other=other
        ).model_dump(mode="json", exclude_none=True)
    parse_table_schema(document)  # what cannot be read again must not be stored
    return document


def _categories(schema: TableSchema, field: FieldSchema, told: Sequence[str], other: str) -> list[str]:
    markers = {marker.strip(" \t") for marker in schema.missing_values_of(field)}
    kept = [
        text
        for text in told
        if text != other and text not in markers and len(text) <= MOST_CHARACTERS and "\x00" not in text
    ]
    return [*kept[: MAX_CATEGORIES - 1], other]


def reopened(schema: TableSchema) -> TableSchema:
    """The schema as the owner declared it, before anything was bought."""
    document = schema.as_json()
    for said in document["fields"]:
        field = schema.field(said["name"])
        if field is None or field.bought is None:
            continue
        bought = said.pop("bought")
        constraints = {word: value for word, value in said["constraints"].items() if word not in bought["words"]}
        if constraints:
            said["constraints"] = constraints
        else:
            del said["constraints"]
        named = {} if bought.get("other") in {None, OTHER} else {"other": bought["other"]}
        said["infer"] = {"epsilon": bought["epsilon"], **named}
    return parse_table_schema(document)


def bought_columns(schema: DeclaredSchema) -> list[dict[str, Any]]:
    """What of the declaration is not the owner's word: for how much it was bought, by which release; `release` is null while it is to be."""
    if not isinstance(schema, TableSchema):
        return []
    to_buy = {one.name: one for one in open_columns(schema)}
    return [
        _said_of(field.name, to_buy.get(field.name), field.bought)
        for field in schema.fields
        if field.infer is not None or field.bought is not None
    ]


def _said_of(column: str, to_buy: OpenColumn | None, bought: Bought | None) -> dict[str, Any]:
    if bought is not None:
        said = bought.model_dump(mode="json")
        return {"column": column, **{word: said[word] for word in ("words", "epsilon", "release", "events")}}
    words: list[str] = [] if to_buy is None else [*to_buy.ends] or ["enum"]
    return {
        "column": column,
        "words": words,
        "epsilon": 0.0 if to_buy is None else to_buy.epsilon,
        "release": None,
        "events": [],
    }
