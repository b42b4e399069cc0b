"""`method: declaration`: bounds and categories that the owner did not declare, bought from the rows before anything else is."""

from service.methods.declaration.card import CARD
from service.methods.declaration.check import check
from service.methods.declaration.forecast import forecast
from service.methods.declaration.order import DeclarationOrder
from service.methods.declaration.price import events
from service.methods.declaration.resolve import resolve
from service.methods.declaration.work import estimate
from service.methods.interface import Method

METHOD = Method(
    name="declaration",
    takes=frozenset({"table"}),
    order=DeclarationOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    forecast=forecast,
    card=CARD,
    returns="answers",
    buys_declaration=True,
)
