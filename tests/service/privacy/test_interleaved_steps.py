"""Steps with a histogram now and then, as one event: none is lost, none gets another's noise, and the price is that of the single steps."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.base.errors import Unpriceable
from service.methods.idpgan.order import IdpganOrder
from service.methods.idpgan.price import idpgan_events
from service.methods.pricing import MOST_DOCUMENT_BYTES, price_order
from service.privacy.accounting import epsilon_of, first_steps, renyi_divergence
from service.privacy.events import (
    InterleavedStepsEvent,
    SampledStepEvent,
    accounted,
    events_from_json,
    events_to_json,
    steps_in,
)
from service.privacy.filters import open_budget
from service.privacy.interleaved_steps import steps_with_histograms
from service.privacy.mechanisms import pooled

RUNS = st.tuples(st.integers(1, 12), st.integers(0, 40), st.integers(1, 60))
"""every_steps, the number of the first step, how many."""


def one_by_one(every: int, first: int, end: int) -> list[SampledStepEvent]:
    """What earlier versions listed, step by step: a histogram at every multiple."""
    return [SampledStepEvent(0.1, 2.0, 16.0 if step % every == 0 else None, 1) for step in range(first, end)]


def single(event: InterleavedStepsEvent | SampledStepEvent) -> list[SampledStepEvent]:
    if isinstance(event, SampledStepEvent):
        return [event.cut(1)] * event.count
    return [event.step(number) for number in range(event.count)]


@settings(deadline=None)
@given(RUNS)
def test_an_event_is_its_steps_in_their_order(run):
    every, first, count = run
    event = steps_with_histograms(0.1, (2.0, 16.0), every_steps=every, first=first, end=first + count)
    assert single(event) == one_by_one(every, first, first + count)
    assert event.private_steps == event.count == count


@settings(deadline=None)
@given(RUNS)
def test_it_is_accounted_as_its_steps_and_none_is_lost(run):
    every, first, count = run
    event = steps_with_histograms(0.1, (2.0, 16.0), every_steps=every, first=first, end=first + count)
    steps = one_by_one(every, first, first + count)
    assert accounted([event]) == list(pooled((step.mechanism, 1) for step in steps).items())
    assert sum(each.count for each in event.alike) == count
    assert renyi_divergence([event], 8) == renyi_divergence(steps, 8)
    assert sum(event.sizes()) == pytest.approx(sum(step.mechanism.size for step in steps), rel=1e-12)


@settings(deadline=None)
@given(RUNS, st.integers(1, 60))
def test_what_ran_of_it_is_its_first_steps(run, ran):
    every, first, count = run
    event = steps_with_histograms(0.1, (2.0, 16.0), every_steps=every, first=first, end=first + count)
    (kept,) = first_steps((event,), min(ran, count))
    assert single(kept) == single(event)[: min(ran, count)]


@settings(deadline=None)
@given(RUNS)
def test_it_is_read_as_it_was_written(run):
    every, first, count = run
    events = (steps_with_histograms(0.1, (2.0, 16.0), every_steps=every, first=first, end=first + count),)
    assert events_from_json(json.loads(json.dumps(events_to_json(events)))) == events


@pytest.mark.parametrize(
    "changed",
    [
        {"every_steps": 1},
        {"every_steps": 2.0},
        {"every_steps": True},
        {"first_histogram": -1},
        {"first_histogram": 5},
        {"histogram_noise_multiplier": None},
        {"histogram_noise_multiplier": 0.0},
        {"gradient_noise_multiplier": float("inf")},
        {"sampling_probability": 0.0},
        {"count": 0},
        {"count": 2.5},
    ],
)
def test_what_is_no_such_event_is_refused(changed):
    (row,) = events_to_json((InterleavedStepsEvent(0.1, 2.0, 16.0, 5, 2, 40),))
    with pytest.raises(Unpriceable):
        events_from_json([{**row, **changed}])


def test_two_noise_levels_are_never_one_event():
    """Each span of a decay has its own noise: what is merged into one run would be priced, or drawn, with another's."""
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "steps": 200,
            "sampling_probability": 0.05,
            "noise_decay": {"kind": "polynomial", "end_ratio": 0.1},
            "thresholds": {"kind": "adaptive", "every_steps": 3},
        }
    )
    events = idpgan_events(order, noise_multiplier=2.0, label_noise_multiplier=1.0)
    assert len(events) == 10
    noise = [step.gradient_noise_multiplier for event in events for step in single(event)]
    epochs = [2.0 * (0.9 * (1 - step // 20 / 10) + 0.1) for step in range(200)]
    assert noise == pytest.approx(epochs)
    histograms = [step.histogram_noise_multiplier for event in events for step in single(event)]
    assert histograms == pytest.approx([8 * s if n % 3 == 0 else None for n, s in enumerate(epochs)])


def test_the_price_of_sparse_histograms_is_that_of_single_steps():
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "steps": 300,
            "sampling_probability": 0.02,
            "thresholds": {"kind": "adaptive", "every_steps": 7},
        }
    )
    price = price_order(order, open_budget(2.0, 1e-6))
    steps = [step for event in price.events for step in single(event)]
    assert steps_in(price.events) == len(steps) == 300
    assert epsilon_of(tuple(steps), delta=price.delta, epsilon_scale=price.epsilon) == epsilon_of(
        price.events, delta=price.delta, epsilon_scale=price.epsilon
    )


@pytest.mark.parametrize("every_steps", [1, 2, 3, 10_000])
@pytest.mark.parametrize("kind", ["constant", "exponential", "periodic", "polynomial"])
def test_a_price_does_not_grow_with_the_steps(every_steps, kind):
    """A million steps with a histogram at every second one were 63 MB and a minute of a core."""
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "steps": 999_970,
            "sampling_probability": 0.01,
            "noise_decay": {"kind": kind},
            "thresholds": {"kind": "adaptive", "every_steps": every_steps},
            "condition_on": "y",
        }
    )
    events = idpgan_events(order, noise_multiplier=2.0, label_noise_multiplier=1.0)
    assert steps_in(events) == 999_970
    assert len(json.dumps(events_to_json(events))) < MOST_DOCUMENT_BYTES / 4
