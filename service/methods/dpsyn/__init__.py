"""`method: dpsyn`: an autoencoder and a mixture of Gaussians for each class, a comparison."""

from service.methods.dpgm.check import check_rounds
from service.methods.dpgm.resolve import resolve
from service.methods.dpsyn.card import CARD
from service.methods.dpsyn.order import DpsynOrder
from service.methods.dpsyn.price import events
from service.methods.dpsyn.work import estimate
from service.methods.experience import only_experience
from service.methods.interface import Method

METHOD = Method(
    name="dpsyn",
    takes=frozenset({"table", "image"}),
    order=DpsynOrder,
    check=lambda order, _schema: check_rounds(order, order.em_rounds, knob="em_rounds"),
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=only_experience("dpsyn"),
)
