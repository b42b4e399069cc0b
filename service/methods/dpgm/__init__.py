"""`method: dpgm`: private k-means and an autoencoder for each cluster, a comparison."""

from service.methods.dpgm.card import CARD
from service.methods.dpgm.check import check
from service.methods.dpgm.order import DpgmOrder
from service.methods.dpgm.price import events
from service.methods.dpgm.resolve import resolve
from service.methods.dpgm.work import estimate
from service.methods.experience import only_experience
from service.methods.interface import Method

METHOD = Method(
    name="dpgm",
    takes=frozenset({"table", "image"}),
    order=DpgmOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=only_experience("dpgm"),
)
