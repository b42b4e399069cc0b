"""`method: choose`: the best of several orders, which one is decided by charged errors of a classifier."""

from service.methods.choose.card import CARD
from service.methods.choose.check import check
from service.methods.choose.forecast import forecast
from service.methods.choose.methods import public_bins_of, public_dataset_of
from service.methods.choose.order import ChooseOrder
from service.methods.choose.price import events
from service.methods.choose.resolve import resolve
from service.methods.choose.work import estimate
from service.methods.interface import Method

METHOD = Method(
    name="choose",
    takes=frozenset({"table"}),
    order=ChooseOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    forecast=forecast,
    also_reads=public_dataset_of,
    public_bins=public_bins_of,
)
