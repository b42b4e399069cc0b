"""One part of many, drawn secretly: its price is above what the worst parts give, in both directions, and not far above."""

from __future__ import annotations

import json
import math
from itertools import pairwise, product

import numpy as np
import pytest
from scipy import integrate, stats

from service.base.errors import Unpriceable
from service.privacy.accounting import epsilon_of, first_steps, renyi_divergence
from service.privacy.calibration import calibrate
from service.privacy.drawn_parts import DrawnPart
from service.privacy.events import DrawnPartEvent, SampledStepEvent, events_from_json, events_to_json, steps_in
from service.privacy.mechanisms import SampledGaussian

ORDERS = (2, 3, 5)
GRID = np.linspace(-16.0, 16.0, 321)


def divergence(first: np.ndarray, second: np.ndarray, order: int) -> float:
    """Of two densities on the plane, as logarithms."""
    area = (GRID[1] - GRID[0]) ** 2
    return math.log(float(np.exp(order * first + (1 - order) * second).sum()) * area) / (order - 1)


def mixture(centres: list[tuple[float, float]], weights: list[float]) -> np.ndarray:
    parts = [
        math.log(weight) + stats.norm.logpdf(GRID, x)[:, None] + stats.norm.logpdf(GRID, y)[None, :]
        for (x, y), weight in zip(centres, weights, strict=True)
    ]
    return np.logaddexp.reduce(parts)  # type: ignore[no-any-return]


@pytest.mark.parametrize(("q", "noise"), [(0.5, 1.0), (0.1, 0.8), (0.02, 2.0)])
def test_no_parts_in_the_ball_give_more_than_the_price(q: float, noise: float) -> None:
    """A unit's part says a or b, the others say c: all in a ball whose diameter is 1/σ noise deviations."""
    radius = 0.5 / noise
    places = [(radius * math.cos(turn), radius * math.sin(turn)) for turn in np.linspace(0.0, math.pi, 5)]
    places += [(-0.5 * radius, 0.0), (0.0, 0.0)]
    priced = DrawnPart(q, noise).divergences(ORDERS)
    largest = np.zeros(len(ORDERS))
    for b, c in product(places, places):
        pair = [mixture([c, said], [1.0 - q, q]) for said in (places[0], b)]
        for way in (pair, pair[::-1]):
            found = np.array([divergence(*way, order) for order in ORDERS])
            assert (found <= np.array(priced) * (1.0 + 1e-6) + 1e-12).all(), (b, c)
            largest = np.maximum(largest, found)
    assert (largest >= 0.4 * np.array(priced)).all(), "the bound is of the size of the worst parts"


@pytest.mark.parametrize(
    ("q", "noise"), [(0.5, 1.0), (0.1, 0.8), (0.001, 0.45), (0.001, 0.84), (0.02, 3.0), (0.3, 0.3)]
)
def test_the_price_is_the_integral_of_the_worse_curve_in_both_directions(q: float, noise: float) -> None:
    """E = 1 + λ(λ-1)·∫₁^∞ (α^(λ-2) + α^(-λ-1))·H(α) dα with H of the sampled Gaussian, integrated over outputs."""
    shift = 1.0 / noise
    for order in ORDERS:

        def both(x: float, order: int = order) -> float:
            less = q * math.expm1(shift * x - shift**2 / 2.0)  # t - 1
            upward = math.expm1(order * math.log1p(less)) - order * less
            downward = math.expm1((1 - order) * math.log1p(less)) + (order - 1) * less
            return float(stats.norm.pdf(x)) * (upward + downward)

        edges = [shift / 2.0, *(shift * k for k in range(1, order + 1)), shift * order + 12.0]
        exact = sum(integrate.quad(both, *pair, epsabs=0.0, epsrel=1e-9, limit=200)[0] for pair in pairwise(edges))
        (priced,) = DrawnPart(q, noise).divergences([order])
        truth = math.log1p(exact) / (order - 1)
        assert truth <= priced * (1.0 + 1e-9)
        assert priced <= truth * 1.02


@pytest.mark.parametrize(("q", "noise"), [(0.5, 1.0), (0.001, 0.45), (0.1, 5.0), (0.01, 0.05)])
def test_it_costs_more_than_a_sampled_step_and_at_most_twice_as_much(q: float, noise: float) -> None:
    orders = [2, 4, 16, 64, 1_024]
    ours, sampled = (kind(q, noise).divergences(orders) for kind in (DrawnPart, SampledGaussian))
    for one, other in zip(ours, sampled, strict=True):
        assert other <= one <= 2.0 * other * (1.0 + 1e-9) + 1e-12
    assert ours[0] > sampled[0] or noise < 0.1


def test_the_price_of_the_published_settings() -> None:
    """1,000 discriminators, 20,000 steps, 32 images: joint noise of σ = 1.07/√32 costs 33 times what was claimed."""
    published = DrawnPartEvent(0.001, 1.07 / math.sqrt(32.0), 20_000)
    assert epsilon_of((published,), delta=1e-5) > 329.0
    (event,), epsilon = calibrate(lambda noise: (DrawnPartEvent(0.001, noise, 20_000),), 10.0, 1e-5)
    assert 9.9 <= epsilon <= 10.0
    assert event.quoted_noise_multiplier == pytest.approx(0.492, abs=0.005)
    (sampled,), _ = calibrate(lambda noise: (SampledStepEvent(0.001, noise, None, 20_000),), 10.0, 1e-5)
    assert sampled.quoted_noise_multiplier == pytest.approx(0.452, abs=0.005)


def test_it_is_stored_cut_and_counted_like_any_step() -> None:
    events = (DrawnPartEvent(0.01, 1.5, 40),)
    assert events_from_json(json.loads(json.dumps(events_to_json(events)))) == events
    assert steps_in(events) == 40
    assert first_steps(events, 7) == (DrawnPartEvent(0.01, 1.5, 7),)
    assert renyi_divergence(first_steps(events, 10), 8) == pytest.approx(renyi_divergence(events, 8) / 4.0, rel=1e-9)


@pytest.mark.parametrize("wrong", [(0.0, 1.0, 1), (1.5, 1.0, 1), (0.1, 0.0, 1), (0.1, math.inf, 1), (0.1, 1.0, 0)])
def test_what_is_no_step_is_refused(wrong: tuple[float, float, int]) -> None:
    with pytest.raises(Unpriceable):
        DrawnPartEvent(*wrong)
