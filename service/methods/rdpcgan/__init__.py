"""`method: rdpcgan`: an autoencoder by private steps, then a Wasserstein GAN on its codes; a comparison."""

from service.methods.experience import only_experience
from service.methods.idpgan.resolve import resolve_plain
from service.methods.interface import Method
from service.methods.rdpcgan.card import CARD
from service.methods.rdpcgan.check import check
from service.methods.rdpcgan.order import RdpcganOrder
from service.methods.rdpcgan.price import events
from service.methods.rdpcgan.work import estimate

METHOD = Method(
    name="rdpcgan",
    takes=frozenset({"table"}),
    order=RdpcganOrder,
    check=check,
    resolve=resolve_plain,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=only_experience("rdpcgan"),
)
