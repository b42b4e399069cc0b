"""Relations between columns that hold in every row, as an owner writes them. What they mean: `understood.py`."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from service.domain.expressions import MOST_CHARACTERS

MAX_RELATIONS = 200
MOST_ENTRIES = 100_000
MOST_COMBINATIONS = 10_000

Value = str | int | float | bool | None
Name = Annotated[str, Field(min_length=1, max_length=200)]


class Lookup(BaseModel):
    """`column` follows from `by` through a public table, as a city from its postcode."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    column: Name
    by: Name | Annotated[tuple[Name, ...], Field(min_length=1, max_length=3)]
    table: dict[str, Value] | tuple[tuple[Value, ...], ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.by,) if isinstance(self.by, str) else self.by

    @property
    def entries(self) -> list[tuple[Value, ...]]:
        """Values of `keys`, and last the one that follows; sorted, because Postgres keeps no order of an object's keys."""
        return sorted(self.table.items()) if isinstance(self.table, dict) else list(self.table)


class Combinations(BaseModel):
    """These columns together have only these values."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    columns: Annotated[tuple[Name, ...], Field(min_length=2, max_length=4)]
    allowed: Annotated[tuple[tuple[Value, ...], ...], Field(min_length=1, max_length=MOST_COMBINATIONS)]


class Unique(BaseModel):
    """No two rows have the same values in these columns."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    unique: Annotated[tuple[Name, ...], Field(min_length=1)]

    @field_validator("unique", mode="before")
    @classmethod
    def _one_name(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value


Relation = Annotated[str, Field(min_length=3, max_length=MOST_CHARACTERS)] | Lookup | Combinations | Unique


def mentions(relation: Relation, name: str) -> bool:
    """Whether a column is in it; of a text, as a word."""
    if isinstance(relation, str):
        return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", relation) is not None
    if isinstance(relation, Lookup):
        return name in {relation.column, *relation.keys}
    return name in (relation.columns if isinstance(relation, Combinations) else relation.unique)
