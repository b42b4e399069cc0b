"""When a declaration can be bought."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.open_columns import open_fields
from service.methods.declaration.order import DeclarationOrder


def check(order: DeclarationOrder, schema: DeclaredSchema) -> None:
    """Refuse where nothing is to be bought, and knobs of orders that make rows."""
    if isinstance(schema, ImageSchema):
        return
    if order.purchases is not None:
        raise InvalidOrder("purchases: this is filled in; leave it out", where="purchases")
    for knob in ("condition_on", "purpose"):
        if getattr(order, knob) is not None:
            raise InvalidOrder(f"{knob}: this order makes no rows; leave it out", where=knob)
    if not open_fields(schema):
        bought = [field.name for field in schema.fields if field.bought is not None]
        why = (
            "its bounds and categories were bought already"
            if bought
            else "its schema declares all bounds and categories"
        )
        raise InvalidOrder(
            f"method: nothing is to be bought of this dataset: {why}; order rows or answers", where="method"
        )
