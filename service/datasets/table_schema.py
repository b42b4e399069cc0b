"""The declared schema of a table, in the Frictionless *Table Schema* form.

Everything here is public knowledge, stated by the owner before any row is read: columns, types, categories, bounds.
A schema that leaves a domain open (a string without `enum`, a number without bounds) is refused, because the only
other source of that domain would be the private rows (PRIVACY.md §5).

Source: https://specs.frictionlessdata.io/table-schema/ ; `bins` and `edges` are our extension for public grids.
"""

from __future__ import annotations

import datetime as dt
import math
from itertools import pairwise
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from service.errors import InvalidSchema
from service.text import sentence_of

MAX_FIELDS = 1_000
MAX_CATEGORIES = 10_000
MAX_BINS = 1_024

FieldType = Literal["string", "integer", "number", "boolean", "date", "datetime"]
Scalar = str | int | float | bool
_Moment = TypeVar("_Moment", dt.date, dt.datetime)


class Constraints(BaseModel):
    """The part of Frictionless constraints that closes a column's domain. Others are refused, not ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    required: bool = False
    enum: tuple[Scalar, ...] | None = None
    minimum: Scalar | None = None
    maximum: Scalar | None = None


class FieldSchema(BaseModel):
    """One column: name, type, and a closed public domain."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=200)]
    type: FieldType
    constraints: Constraints = Constraints()
    title: str | None = None
    description: str | None = None
    format: Literal["default", "any"] | None = None
    rdf_type: Annotated[Any, Field(alias="rdfType", exclude=True)] = None
    example: Annotated[Any, Field(exclude=True)] = None
    bins: Annotated[int, Field(ge=1, le=MAX_BINS)] | None = None
    """Number of equal-width cells of the public grid (integer, number, date, datetime); default chosen by the encoder."""
    decimals: Annotated[int, Field(ge=0, le=9)] | None = None
    """Digits after the point that values of a number column have, for example 2 for money; our extension."""
    edges: tuple[float, ...] | None = None
    """Explicit, increasing cell edges instead of `bins` (integer and number only); first and last equal the bounds."""

    @field_validator("name")
    @classmethod
    def _printable(cls, name: str) -> str:
        if not name.isprintable() or name != name.strip():
            raise ValueError("a column name must be printable and not begin or end with a space")
        return name

    @model_validator(mode="after")
    def _closed_domain(self) -> FieldSchema:
        c = self.constraints
        if c.enum is not None:
            self._check_enum(c.enum)
            if c.minimum is not None or c.maximum is not None or self.bins or self.edges:
                raise ValueError("give either enum or a range (minimum, maximum, bins, edges), not both")
        elif self.type == "string":
            raise ValueError("a string column needs constraints.enum: the categories must be declared")
        elif self.type != "boolean":
            low, high = self.bounds
            if not low < high:
                raise ValueError("constraints.minimum must be below constraints.maximum")
        if self.type == "boolean" and (c.minimum is not None or c.maximum is not None or self.bins or self.edges):
            raise ValueError("a boolean column has no range")
        if self.edges is not None:
            self._check_edges(self.edges)
        if self.decimals is not None and (self.type != "number" or c.enum is not None):
            raise ValueError("decimals are for number columns with a range")
        return self

    def _check_enum(self, enum: tuple[Scalar, ...]) -> None:
        if not 1 <= len(enum) <= MAX_CATEGORIES:
            raise ValueError(f"enum needs between 1 and {MAX_CATEGORIES} values")
        if self.type in {"boolean", "date", "datetime"}:
            raise ValueError(f"enum is not supported for {self.type}")
        expected: tuple[type, ...] = {"string": (str,), "integer": (int,), "number": (int, float)}[self.type]
        if any(isinstance(v, bool) or not isinstance(v, expected) for v in enum):
            raise ValueError(f"every enum value of a {self.type} column must be a {self.type}")
        if any(isinstance(v, float) and not math.isfinite(v) for v in enum):
            raise ValueError("enum values must be finite")
        if any(isinstance(v, int) and not -(2**63) <= v < 2**63 for v in enum):
            raise ValueError("whole numbers in an enum must fit in 64 bits")
        if any(isinstance(v, str) and not _is_unicode(v) for v in enum):
            raise ValueError("enum values must be Unicode text, without lone surrogates")
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
    def is_categorical(self) -> bool:
        return self.type == "boolean" or self.constraints.enum is not None

    @property
    def bounds(self) -> tuple[float, float]:
        """Declared minimum and maximum as numbers: dates as days, datetimes as seconds since 1970-01-01 (UTC)."""
        c = self.constraints
        if c.minimum is None or c.maximum is None:
            raise ValueError(f"a {self.type} column needs constraints.minimum and constraints.maximum (or an enum)")
        return _as_number(self.type, c.minimum), _as_number(self.type, c.maximum)


