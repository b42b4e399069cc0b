"""`method: dpgan`: a Wasserstein GAN with bounded weights, a comparison; PPGAN is one of its settings."""

from service.methods.dpgan.card import CARD
from service.methods.dpgan.order import OPTIMIZERS, DpganOrder
from service.methods.experience import only_experience
from service.methods.facts import Facts
from service.methods.idpgan.knobs import public_dataset_of
from service.methods.idpgan.price import events
from service.methods.idpgan.resolve import check_networks, resolve_plain
from service.methods.idpgan.work import estimate
from service.methods.interface import Method


def resolve(order: DpganOrder, facts: Facts) -> DpganOrder:
    """The optimiser of a paper, where one is named, but for what the order names of it; the rest as of the other comparisons."""
    if order.published_as is not None:
        named = {name: getattr(order.optimizer, name) for name in order.optimizer.model_fields_set}
        optimizer = OPTIMIZERS[order.published_as].model_copy(update=named)
        order = order.model_copy(update={"optimizer": optimizer})
    return resolve_plain(order, facts)


METHOD = Method(
    name="dpgan",
    takes=frozenset({"table", "image"}),
    order=DpganOrder,
    check=check_networks,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    also_reads=public_dataset_of,
    forecast=only_experience("dpgan"),
)
