"""`method: gswgan`: its events."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.methods.gswgan.order import GswganOrder
from service.methods.label_counts import label_count_events
from service.privacy.calibration import EventsAt
from service.privacy.events import DrawnPartEvent


def events(order: GswganOrder, epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier of the steps -> the list; class frequencies have a fixed part of the precision."""
    labels = label_count_events(order.condition_on, order.label_precision_share, epsilon, delta)
    parts = parts_of(order)
    return lambda noise_multiplier: (*labels, DrawnPartEvent(1.0 / parts, noise_multiplier, order.steps))


def trained_a_step_of(order: GswganOrder) -> int:
    """Discriminators that are trained on after each private step of a resolved order."""
    parts = parts_of(order)
    return parts if order.trained_a_step is None else min(order.trained_a_step, parts)


def parts_of(order: GswganOrder) -> int:
    """Discriminators of a resolved order, and parts of its units."""
    if order.discriminators is None:
        raise InvalidOrder("discriminators must be resolved before pricing", where="discriminators")
    return order.discriminators
