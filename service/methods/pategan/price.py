"""`method: pategan`: its events. Nothing in a price depends on how teachers voted."""

from __future__ import annotations

from service.methods.label_counts import label_count_events
from service.methods.pategan.order import PateganOrder
from service.privacy.calibration import EventsAt
from service.privacy.events import SampledStepEvent


def events(order: PateganOrder, epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier σ of the votes of one step -> label counts, then every step's votes.

    A step is one Gaussian release from all units (its draw has every unit, q = 1): the numbers of votes on b rows, of which a unit moves
    its own teacher's alone, so that they move by √b in L2. The noise on each is σ√b.
    """
    counts = label_count_events(order.condition_on, order.label_precision_share, epsilon, delta)
    return lambda noise_multiplier: (*counts, SampledStepEvent(1.0, noise_multiplier, None, order.steps))
