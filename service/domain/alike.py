"""Whether two tables say the same of the columns that are modelled. Pure: of the declarations alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.base.messages import Message

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from service.domain.table_schema import TableSchema


def first_difference(other: TableSchema, own: TableSchema) -> str | None:
    """What is first declared otherwise in another table, as a sentence that names the column; None: codes of both mean the same."""
    others, owns = read_by(other, own).fields, own.modelled.fields
    still_open = next((field.name for field in others if field.infer is not None), None)
    if still_open is not None:
        return Message("of %(column)s bounds or categories are still open in the other one", column=repr(still_open))
    for one, field in zip(others, owns, strict=False):
        if one.name != field.name:
            return Message(
                "in the place of %(column)s the other one has %(other)s", column=repr(field.name), other=repr(one.name)
            )
        was, now = _declared(one), _declared(field)
        differing = [what for what, value in now.items() if value != was.get(what)]
        if differing:
            return Message("%(column)s has another %(what)s there", column=repr(field.name), what=differing[0])
    if len(others) == len(owns):
        return None
    if len(others) > len(owns):
        return Message("%(column)s is in the other one alone", column=repr(others[len(owns)].name))
    return Message("%(column)s is in this one alone", column=repr(owns[len(others)].name))


def read_by(other: TableSchema, own: TableSchema) -> TableSchema:
    """The modelled columns of another table, whose rows are public, as they are read for this one.

    Where bounds or categories of this one were bought, those hold: no upload could have known them. What lies outside is moved to the ends, or
    belongs to the category for all others, as in this one's own rows.
    """
    others, owns = other.modelled.fields, own.modelled.fields
    read = [field if _is_read_by(one, field) else one for one, field in zip(others, owns, strict=False)]
    return other.modelled.model_copy(
        update={"fields": (*read, *others[len(read) :]), "relations": (), "exclusions": ()}
    )


def _is_read_by(one: FieldSchema, field: FieldSchema) -> bool:
    """Whether the other's column holds what this one's bought bounds or categories can read: no missing value where this one has none."""
    may_be_missing = not one.constraints.required
    is_same = one.name == field.name and one.type == field.type
    return field.bought is not None and is_same and not (may_be_missing and field.constraints.required)


def _declared(field: FieldSchema) -> dict[str, Any]:
    """What its codes follow from, by what it is called."""
    categories = field.categories
    said: dict[str, Any] = {
        Message("type"): field.type,
        "constraints.required": field.constraints.required,
        Message("list of categories"): None if categories is None else [(type(value), value) for value in categories],
        Message("category for all others"): field.other,
    }
    if categories is not None:
        return said
    ranged: dict[str, Any] = {
        Message("range"): field.bounds,
        Message("number of bins"): field.bins,
        Message("list of edges"): field.edges,
    }
    return {**said, **ranged, Message("number of decimals"): field.decimals, Message("resolution"): field.step}
