"""`method: dpacgan`: a GAN with an auxiliary classifier and clip norms from public records, a comparison."""

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.image_schema import DeclaredSchema, ImageSchema
from service.methods.dpacgan.card import CARD
from service.methods.dpacgan.order import DpacganOrder
from service.methods.experience import only_experience
from service.methods.idpgan.knobs import public_dataset_of
from service.methods.idpgan.price import events
from service.methods.idpgan.resolve import check_networks, resolve_plain
from service.methods.idpgan.work import estimate
from service.methods.interface import Method


def check(order: DpacganOrder, schema: DeclaredSchema) -> None:
    """There must be classes to name."""
    check_networks(order, schema)
    if isinstance(schema, ImageSchema) and len(schema.class_names) < 2:
        raise InvalidOrder(Message("method: dpacgan needs images of at least two declared classes"), where="method")


METHOD = Method(
    name="dpacgan",
    takes=frozenset({"image"}),
    order=DpacganOrder,
    check=check,
    resolve=resolve_plain,
    events=events,
    estimate=estimate,
    card=CARD,
    also_reads=public_dataset_of,
    forecast=only_experience("dpacgan"),
)
