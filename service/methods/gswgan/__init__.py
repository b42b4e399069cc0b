"""`method: gswgan`: a generator that follows many discriminators, one of them a step through a clipped and noisy slope, a comparison."""

from service.methods.experience import only_experience
from service.methods.gswgan.card import CARD
from service.methods.gswgan.order import GswganOrder
from service.methods.gswgan.price import events
from service.methods.gswgan.resolve import check, resolve
from service.methods.gswgan.work import estimate
from service.methods.interface import Method

METHOD = Method(
    name="gswgan",
    takes=frozenset({"image"}),
    order=GswganOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=only_experience("gswgan"),
)
