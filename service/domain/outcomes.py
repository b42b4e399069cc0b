"""What becomes of declared columns that no generator learns, in words: for cards, certificates and checks. From the declaration alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.domain.roles import pattern_of

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from service.domain.table_schema import TableSchema
    from service.domain.understood import Derived

_MOST_NAMES = 6


def outcomes(schema: TableSchema) -> dict[str, str]:
    """Of each column that is not modelled, and of one whose coarse categories alone are; in the order of the schema."""
    derived = {one.column: one for one in schema.understood.derived}
    found = {field.name: _outcome(schema, field, derived.get(field.name)) for field in schema.fields}
    return {name: said for name, said in found.items() if said}


def _outcome(schema: TableSchema, field: FieldSchema, derived: Derived | None) -> str:
    if derived is not None:
        return _derived(schema, derived)
    if field.hierarchy is not None:
        return (
            f"{len(field.hierarchy)} coarse categories are modelled; the finer ones are drawn by their declared shares"
        )
    if field.role == "identifier":
        return f"made anew: other unique values in the declared pattern {pattern_of(field)}"
    if field.role == "free_text" and field.placeholder is not None:
        return "not stored: the declared placeholder stands in every synthetic row"
    return "" if field.role is None else "left out: not stored, and not in synthetic rows"


def _derived(schema: TableSchema, derived: Derived) -> str:
    if derived.tree is None:
        return f"looked up: follows from {_listed(derived.by)} by a declared table of {len(derived.entries)} entries"
    statement = schema.relations[derived.number - 1]
    return f"computed: {statement}" if isinstance(statement, str) else f"computed from {_listed(derived.by)}"


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMES]))
    return shown if len(names) <= _MOST_NAMES else f"{shown} and {len(names) - _MOST_NAMES} more"
