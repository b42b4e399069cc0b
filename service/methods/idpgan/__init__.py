"""`method: idpgan`: a conditional WGAN-GP trained by private steps."""

from service.methods.idpgan.card import CARD
from service.methods.idpgan.order import IdpganOrder
from service.methods.idpgan.price import events
from service.methods.idpgan.resolve import check_networks, offer, resolve
from service.methods.idpgan.work import estimate
from service.methods.interface import Method

METHOD = Method(
    name="idpgan",
    takes=frozenset({"table", "image"}),
    order=IdpganOrder,
    check=check_networks,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    offer=offer,
)
