"""`method: mixture`: its events."""

from __future__ import annotations

import math

from service.base.errors import InvalidOrder
from service.methods.mixture.order import MixtureOrder
from service.privacy.calibration import EventsAt
from service.privacy.events import Events, GaussianEvent

CLASS_MEANS = "class_means"
SHARED_MOMENTS = "shared_moments"
CELL_MEANS = "cell_means"
CELL_MOMENTS = "cell_moments"
TONES = "tones"
LEANINGS = "leanings"
"""Purposes of the releases."""


def precision_shares(order: MixtureOrder) -> list[tuple[str, float]]:
    """Every measurement in order, with its part of the precision; 1 together."""
    rounds = order.sorting_rounds if order.cells and order.cells > 1 else 0
    shares = [
        *([(LEANINGS, order.leanings_precision_share)] if order.upright is None else []),
        (CLASS_MEANS, order.means_precision_share),
        (TONES, order.tones_precision_share),
        (SHARED_MOMENTS, order.directions_precision_share),
        *[(CELL_MEANS, order.sorting_precision_share)] * rounds,
    ]
    return [*shares, (CELL_MOMENTS, 1.0 - sum(share for _, share in shares))]


def mixture_events(order: MixtureOrder, *, noise_multiplier: float) -> Events:
    """Gaussian releases from all units that together are one of this noise multiplier: Σ 1/σ_i² = 1/σ².

    Each is joint over the counts, sums and products of all classes or cells, whose noise is shared out by the worker.
    """
    if order.cells is None:
        raise InvalidOrder("cells must be resolved before pricing")
    return tuple(
        GaussianEvent(purpose, noise_multiplier / math.sqrt(share)) for purpose, share in precision_shares(order)
    )


def events(order: MixtureOrder, _epsilon: float, _delta: float) -> EventsAt:
    """Noise multiplier -> the events of `mixture_events`, in the form that the catalogue asks for."""
    return lambda noise_multiplier: mixture_events(order, noise_multiplier=noise_multiplier)
