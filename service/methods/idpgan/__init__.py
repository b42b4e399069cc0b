"""`method: idpgan`: a conditional WGAN-GP trained by private steps."""

from service.methods.experience import only_experience
from service.methods.idpgan.card import CARD
from service.methods.idpgan.knobs import public_dataset_of
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
    also_reads=public_dataset_of,
    forecast=only_experience("idpgan"),
    offer=offer,
)
