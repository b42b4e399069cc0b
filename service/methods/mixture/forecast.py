"""What a mixture will give: experience, and a warning where there are too few images for the means of their classes."""

from __future__ import annotations

from dataclasses import replace

from service.methods.experience import only_experience
from service.methods.facts import Facts
from service.methods.few_images import too_few_images
from service.methods.forecast import Forecast
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import CELL_MOMENTS, CLASS_MEANS, precision_shares
from service.privacy.events import Events

_experience = only_experience("mixture")


def forecast(order: MixtureOrder, events: Events, facts: Facts) -> Forecast:
    """Class means are measured by themselves, and once more by the last measurement, which corrects them."""
    shares = dict(precision_shares(order))
    means = shares[CLASS_MEANS] * (1.0 - order.count_share) + shares[CELL_MOMENTS] * order.mean_share
    few = too_few_images(order, facts, precision_share=means, numbers=order.coefficients)
    return replace(_experience(order, events, facts), warnings=() if few is None else (few,))
