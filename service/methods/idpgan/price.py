"""`method: idpgan`, and every other trained generator: its events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from service.base.errors import InvalidOrder
from service.base.lazy import lazy
from service.methods.idpgan.knobs import AdaptiveThresholds
from service.methods.idpgan.order import IdpganOrder, PlainGanOrder
from service.methods.idpgan.start import mixture_of
from service.methods.marginals.price import marginals_events
from service.methods.mixture.price import mixture_events
from service.privacy.calibration import EventsAt
from service.privacy.events import Event, Events, GaussianEvent, SampledStepEvent
from service.privacy.interleaved_steps import steps_with_histograms
from service.privacy.schedules import noise_levels

if TYPE_CHECKING:
    from dp_accounting import gaussian_mechanism
else:
    gaussian_mechanism = lazy("dp_accounting.gaussian_mechanism")

LABEL_COUNTS = "label_counts"
TrainedOrder = IdpganOrder | PlainGanOrder


def events(order: TrainedOrder, epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier of the first step -> the list. What comes before the steps has a fixed part of the precision."""
    label_noise, start = _label_noise(order, epsilon, delta), _start_events(order, epsilon, delta)
    return lambda noise_multiplier: idpgan_events(
        order, noise_multiplier=noise_multiplier, label_noise_multiplier=label_noise, start=start
    )


def idpgan_events(
    order: TrainedOrder, *, noise_multiplier: float, label_noise_multiplier: float, start: Events = ()
) -> Events:
    """The list of an order whose first step has gradient noise multiplier σ_0 (docs/privacy.md, One private step).

    start: the releases of what it begins with, tables or a mixture, which say how frequent labels are too.
    """
    if order.sampling_probability is None:
        raise InvalidOrder("sampling_probability must be resolved before pricing")
    events: list[Event] = list(start)
    if order.condition_on is not None and not start:
        events.append(GaussianEvent(LABEL_COUNTS, label_noise_multiplier))
    levels = noise_levels(order.noise_decay, steps=order.steps, sampling_probability=order.sampling_probability)
    thresholds, q, step = order.thresholds, order.sampling_probability, 0
    for level, count in levels:
        sigma, end = noise_multiplier * level, step + count
        if isinstance(thresholds, AdaptiveThresholds):
            noise = sigma, sigma * thresholds.noise_ratio
            events.append(steps_with_histograms(q, noise, every_steps=thresholds.every_steps, first=step, end=end))
        else:
            events.append(SampledStepEvent(q, sigma, None, count))
        step = end
    return tuple(events)


def _label_noise(order: TrainedOrder, epsilon: float, delta: float) -> float:
    """σ of the label counts: a fixed part of the precision 1/σ² that one Gaussian release of this (ε, δ) would have."""
    return float(gaussian_mechanism.get_sigma_gaussian(epsilon, delta) / math.sqrt(order.label_precision_share))


def _start_events(order: TrainedOrder, epsilon: float, delta: float) -> Events:
    """What is bought before the first step, tables or a mixture: a fixed part of that precision, like the labels'."""
    precision = gaussian_mechanism.get_sigma_gaussian(epsilon, delta) ** -2
    if order.mixture_first is not None:
        noise_multiplier = (precision * order.mixture_first.precision_share) ** -0.5
        return mixture_events(mixture_of(order.mixture_first), noise_multiplier=float(noise_multiplier))
    if order.tables_first is not None and order.tables_order is not None:
        noise_multiplier = (precision * order.tables_first.precision_share) ** -0.5
        return marginals_events(order.tables_order, noise_multiplier=float(noise_multiplier))
    return ()
