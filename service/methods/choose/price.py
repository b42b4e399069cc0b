"""`method: choose`: its events."""

from __future__ import annotations

from service.base.errors import InvalidOrder
from service.methods.choose.methods import METHODS
from service.methods.choose.order import ChooseOrder
from service.methods.knobs import Order
from service.privacy.calibration import EventsAt, least_noise
from service.privacy.event_kinds import LARGEST_PURE_EPSILON
from service.privacy.events import Events, ExponentialEvent, OneOfEvent, ParallelEvent, PureEvent, RepeatAndSelectEvent

TRIALS = "choose_trials"
ERRORS = "choose_errors"
WINNER = "choose_winner"
REPEATED = "choose_repeated"
TRIAL = "choose_trial"
SCORE = "choose_score"
"""Purposes of the releases."""


def events(order: ChooseOrder, epsilon: float, delta: float) -> EventsAt:
    """A factor of the noise of all parts -> the list. At 1 the parts add up to (ε, δ), so what composition saves makes it smaller."""
    return _of_parts(order, epsilon, delta) if order.form == "parts" else _of_runs(order, epsilon, delta)


def _of_parts(order: ChooseOrder, epsilon: float, delta: float) -> EventsAt:
    """Tries and choice in parallel, then the chosen candidate on all units."""
    if order.trials is None:
        raise InvalidOrder("candidates must be resolved before pricing")
    share = order.selection_share
    trials = [_scaled(each, share * epsilon, share * delta) for each in order.trials]
    finals = [_scaled(each, (1.0 - share) * epsilon, (1.0 - share) * delta) for each in order.candidates]

    def at(factor: float) -> Events:
        # As much as a try: a unit is in one part, so less would save nothing.
        choice = ExponentialEvent(ERRORS, min(LARGEST_PURE_EPSILON, share * epsilon / factor))
        parts = (*(trial(factor) for trial in trials), (choice,))
        return (ParallelEvent(TRIALS, parts), OneOfEvent(WINNER, tuple(final(factor) for final in finals)))

    return at


def _of_runs(order: ChooseOrder, epsilon: float, delta: float) -> EventsAt:
    """A random candidate on all units and its noisy errors, so often, and the best of them."""
    if order.mean_runs is None:
        raise InvalidOrder("mean_runs must be resolved before pricing")
    mean, shape, share = order.mean_runs, order.runs_shape, order.selection_share
    once = epsilon_of_one_run(order, epsilon)
    candidates = [_scaled(each, (1.0 - share) * once, delta) for each in order.candidates]

    def at(factor: float) -> Events:
        trial = OneOfEvent(TRIAL, tuple(candidate(factor) for candidate in candidates))
        score = PureEvent(SCORE, min(LARGEST_PURE_EPSILON, share * once / factor))
        return (RepeatAndSelectEvent(REPEATED, (trial, score), mean, shape),)

    return at


def epsilon_of_one_run(order: ChooseOrder, epsilon: float) -> float:
    """About: selecting costs 2 + η times as much (Papernot and Steinke 2022)."""
    return epsilon / (2.0 + order.runs_shape)


def _scaled(order: Order, epsilon: float, delta: float) -> EventsAt:
    """A factor of the noise at which this order is (ε, δ) -> its list."""
    method = METHODS[order.method]  # type: ignore[attr-defined]  # every candidate names its own
    events_at = method.events(order, epsilon, delta)
    noise_multiplier, _ = least_noise(events_at, epsilon, delta)
    return lambda factor: events_at(noise_multiplier * factor)
