"""When a declaration can be bought."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.domain.open_columns import open_fields
from service.methods.declaration.order import DeclarationOrder


def check(order: DeclarationOrder, schema: DeclaredSchema) -> None:
    """Refuse where nothing is to be bought, and knobs of orders that make rows."""
    if isinstance(schema, ImageSchema):
        return
    if order.purchases is not None:
        raise InvalidOrder(Message("purchases: this is filled in; leave it out"), where="purchases")
    for knob in ("condition_on", "purpose"):
        if getattr(order, knob) is not None:
            raise InvalidOrder(Message("%(knob)s: this order makes no rows; leave it out", knob=knob), where=knob)
    if not open_fields(schema):
        bought = [field.name for field in schema.fields if field.bought is not None]
        why = (
            Message("its bounds and categories were bought already")
            if bought
            else Message("its schema declares all bounds and categories")
        )
        raise InvalidOrder(
            Message("method: nothing is to be bought of this dataset: %(why)s; order rows or answers", why=why),
            where="method",
        )
