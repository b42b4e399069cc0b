"""What a sampler does beyond the model, for config.json: fine levels, identifiers, placeholders, derived columns, relations."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from service.domain.roles import alphabets_of, fine_shares, pattern_of, says_a_range
from service.domain.spelling_config import written_as
from service.domain.understood import Derived

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from service.domain.table_schema import TableSchema
    from service.domain.understood import Relations


def written_to_config(schema: TableSchema) -> dict[str, Any]:
    """`written` (the columns of a synthetic row, in the order of the schema) and `relations`; nothing where every field is modelled."""
    relations = schema.understood
    if schema.modelled is schema and not schema.relations:
        return {}
    resolved = {field.name: field for field in relations.read()}
    derived = {one.column: one for one in relations.derived}
    written = [_written(field, resolved.get(field.name, field), derived.get(field.name)) for field in schema.fields]
    return {
        "written": [one for one in written if one is not None],
        "derived": list(derived),
        "relations": _relations_to_config(schema, relations, resolved),
    }


def _written(field: FieldSchema, resolved: FieldSchema, derived: Derived | None) -> dict[str, Any] | None:
    """None of a column that is left out."""
    head = {"name": field.name, "type": field.type}
    if derived is not None:
        return head | written_as(resolved) | _derived(resolved, derived)
    if field.role == "identifier":
        return head | {"identifier": alphabets_of(pattern_of(field))}
    if field.role == "free_text" and field.placeholder is not None:
        return head | {"text": field.placeholder}
    if field.role is not None:
        return None
    if field.hierarchy is not None:
        return head | {"fine": [list(map(list, shares.items())) for shares in fine_shares(field.hierarchy).values()]}
    return head


def _derived(field: FieldSchema, derived: Derived) -> dict[str, Any]:
    missing = not field.constraints.required
    if derived.tree is None:
        values = [*(field.categories or ()), *([None] if missing else [])]
        entries = [list(entry) for entry in derived.entries]
        return {"size": len(values), "values": values, "by": list(derived.by), "entries": entries}
    low, high = field.bounds
    edges = [low, high] if field.type == "number" else [math.ceil(low), math.floor(high) + 1]
    digits = {"decimals": derived.digits} if field.type == "number" else {}
    return {"size": 1 + missing, "edges": edges, "missing": missing, **digits, "expression": derived.tree}


def _relations_to_config(
    schema: TableSchema, relations: Relations, resolved: dict[str, FieldSchema]
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{"holds": one.tree} for one in relations.inequalities]
    found += [
        {"columns": list(one.columns), "allowed": [list(values) for values in one.allowed]}
        for _, one in relations.combinations
    ]
    for one in relations.derived:
        declared = schema.field(one.column)
        if one.tree is not None and declared is not None and says_a_range(declared):
            digits = one.digits if declared.type == "number" else 0
            column = ["column", one.column, digits]
            low, high = (_exactly(end) for end in resolved[one.column].bounds)
            found += [{"holds": [">=", column, low]}, {"holds": ["<=", column, high]}]
    return found


def _exactly(end: float) -> list[Any]:
    exact = Fraction(str(end))
    return ["number", exact.numerator, exact.denominator]
