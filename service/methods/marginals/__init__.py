"""`method: marginals`: noisy one- and two-way marginals, and a mixture fitted to them."""

from service.methods.interface import Method
from service.methods.marginals.card import CARD
from service.methods.marginals.forecast import forecast
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import events
from service.methods.marginals.resolve import offer, resolve
from service.methods.marginals.work import estimate

METHOD = Method(
    name="marginals",
    takes=frozenset({"table"}),
    order=MarginalsOrder,
    check=lambda _order, _schema: None,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=forecast,
    offer=offer,
)
