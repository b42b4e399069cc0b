"""`method: dpgan`: a Wasserstein GAN with bounded weights, a comparison."""

from service.methods.dpgan.card import CARD
from service.methods.dpgan.order import DpganOrder
from service.methods.idpgan.price import events
from service.methods.idpgan.resolve import check_networks, resolve_plain
from service.methods.idpgan.work import estimate
from service.methods.interface import Method

METHOD = Method(
    name="dpgan",
    takes=frozenset({"table", "image"}),
    order=DpganOrder,
    check=check_networks,
    resolve=resolve_plain,
    events=events,
    estimate=estimate,
    card=CARD,
)
