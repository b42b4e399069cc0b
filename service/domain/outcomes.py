"""What becomes of declared columns that no generator learns, in words: for cards, certificates and checks. From the declaration alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.base.messages import Message
from service.domain.roles import pattern_of

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from service.domain.table_schema import TableSchema
    from service.domain.understood import Derived

_MOST_NAMES = 6


def outcomes(schema: TableSchema) -> dict[str, str]:
    """What becomes of each column that is not modelled, or whose coarse categories alone are; in the order of the schema."""
    derived = {one.column: one for one in schema.understood.derived}
    found = {field.name: _outcome(schema, field, derived.get(field.name)) for field in schema.fields}
    return {name: said for name, said in found.items() if said}


def _outcome(schema: TableSchema, field: FieldSchema, derived: Derived | None) -> str:
    if derived is not None:
        return _derived(schema, derived)
    if field.hierarchy is not None:
        return Message(
            "%(count)s coarse categories are modelled; the finer ones are drawn by their declared shares",
            count=len(field.hierarchy),
        )
    if field.role == "identifier":
        return Message("made anew: other unique values in the declared pattern %(pattern)s", pattern=pattern_of(field))
    if field.role == "free_text" and field.placeholder is not None:
        return Message("not stored: the declared placeholder stands in every synthetic row")
    return "" if field.role is None else Message("left out: not stored, and not in synthetic rows")


def _derived(schema: TableSchema, derived: Derived) -> str:
    if derived.tree is None:
        return Message(
            "looked up: follows from %(columns)s by a declared table of %(count)s entries",
            columns=_listed(derived.by),
            count=len(derived.entries),
        )
    statement = schema.relations[derived.number - 1]
    if isinstance(statement, str):
        return Message("computed: %(statement)s", statement=statement)
    return Message("computed from %(columns)s", columns=_listed(derived.by))


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(map(repr, names[:_MOST_NAMES]))
    if len(names) <= _MOST_NAMES:
        return shown
    return Message("%(names)s and %(count)s more", names=shown, count=len(names) - _MOST_NAMES)
