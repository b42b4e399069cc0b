"""The declared schema of a table, in the Frictionless *Table Schema* form.

Everything here is public knowledge, stated by the owner before any row is read: columns, types, categories, bounds.
A schema that leaves a domain open (a string without `enum`, a number without bounds) is refused, because the only
other source of that domain would be the private rows (docs/privacy.md, What is visible).

Source: https://specs.frictionlessdata.io/table-schema/ ; `bins` and `edges` are our extension for public grids, `exclusions` for
what statisticians call structural zeros. How values are spelled in text is in `spellings.py`, words that are refused in `table_words.py`.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError, field_validator, model_validator

from service.base.errors import InvalidSchema
from service.domain.bounds import a_kind, as_number, check_storable
from service.domain.dialect import Dialect, null_sequence_is_missing
from service.domain.relations import MAX_RELATIONS, Relation
from service.domain.roles import Fine, Role, check_role, fine_shares
from service.domain.spellings import (
    Marks,
    SpelledField,
    check_spelling,
    check_two_digit_years,
    texts_of,
    values_of_markers,
)
from service.domain.table_words import (
    DeclaredValues,
    WordRefused,
    check_markers,
    place_of,
    sentence_about,
    without_idle_words,
)
from service.domain.understood import Relations, check_exclusions

MAX_FIELDS = 1_000
MAX_CATEGORIES = 10_000
MAX_BINS = 1_024
MAX_EXCLUSIONS = 200

SECONDS_OF = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}

UNIT_COLUMN = "__unit__"
"""Of a canonical table: whose row it is. No field may have its name."""

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

Exclusion = Annotated[dict[str, Condition], Field(min_length=2)]
"""No row meets all of these conditions, by column."""


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
    """Digits after the point that values of a number column have, for example 2 for money; our extension."""
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

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("a column name must be printable and not begin or end with a space")
        return name

    @model_validator(mode="after")
    def _is_spelled_as_its_type(self) -> FieldSchema:
        check_spelling(self, self.type)
        if self.strptime_pattern is not None and self.constraints.minimum is not None:
            check_two_digit_years(self.strptime_pattern, *self.first_and_last_day)
        if self.resolution == "day" and self.timezone not in {None, "UTC"}:
            raise ValueError("resolution: days begin at midnight UTC; with a timezone write hour, or type date")
        return self

    @model_validator(mode="after")
    def _closed_domain(self) -> FieldSchema:
        return self if check_role(self) else self._with_closed_domain()

    def _with_closed_domain(self) -> FieldSchema:
        enum = self.constraints.enum
        if enum is not None:
            self._check_enum(enum)
            if self._says_a_range:
                raise ValueError("give either enum or a range (minimum, maximum, bins, edges), not both")
        elif self.type == "string" and self.hierarchy is None:
            raise ValueError("a string column needs constraints.enum: the categories must be declared")
        elif not self.is_categorical:
            low, high = self.bounds
            if not low < high:
                raise ValueError("constraints.minimum must be below constraints.maximum")
        if self.type == "boolean" and self._says_a_range:
            raise ValueError("a boolean column has no range")
        if self.edges is not None:
            self._check_edges(self.edges)
        if self.decimals is not None and (self.type != "number" or enum is not None):
            raise ValueError("decimals are for number columns with a range")
        if self.resolution is not None and self.type != "datetime":
            raise ValueError("resolution is for datetime columns")
        return self

    @property
    def _says_a_range(self) -> bool:
        c = self.constraints
        return c.minimum is not None or c.maximum is not None or bool(self.bins) or bool(self.edges)

    def _check_enum(self, enum: tuple[Scalar, ...]) -> None:
        if not 1 <= len(enum) <= MAX_CATEGORIES:
            raise ValueError(f"enum needs between 1 and {MAX_CATEGORIES} values")
        if self.type in {"boolean", "date", "datetime"}:
            raise ValueError(
                f"enum is not supported for {self.type} columns: "
                + (
                    "leave it out"
                    if self.type == "boolean"
                    else "write minimum and maximum, or type string with these texts"
                )
            )
        expected: tuple[type, ...] = {"string": (str,), "integer": (int,), "number": (int, float)}[self.type]
        if any(isinstance(v, bool) or not isinstance(v, expected) for v in enum):
            raise ValueError(
                f"every enum value of {a_kind(self.type)} column must be {a_kind(self.type)}"
                + (': write codes in quotes, as "0311"' if self.type == "string" else "")
            )
        if self.type == "number" and any(abs(v) > 2**53 for v in enum if isinstance(v, int)):
            raise ValueError("whole numbers beyond ±2^53 are not exact as number: write type integer or string")
        check_storable(enum)
        if len(set(enum)) != len(enum):
            raise ValueError("enum repeats a value")
        if self.type == "string" and any("\x00" in str(v) for v in enum):
            raise ValueError("enum values must not contain NUL")

    def _check_edges(self, edges: tuple[float, ...]) -> None:
        if self.type not in {"integer", "number"}:
            raise ValueError("edges are for integer and number columns; use bins")
        if self.bins is not None:
            raise ValueError("give bins or edges, not both")
        if not 2 <= len(edges) <= MAX_BINS + 1 or any(not a < b for a, b in pairwise(edges)):
            raise ValueError("edges must increase and number between 2 and 1025")
        if (edges[0], edges[-1]) != self.bounds:
            raise ValueError("the first and last edge must equal minimum and maximum")

    @property
    def categories(self) -> tuple[Scalar, ...] | None:
        """The declared values in the order of their codes, from 0; None of a range. A missing value, if any, has the code after them."""
        if self.hierarchy is not None:
            return tuple(fine_shares(self.hierarchy))
        return (False, True) if self.type == "boolean" else self.constraints.enum

    @property
    def is_categorical(self) -> bool:
        return self.categories is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """Declared minimum and maximum as numbers: dates as days, datetimes as seconds since 1970-01-01 (UTC)."""
        c = self.constraints
        if c.minimum is None or c.maximum is None:
            raise ValueError(
                f"{a_kind(self.type)} column needs constraints.minimum and constraints.maximum (or an enum)"
            )
        return self._as_number(c.minimum), self._as_number(c.maximum)

    def _as_number(self, value: Scalar) -> float:
        return as_number(self.type, value, self.zone)

    @property
    def declared_values(self) -> DeclaredValues:
        bounds = None if self.is_categorical or self.type in {"date", "datetime"} else self.bounds
        texts = {str(bound) for bound in (self.constraints.minimum, self.constraints.maximum) if isinstance(bound, str)}
        if self.spells_booleans:
            texts = {text for truth in (True, False) for text in texts_of(self, truth=truth)}
        elif self.type == "boolean":
            texts = {"true", "false", "0", "1"}
        return DeclaredValues(self.name, self.type, self.constraints.enum, bounds, frozenset(texts))

    @property
    def first_and_last_day(self) -> tuple[dt.date, dt.date]:
        """Of the range of a date or datetime column, as its zone counts days."""
        if self.type == "date":
            low, high = (dt.date(1970, 1, 1) + dt.timedelta(days=bound) for bound in self.bounds)
            return low, high
        first, last = (dt.datetime.fromtimestamp(bound, self.zone).date() for bound in self.bounds)
        return first, last

    @property
    def step(self) -> int:
        """Whole values of a range are multiples of it: 1, or of a datetime the seconds of its resolution."""
        return self.written_step if self.resolution is None else SECONDS_OF[self.resolution]

    def check_condition(self, condition: Condition) -> None:
        """Raise a ValueError if this can be no condition on the column."""
        if isinstance(condition, ValueRange):
            self._check_range(condition)
            return
        if None in condition and self.constraints.required:
            raise ValueError(f"{self.name} is required, so that no value of it is missing")
        values = [value for value in condition if value is not None]
        if values and not self.is_categorical:
            raise ValueError(f"{self.name} has a range: give minimum, maximum or both instead of values")
        declared = self.categories or ()
        for value in values:
            # True is 1 in Python, and 1 is 1.0.
            is_of_type = isinstance(value, bool) == (self.type == "boolean")
            is_of_type &= not (isinstance(value, float) and self.type == "integer")
            if value not in declared or not is_of_type:
                raise ValueError(f"{value!r} is not a declared value of {self.name}")
        if len(set(condition)) != len(condition):
            raise ValueError(f"{self.name} repeats a value")

    def _check_range(self, condition: ValueRange) -> None:
        if self.is_categorical:
            raise ValueError(f"{self.name} has declared values: list those that are meant")
        if condition.minimum is None and condition.maximum is None:
            raise ValueError(f"{self.name} needs a minimum, a maximum or both")
        low, high = self.numbers_of(condition)
        if not low <= high:
            raise ValueError(f"no value of {self.name} is in this range")

    def numbers_of(self, condition: ValueRange) -> tuple[float, float]:
        """The range within the declared one, as `bounds` are."""
        low, high = self.bounds
        if condition.minimum is not None:
            low = max(low, self._as_number(condition.minimum))
        if condition.maximum is not None:
            high = min(high, self._as_number(condition.maximum))
        return low, high


class TableSchema(BaseModel):
    """A declared table: the fields in order, and how missing values are written in text."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    fields: Annotated[tuple[FieldSchema, ...], Field(min_length=1, max_length=MAX_FIELDS)]
    missing_values: Annotated[Marks, Field(alias="missingValues")] = ("",)
    schema_uri: Annotated[str | None, Field(alias="$schema")] = None
    title: str | None = None
    description: str | None = None
    target: str | None = None
    """The categorical field that people will want to predict; our extension. Orders are conditional on it by default."""
    exclusions: Annotated[tuple[Exclusion, ...], Field(max_length=MAX_EXCLUSIONS)] = ()
    """What no row has; our extension. A file with such a row is refused, and no synthetic row is one."""
    relations: Annotated[tuple[Relation, ...], Field(max_length=MAX_RELATIONS)] = ()
    """What holds between columns in every row; our extension."""
    dialect: Dialect | None = None
    """How the file is written; our place for it, Frictionless' words."""

    _null_sequence = model_validator(mode="before")(null_sequence_is_missing)
    _markers = field_validator("missing_values", mode="before")(values_of_markers)

    @model_validator(mode="after")
    def _unique_names(self) -> TableSchema:
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError("two fields have the same name")
        return self

    @model_validator(mode="after")
    def _relations_make_sense(self) -> TableSchema:
        relations = Relations(self)
        modelled = relations.modelled()
        if not modelled:
            raise ValueError("at least one field must be modelled: it has no role and does not follow from others")
        if self.target is not None and self.field(self.target) and self.target not in {one.name for one in modelled}:
            raise ValueError(f"target: {self.target!r} is not modelled")
        check_exclusions(self, relations)
        return self

    @model_validator(mode="after")
    def _target_is_categorical(self) -> TableSchema:
        field = None if self.target is None else self.field(self.target)
        if self.target is not None and field is None:
            raise ValueError(f"target: there is no field {self.target!r}")
        if field is not None and not field.is_categorical:
            raise ValueError("target: choose a field with declared categories (an enum or a boolean)")
        return self

    @model_validator(mode="after")
    def _exclusions_are_of_fields(self) -> TableSchema:
        for number, exclusion in enumerate(self.exclusions, start=1):
            for name, condition in exclusion.items():
                field = self.field(name)
                if field is None:
                    raise ValueError(f"exclusion {number}: there is no field {name!r}")
                try:
                    field.check_condition(condition)
                except ValueError as error:
                    raise ValueError(f"exclusion {number}: {error}") from None
        return self

    @cached_property
    def understood(self) -> Relations:
        """Its relations, checked."""
        return Relations(self)

    @cached_property
    def modelled(self) -> TableSchema:
        """What a generator learns: no columns with a role, none that follow from others, of a hierarchy the coarse level."""
        fields = self.understood.modelled()
        return self if fields == self.fields else self.model_copy(update={"fields": fields, "relations": ()})

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def field(self, name: str) -> FieldSchema | None:
        return next((f for f in self.fields if f.name == name), None)

    def missing_values_of(self, field: FieldSchema) -> tuple[str, ...]:
        """How a missing value of the field is written, the way that synthetic rows have first."""
        return self.missing_values if field.missing_values is None else field.missing_values

    @property
    def own_missing_values(self) -> dict[str, tuple[str, ...]]:
        """Of the fields that have their own, by name."""
        return {field.name: field.missing_values for field in self.fields if field.missing_values is not None}

    def as_json(self) -> dict[str, Any]:
        """The declaration as the owner would write it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def parse_table_schema(document: Any) -> TableSchema:
    """Read a declared schema; raises `InvalidSchema` naming the column and the rule."""
    try:
        schema = TableSchema.model_validate(without_idle_words(document))
        for field in schema.understood.read():
            check_markers(
                field.declared_values, schema.missing_values_of(field), are_own=field.missing_values is not None
            )
    except WordRefused as error:
        raise InvalidSchema(f"schema: {error}", where=error.where) from None
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where, place = ".".join(str(part) for part in first["loc"]), place_of(document, first["loc"])
        sentence = sentence_about(first, _words_beside(first["loc"]))
        raise InvalidSchema(f"schema: {f'{place}: ' if place else ''}{sentence}", where=where or "schema") from None
    return schema


def _words_beside(location: Sequence[str | int]) -> list[str]:
    """The words that may stand where a fault is."""
    model: type[BaseModel] = TableSchema
    if location[:1] == ("fields",):
        model = Constraints if "constraints" in location else FieldSchema
    return [field.alias or name for name, field in model.model_fields.items()]
