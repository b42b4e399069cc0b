"""Which declaration has rows to encode."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.methods.idpgan.resolve import check_networks
from service.methods.rdpcgan.order import RdpcganOrder


def check(order: RdpcganOrder, schema: DeclaredSchema) -> None:
    """Two columns at least: of one that is the condition, nothing would be left to encode."""
    check_networks(order, schema)
    if not isinstance(schema, ImageSchema) and len(schema.modelled.fields) < 2:
        raise InvalidOrder(Message("method: rdpcgan encodes rows of at least two columns"), where="method")
