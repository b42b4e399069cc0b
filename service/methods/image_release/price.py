"""`method: image_release`: its events."""

from __future__ import annotations

import math

from service.methods.image_release.order import ImageReleaseOrder
from service.privacy.calibration import EventsAt
from service.privacy.event_kinds import LARGEST_PURE_EPSILON
from service.privacy.events import Event, Events, ExponentialEvent, GaussianEvent, PureEvent

SIZE = "image_size"
COEFFICIENTS = "image_coefficients"
SINGULAR_VALUES = "image_singular_values"
"""Purposes of the releases."""

LAPLACE_EPSILON = 5.0
"""Of a release with geometric noise at a noise multiplier of 1: about that of a Gaussian one, so that the search covers as large an ε."""


def image_release_events(order: ImageReleaseOrder, *, noise_multiplier: float, delta: float) -> Events:
    """The choice of a size, unless one is ordered; the coefficients; their singular values, if these are ordered."""
    of_values, with_choice = order.singular_values_share, order.coefficients is None
    if order.noise == "gaussian":
        # A Gaussian release of this noise multiplier has about this ε.
        whole = math.sqrt(-2.0 * math.log(delta)) / noise_multiplier
    else:
        whole = LAPLACE_EPSILON / noise_multiplier
    found: list[Event] = []
    if with_choice:
        found.append(ExponentialEvent(SIZE, _bounded(order.selection_share * whole)))
    for purpose, share in ((COEFFICIENTS, 1.0 - of_values), (SINGULAR_VALUES, of_values)):
        if share <= 0.0:
            continue
        if order.noise == "gaussian":
            found.append(GaussianEvent(purpose, noise_multiplier / math.sqrt(share)))
        else:
            rest = 1.0 - order.selection_share if with_choice else 1.0
            found.append(PureEvent(purpose, _bounded(rest * share * whole)))
    return tuple(found)


def _bounded(epsilon: float) -> float:
    return min(LARGEST_PURE_EPSILON, epsilon)


def events(order: ImageReleaseOrder, _epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier -> the events of `image_release_events`, in the form that the catalogue asks for."""
    return lambda noise_multiplier: image_release_events(order, noise_multiplier=noise_multiplier, delta=delta)
