"""A condition on a dataset's own columns, as an example in the fields that take one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from service.domain.table_schema import TableSchema

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from service.domain.image_schema import DeclaredSchema

_OF_NO_DATASET = "age>=65&sex=f"
_PLAIN = re.compile(r"\w+")
"""Names and values that need no quoting."""


def example_condition(schema: DeclaredSchema) -> str:
    """An example of a condition on the declared columns: the upper half of the first whole number, and the first category of the first text."""
    fields = schema.modelled.fields if isinstance(schema, TableSchema) else ()
    plain = [field for field in fields if _PLAIN.fullmatch(field.name)]
    halves = [f"{field.name}>={middle}" for field in plain if (middle := _middle(field)) is not None]
    words = [f"{field.name}={word}" for field in plain if (word := _first_word(field))]
    return "&".join([*halves[:1], *words[:1]]) or _OF_NO_DATASET


def _middle(field: FieldSchema) -> int | None:
    low, high = field.constraints.minimum, field.constraints.maximum
    if field.type == "integer" and isinstance(low, int) and isinstance(high, int):
        return (low + high + 1) // 2
    return None


def _first_word(field: FieldSchema) -> str | None:
    values = field.constraints.enum if field.type == "string" else None
    return next((str(value) for value in values or () if _PLAIN.fullmatch(str(value))), None)
