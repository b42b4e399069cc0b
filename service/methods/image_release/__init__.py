"""`method: image_release`: every image of a dataset by itself, as noisy coefficients of a public basis."""

from service.methods.image_release.card import CARD
from service.methods.image_release.forecast import forecast
from service.methods.image_release.order import ImageReleaseOrder
from service.methods.image_release.price import events
from service.methods.image_release.resolve import check, has_declared_unit, offer, resolve
from service.methods.image_release.work import estimate
from service.methods.interface import Method

METHOD = Method(
    name="image_release",
    takes=frozenset({"image"}),
    order=ImageReleaseOrder,
    check=check,
    resolve=resolve,
    events=events,
    estimate=estimate,
    card=CARD,
    takes_parts_of_images=True,
    has_declared_unit=has_declared_unit,
    forecast=forecast,
    offer=offer,
)
