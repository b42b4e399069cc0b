"""`method: queries`: questions about the private rows, each answered with noise and charged."""

from service.methods.interface import Method
from service.methods.queries.card import CARD
from service.methods.queries.check import check
from service.methods.queries.forecast import forecast
from service.methods.queries.order import QueriesOrder
from service.methods.queries.price import events
from service.methods.queries.resolve import resolve
from service.methods.queries.work import estimate

METHOD = Method(
    name="queries",
    takes=frozenset({"table"}),
    order=QueriesOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    forecast=forecast,
    card=CARD,
    returns="answers",
)