class TableSchema(BaseModel):
    """A declared table: the fields in order, and how missing values are written in text."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    fields: Annotated[tuple[FieldSchema, ...], Field(min_length=1, max_length=MAX_FIELDS)]
    missing_values: Annotated[tuple[str, ...], Field(alias="missingValues", max_length=20)] = ("",)
    schema_uri: Annotated[str | None, Field(alias="$schema")] = None
    title: str | None = None
    description: str | None = None
    target: str | None = None
    """The categorical field that people will want to predict; our extension. Orders are conditional on it by default."""
    primary_key: Annotated[Any, Field(alias="primaryKey", exclude=True)] = None
    foreign_keys: Annotated[Any, Field(alias="foreignKeys", exclude=True)] = None

    @model_validator(mode="after")
    def _unique_names(self) -> TableSchema:
        names = self.names
        if len(set(names)) != len(names):
            raise ValueError("two fields have the same name")
        return self

    @model_validator(mode="after")
    def _target_is_categorical(self) -> TableSchema:
        field = None if self.target is None else self.field(self.target)
        if self.target is not None and field is None:
            raise ValueError(f"target: there is no field {self.target!r}")
        if field is not None and not field.is_categorical:
            raise ValueError("target: choose a field with declared categories (an enum or a boolean)")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f.name for f in self.fields)

    def field(self, name: str) -> FieldSchema | None:
        return next((f for f in self.fields if f.name == name), None)

    def as_json(self) -> dict[str, Any]:
        """The declaration as the owner would write it."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def parse_table_schema(document: Any) -> TableSchema:
    """Read a declared schema; raises `InvalidSchema` naming the field and the rule."""
    try:
        return TableSchema.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "schema"
        raise InvalidSchema(f"schema: {where}: {sentence_of(first)}", where=where) from None


def _as_number(kind: str, value: Scalar) -> float:
    if kind == "date":
        return float((_from_iso(dt.date, value) - dt.date(1970, 1, 1)).days)
    if kind == "datetime":
        moment = _from_iso(dt.datetime, value)
        moment = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
        return moment.timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"bounds of a {kind} column must be numbers")  # noqa: TRY004 - pydantic wants ValueError
    if not abs(value) <= 2**53:  # before anything makes a float of it; NaN is not below either
        raise ValueError("bounds must be finite and within ±2^53")
    if kind == "integer" and value != int(value):
        raise ValueError("bounds of an integer column must be whole numbers")
    return float(value)


def _from_iso(kind: type[_Moment], value: Scalar) -> _Moment:
    if not isinstance(value, str):
        raise ValueError("bounds of a date or datetime column are ISO 8601 strings")  # noqa: TRY004 - pydantic turns ValueError into its own
    try:
        return kind.fromisoformat(value)
    except ValueError:
        raise ValueError(f"bounds of a {kind.__name__} column are ISO 8601, like 2024-02-29") from None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
