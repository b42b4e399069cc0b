"""`method: dpgm`: its events. One sampled step serves all clusters: a unit's clipped gradient is one vector over all of them."""

from __future__ import annotations

import math

from service.methods.dpgm.order import AutoencoderOrder, DpgmOrder
from service.methods.knobs import settled_rate
from service.methods.whole_noise import noise_of_share
from service.privacy.calibration import EventsAt
from service.privacy.events import GaussianEvent, SampledStepEvent

CLUSTER_MEANS = "cluster_means"
CLUSTER_COUNTS = "cluster_counts"
"""Purposes of the releases before the steps."""


def events(order: DpgmOrder, epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier of the steps -> rounds of k-means, counts, steps. What is not a step has a fixed part of the precision."""
    means = noise_of_share(1.0, epsilon, delta) * math.sqrt(max(1, order.rounds) / order.cluster_precision_share)
    rounds = (GaussianEvent(CLUSTER_MEANS, means),) * order.rounds
    counts = GaussianEvent(CLUSTER_COUNTS, noise_of_share(order.count_precision_share, epsilon, delta))
    return lambda noise_multiplier: (*rounds, counts, steps_of(order, noise_multiplier))


def steps_of(order: AutoencoderOrder, noise_multiplier: float) -> SampledStepEvent:
    """All private steps, whatever the number of autoencoders."""
    return SampledStepEvent(settled_rate(order.sampling_probability), noise_multiplier, None, order.steps)
