"""A failure probability is charged as δ in both accounts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from service.base.errors import Unpriceable
from service.privacy.accounting import epsilon_of, loss_of, renyi_divergence
from service.privacy.calibration import calibrate, charged_divergence, is_paid
from service.privacy.events import (
    GaussianEvent,
    ParallelEvent,
    PureEvent,
    RepeatAndSelectEvent,
    ThresholdEvent,
    events_from_json,
    events_to_json,
    failures_of,
)
from service.privacy.failures import LossWithFailures, loss_of_failures
from service.privacy.filters import LARGEST_COST, NANO, Shares, failure_divergence, open_budget, renyi_cost
from service.privacy.renyi import renyi_capacity, renyi_delta

BUDGET = open_budget(4.0, 1e-6)
KEYS = ThresholdEvent("keys", 0.5, failure_probability=1e-9)


def hockey_stick(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())


def test_a_mechanism_that_fails_is_within_the_loss_in_both_directions() -> None:
    """Exact probabilities of two runs of randomised response, each of which is replaced by another output with probability F."""
    epsilon, failure = 0.7, 0.01
    heads = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    accounted = np.array([heads, 1.0 - heads, 0.0])
    one = (1.0 - failure) * accounted + failure * np.array([0.0, 0.0, 1.0])
    other = np.array([1.0 - heads, heads, 0.0])
    both, neither = np.outer(one, one).ravel(), np.outer(other, other).ravel()
    loss = loss_of((ThresholdEvent("keys", epsilon, 2, failure_probability=failure),), delta=0.05, epsilon_scale=1.4)
    for at in (0.1, 0.7, 1.2, 1.4, 1.5):
        assert max(hockey_stick(both, neither, at), hockey_stick(neither, both, at)) <= loss.delta(at) * (1 + 1e-9)
    assert loss.delta(1.5) >= 1.0 - (1.0 - failure) ** 2


def test_a_mechanism_that_fails_shifts_the_loss_of_the_way_back() -> None:
    """Where a failure takes probability away from an output, it is rarer than accounted: δ there is above that of the accounted pair."""
    epsilon, failure, at = 0.7, 0.01, 0.699
    heads = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    failing = np.array([(1.0 - failure) * (1.0 - heads), (1.0 - failure) * heads, failure])
    without = np.array([heads, 1.0 - heads, 0.0])
    loss = LossWithFailures(loss_of((PureEvent("keys", epsilon),), delta=0.05, epsilon_scale=0.7), failure)
    back = hockey_stick(without, failing, at)
    assert back > hockey_stick(without, failing / (1.0 - failure), at)
    assert back <= loss.loss.delta(at - loss_of_failures(failure)) * (1 + 1e-9) <= loss.delta(at)
    assert loss.delta(at) >= back + failure - 1e-9


def test_no_epsilon_is_claimed_at_a_delta_that_failures_take() -> None:
    loss = loss_of((KEYS,), delta=1e-9)
    assert loss.epsilon(1e-9) == math.inf
    with pytest.raises(Unpriceable):
        epsilon_of((KEYS,), delta=0.5e-9)
    left = epsilon_of((PureEvent("keys", 0.5),), delta=1e-6 - 1e-9)
    assert left < epsilon_of((KEYS,), delta=1e-6) == pytest.approx(left, abs=2e-9)


def test_the_renyi_account_never_promises_more_delta_than_it_has() -> None:
    """Divergences up to the capacity take one part of δ/2, failures up to it the other, whichever came on which path."""
    order, capacity = BUDGET.renyi_order, BUDGET.renyi_capacity
    kept = BUDGET.failure_delta
    assert renyi_delta(capacity, BUDGET.epsilon, order) + kept <= BUDGET.account_delta
    for failures in (1e-12, kept / 7, kept):
        assert failures <= kept * failure_divergence(failures, BUDGET) / capacity
    assert failure_divergence(kept, BUDGET) == pytest.approx(capacity, rel=1e-6)


def test_a_dataset_that_keeps_nothing_for_failures_pays_by_simple_sums_alone() -> None:
    order = BUDGET.renyi_order
    earlier = replace(BUDGET, renyi_capacity=renyi_capacity(BUDGET.epsilon, BUDGET.account_delta, order))
    assert earlier.failure_delta == 0.0
    assert earlier.conversion_delta == earlier.account_delta
    assert renyi_cost(0.01, earlier, failures=1e-12) == LARGEST_COST
    assert renyi_cost(0.01, earlier) < NANO


def test_both_costs_hold_the_failures() -> None:
    plain, failing = (PureEvent("keys", 0.5),), (KEYS,)
    assert renyi_divergence(plain, 8) == renyi_divergence(failing, 8)
    assert charged_divergence(failing, BUDGET) > charged_divergence(plain, BUDGET)
    divergence = renyi_divergence(failing, BUDGET.renyi_order)
    with_failures = renyi_cost(divergence, BUDGET, failures=failures_of(failing))
    assert with_failures > renyi_cost(divergence, BUDGET)
    share = Shares(simple=150_000_000, renyi=with_failures)
    assert is_paid(failing, share, BUDGET, epsilon_scale=0.6)
    assert not is_paid(failing, Shares(share.simple, with_failures - 1), BUDGET, epsilon_scale=0.6)
    greedy = (ThresholdEvent("keys", 0.5, failure_probability=1e-7),)
    dear = Shares(simple=150_000_000, renyi=10**9)
    assert not is_paid(greedy, dear, BUDGET, epsilon_scale=0.6)


def test_calibration_leaves_room_for_failures() -> None:
    events, epsilon = calibrate(lambda s: (ThresholdEvent("keys", 1.0 / s, failure_probability=4e-8),), 0.5, 5e-8)
    assert epsilon <= 0.5
    assert epsilon_of(events, delta=5e-8) <= 0.5
    assert events[0].parameters()["epsilon"] <= 0.5


def test_a_failing_event_is_stored_and_is_no_part_of_others() -> None:
    assert events_from_json(events_to_json((KEYS, GaussianEvent("any", 2.0)))) == (KEYS, GaussianEvent("any", 2.0))
    assert failures_of((KEYS.cut(3),)) == pytest.approx(3e-9)
    for refused in (
        lambda: ParallelEvent("split", ((KEYS,), (PureEvent("any", 1.0),))),
        lambda: RepeatAndSelectEvent("select", (KEYS,), 5.0, 1.0),
        lambda: ThresholdEvent("keys", 0.5),
        lambda: ThresholdEvent("keys", 0.5, failure_probability=0.5),
    ):
        with pytest.raises(Unpriceable):
            refused()
