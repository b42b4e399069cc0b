"""Whether two tables say the same of the columns that are modelled. Pure: of the declarations alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.domain.open_columns import open_fields

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from service.domain.table_schema import TableSchema


def first_difference(other: TableSchema, own: TableSchema) -> str | None:
    """What is first declared otherwise in another table, as a sentence that names the column; None: codes of both mean the same."""
    if open_fields(other):
        return "of the other one bounds or categories are still open"
    others, owns = other.modelled.fields, own.modelled.fields
    for one, field in zip(others, owns, strict=False):
        if one.name != field.name:
            return f"in the place of {field.name!r} the other one has {one.name!r}"
        was, now = _declared(one), _declared(field)
        differing = [what for what, value in now.items() if value != was[what]]
        if differing:
            return f"{field.name!r} has another {differing[0]} there"
    if len(others) == len(owns):
        return None
    more, where = (others, "the other one alone") if len(others) > len(owns) else (owns, "this one alone")
    return f"{more[min(len(others), len(owns))].name!r} is in {where}"


def _declared(field: FieldSchema) -> dict[str, Any]:
    """What its codes follow from."""
    categories = field.categories
    said: dict[str, Any] = {
        "type": field.type,
        "constraints.required": field.constraints.required,
        "list of categories": None if categories is None else [(type(value), value) for value in categories],
        "category for all others": field.other,
    }
    if categories is not None:
        return said
    ranged = {"range": field.bounds, "number of bins": field.bins, "list of edges": field.edges}
    return {**said, **ranged, "number of decimals": field.decimals, "resolution": field.step}
