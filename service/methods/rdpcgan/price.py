"""`method: rdpcgan`: its events."""

from __future__ import annotations

import math

from service.methods.idpgan.price import relevance_events
from service.methods.knobs import settled_rate
from service.methods.label_counts import label_count_events
from service.methods.rdpcgan.order import RdpcganOrder
from service.privacy.calibration import EventsAt
from service.privacy.events import SampledStepEvent


def events(order: RdpcganOrder, epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier of a critic step -> label counts, relevance where it is bought, the autoencoder's steps, the critic's."""
    q, ratio = settled_rate(order.sampling_probability), noise_ratio(order)
    counts = label_count_events(order.condition_on, order.label_precision_share, epsilon, delta)
    relevance = relevance_events(order, epsilon, delta)
    return lambda noise_multiplier: (
        *counts,
        *relevance,
        SampledStepEvent(q, noise_multiplier * ratio, None, order.autoencoder.steps),
        SampledStepEvent(q, noise_multiplier, None, order.steps),
    )


def noise_ratio(order: RdpcganOrder) -> float:
    """σ of the autoencoder's steps by that of the critic's: T_a/σ_a² is to T_c/σ_c² as the share is to the rest."""
    share = order.autoencoder.precision_share
    return math.sqrt(order.autoencoder.steps / order.steps * (1.0 - share) / share)
