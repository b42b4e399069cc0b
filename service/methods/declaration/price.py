"""`method: declaration`: its events."""

from __future__ import annotations

from service.methods.declaration.order import DeclarationOrder, Purchase
from service.privacy.calibration import EventsAt
from service.privacy.events import Event, Events, ExponentialEvent, ThresholdEvent
from service.privacy.filters import FAILURE_PART

BOUND = "declared_bound"
CATEGORIES = "declared_categories"
"""Purposes of the releases."""

DELTA_SHARE = FAILURE_PART
"""Of the δ of the order, for the categories of all columns together; as questions about keys have it."""


def declaration_events(order: DeclarationOrder, *, noise_multiplier: float, delta: float) -> Events:
    """The events of each purchase in turn: its ε divided by the noise multiplier, shared equally by two ends of a range."""
    purchases = order.purchases or ()
    of_categories = sum(not one.ends for one in purchases)
    failure = DELTA_SHARE * delta / max(1, of_categories)
    return tuple(_event(one, one.epsilon / noise_multiplier, failure) for one in purchases)


def _event(purchase: Purchase, epsilon: float, failure_probability: float) -> Event:
    if not purchase.ends:
        return ThresholdEvent(CATEGORIES, epsilon, failure_probability=failure_probability)
    return ExponentialEvent(BOUND, epsilon / len(purchase.ends), len(purchase.ends))


def events(order: DeclarationOrder, _epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier -> the events of `declaration_events`, in the form that the catalogue asks for."""
    return lambda noise_multiplier: declaration_events(order, noise_multiplier=noise_multiplier, delta=delta)
