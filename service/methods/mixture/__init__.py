"""`method: mixture`: noisy moments of images, and a mixture of Gaussians made from them."""

from service.methods.interface import Method
from service.methods.mixture.card import CARD
from service.methods.mixture.forecast import forecast
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import events
from service.methods.mixture.resolve import offer, resolve
from service.methods.mixture.work import estimate

METHOD = Method(
    name="mixture",
    takes=frozenset({"image"}),
    order=MixtureOrder,
    check=lambda _order, _schema: None,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=forecast,
    offer=offer,
)
