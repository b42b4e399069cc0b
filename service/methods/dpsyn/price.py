"""`method: dpsyn`: its events. Steps and rounds of EM are joint over all classes: a unit is in its own class alone."""

from __future__ import annotations

import math

from service.methods.dpgm.price import steps_of
from service.methods.dpsyn.order import DpsynOrder
from service.methods.label_counts import LABEL_COUNTS
from service.methods.whole_noise import noise_of_share
from service.privacy.calibration import EventsAt
from service.privacy.events import GaussianEvent

LATENT_MOMENTS = "latent_moments"
"""Purpose of a round of EM."""


def events(order: DpsynOrder, epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier of the steps -> label counts, steps, rounds of EM. What is not a step has a fixed part of the precision."""
    labels = GaussianEvent(LABEL_COUNTS, noise_of_share(order.count_precision_share, epsilon, delta))
    of_all_rounds = noise_of_share(1.0, epsilon, delta) * math.sqrt(order.em_rounds / order.moments_precision_share)
    moments = GaussianEvent(LATENT_MOMENTS, of_all_rounds)
    return lambda noise_multiplier: (labels, steps_of(order, noise_multiplier), *(moments,) * order.em_rounds)
