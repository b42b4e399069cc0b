"""`method: pategan`: a generator that follows a student, which noisy votes of hidden teachers taught; a comparison."""

from service.methods.experience import only_experience
from service.methods.interface import Method
from service.methods.pategan.card import CARD
from service.methods.pategan.order import PateganOrder
from service.methods.pategan.price import events
from service.methods.pategan.resolve import check, resolve
from service.methods.pategan.work import estimate

METHOD = Method(
    name="pategan",
    takes=frozenset({"table"}),
    order=PateganOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=only_experience("pategan"),
)
