"""`method: idpgan`, and every other trained generator: its events."""

from __future__ import annotations

from service.methods.idpgan.knobs import AdaptiveThresholds
from service.methods.idpgan.order import IdpganOrder, PlainGanOrder
from service.methods.idpgan.start import mixture_of
from service.methods.knobs import settled_rate
from service.methods.label_counts import LABEL_COUNTS
from service.methods.marginals.price import marginals_events
from service.methods.mixture.price import mixture_events
from service.methods.whole_noise import noise_of_share
from service.privacy.calibration import EventsAt
from service.privacy.events import Event, Events, GaussianEvent, SampledStepEvent
from service.privacy.interleaved_steps import steps_with_histograms
from service.privacy.schedules import noise_levels

RELEVANCE = "relevance"
TrainedOrder = IdpganOrder | PlainGanOrder


def events(order: TrainedOrder, epsilon: float, delta: float) -> EventsAt:
    """Noise multiplier of the first step -> the list. What comes before the steps has a fixed part of the precision."""
    label_noise = noise_of_share(order.label_precision_share, epsilon, delta)
    start = _start_events(order, epsilon, delta)
    relevance = relevance_events(order, epsilon, delta)
    return lambda noise_multiplier: idpgan_events(
        order,
        noise_multiplier=noise_multiplier,
        label_noise_multiplier=label_noise,
        start=start,
        relevance=relevance,
    )


def idpgan_events(
    order: TrainedOrder,
    *,
    noise_multiplier: float,
    label_noise_multiplier: float,
    start: Events = (),
    relevance: Events = (),
) -> Events:
    """The list of an order whose first step has gradient noise multiplier σ_0 (docs/privacy.md, One private step).

    start: the releases of what it begins with, tables or a mixture, which say how frequent labels are too.
    """
    events: list[Event] = list(start)
    if order.condition_on is not None and not start:
        events.append(GaussianEvent(LABEL_COUNTS, label_noise_multiplier))
    events.extend(relevance)
    thresholds, q, step = order.thresholds, settled_rate(order.sampling_probability), 0
    levels = noise_levels(order.noise_decay, steps=order.steps, sampling_probability=q)
    for level, count in levels:
        sigma, end = noise_multiplier * level, step + count
        if isinstance(thresholds, AdaptiveThresholds):
            noise = sigma, sigma * thresholds.noise_ratio
            events.append(steps_with_histograms(q, noise, every_steps=thresholds.every_steps, first=step, end=end))
        else:
            events.append(SampledStepEvent(q, sigma, None, count))
        step = end
    return tuple(events)


def relevance_events(order: TrainedOrder, epsilon: float, delta: float) -> Events:
    """The event of bought relevance, a part of the same precision; none where none is bought. It comes before the first step."""
    knobs = order.private_step
    if knobs is None or knobs.importance is None or not knobs.buys_relevance:
        return ()
    return (GaussianEvent(RELEVANCE, noise_of_share(knobs.importance.precision_share, epsilon, delta)),)


def _start_events(order: TrainedOrder, epsilon: float, delta: float) -> Events:
    """What is measured before the first step, tables or a mixture: a fixed part of that precision, like the labels'."""
    precision = noise_of_share(1.0, epsilon, delta) ** -2
    if order.mixture_first is not None:
        noise_multiplier = (precision * order.mixture_first.precision_share) ** -0.5
        return mixture_events(mixture_of(order.mixture_first), noise_multiplier=float(noise_multiplier))
    if order.tables_first is not None and order.tables_order is not None:
        noise_multiplier = (precision * order.tables_first.precision_share) ** -0.5
        return marginals_events(order.tables_order, noise_multiplier=float(noise_multiplier))
    return ()
