"""The price of a Gaussian stands for discrete noise (docs/privacy.md, Discrete noise): exact sums in many digits, no sampling."""

from __future__ import annotations

import itertools
import math

import mpmath as mp
import pytest
import torch

from service.base.errors import Unpriceable
from service.methods.marginals.order import MarginalsOrder
from service.privacy.accounting import epsilon_of
from service.privacy.calibration import MOST_RELEASES, NOISE_RESERVE, SMALLEST_EPSILON, is_paid
from service.privacy.events import GaussianEvent
from service.privacy.filters import Shares, open_budget
from tests.orders import price_order
from tests.privacy.test_oracles import gaussian_delta
from workers.mechanism import PrivateSum
from workers.mechanism.noise import (
    GRID_ROUNDING_VARIANCE,
    GRID_STD,
    LEAST_ROUNDING_VARIANCE,
    MOST_STEPS,
    drawn_std,
    most_moved,
)

mp.mp.dps = 40


def losses(shift: float, variance: float, centre: float = 0.0) -> list[tuple[mp.mpf, mp.mpf]]:
    """(probability, privacy loss) of every value of a discrete Gaussian around `centre`, against one `shift` away."""
    reach = math.ceil(14 * math.sqrt(variance)) + abs(math.ceil(shift)) + 2
    one, other = (
        {k: mp.exp(-((k - mp.mpf(c)) ** 2) / (2 * mp.mpf(variance))) for k in range(-reach, reach + 1)}
        for c in (centre, centre + shift)
    )
    ends = (mp.fsum(one.values()), mp.fsum(other.values()))
    return [(one[k] / ends[0], mp.log(one[k] / ends[0]) - mp.log(other[k] / ends[1])) for k in one]


def discrete_delta(epsilon: float, *coordinates: list[tuple[mp.mpf, mp.mpf]]) -> mp.mpf:
    """δ at ε of independent numbers: Σ P(k)·(1 - e^(ε - loss))₊."""
    total = mp.mpf(0)
    for combined in itertools.product(*coordinates):
        loss = mp.fsum(loss for _, loss in combined)
        if loss > epsilon:
            total += mp.fprod(p for p, _ in combined) * -mp.expm1(epsilon - loss)
    return total


def assert_priced(shifts: list[float], stds: list[float], *coordinates: list[tuple[mp.mpf, mp.mpf]]) -> int:
    """At every ε of a scan δ is at most the Gaussian's, with what is reserved; how many ε had a δ that matters."""
    distance = mp.sqrt(mp.fsum((mp.mpf(d) / mp.mpf(s)) ** 2 for d, s in zip(shifts, stds, strict=True)))
    seen = 0
    for step in range(1, 120):
        epsilon = float(distance) * step / 20.0
        discrete = discrete_delta(epsilon + NOISE_RESERVE, *coordinates)
        assert discrete <= gaussian_delta(epsilon, distance) * (1 + NOISE_RESERVE), epsilon
        seen += bool(discrete > 1e-12)
    return seen


@pytest.mark.parametrize("noise_std", [0.05, 0.3, 0.55, 1.0, 1.7, 5.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_one_count(noise_std: float, shift: int) -> None:
    variance = drawn_std(noise_std, moved=1) ** 2
    assert_priced([shift], [noise_std], losses(shift, variance))


def test_two_tables_of_different_noise() -> None:
    stds, shifts = [0.6, 1.3], [1, 2]
    own = [losses(d, drawn_std(s, moved=2) ** 2) for d, s in zip(shifts, stds, strict=True)]
    light = [[pair for pair in one if pair[0] > 1e-25] for one in own]
    assert assert_priced(shifts, stds, *light) > 20


def test_without_more_variance_the_price_would_be_too_low() -> None:
    """So that the tests above could fail: a discrete Gaussian of the Gaussian's own variance is dearer at some ε."""
    with pytest.raises(AssertionError):
        assert_priced([1], [0.55], losses(1, 0.55**2))


@pytest.mark.parametrize("fraction", [0.0, 0.31, 0.5])
def test_a_sum_on_the_grid(fraction: float) -> None:
    """On a grid as coarse as 1/4 of the noise, with the rounding variance of the real one: it is less like a Gaussian."""
    std = 4.0
    paid = math.sqrt(std**2 - GRID_ROUNDING_VARIANCE)
    for shift in (0.4, 1.0, 2.7):
        assert_priced([shift], [paid], losses(shift, std**2, centre=fraction))


def test_what_is_reserved_covers_every_list() -> None:
    """4η a number: as many releases of whole numbers as an order may have, a million steps of histograms, and all coordinates of all steps."""

    def excess(rounding_variance: float, numbers: float) -> float:
        return 4.0 * numbers * 2.0 * math.exp(-2.0 * math.pi**2 * rounding_variance) * 1.001

    whole = 0.0
    for moved in (1.0, 30.0, 1e6, 1e12):
        rounding = drawn_std(0.0, moved=moved) ** 2
        assert rounding >= LEAST_ROUNDING_VARIANCE * (1 - 1e-12)
        whole = max(whole, excess(rounding, moved))
    steps = excess(drawn_std(0.0, moved=MOST_STEPS * 20.0) ** 2, MOST_STEPS * 20.0)
    assert (MOST_RELEASES - 1) * whole + steps + excess(GRID_ROUNDING_VARIANCE, 1e9 * MOST_STEPS) <= NOISE_RESERVE


def test_how_many_numbers_a_unit_moves() -> None:
    zeros = torch.zeros(50, dtype=torch.int64)
    assert most_moved(PrivateSum((zeros, zeros), ((0,), (1,)), (1.0, 1.0))) == 2.0
    assert most_moved(PrivateSum((zeros, zeros), ((0, 1),), (9.0,))) == 81.0
    assert most_moved(PrivateSum((zeros, zeros), ((0, 1),), (1e9,))) == 100.0
    assert most_moved(PrivateSum((zeros.double(), zeros), ((0,), (1,)), (1e9, 3.0))) == 9.0


def test_the_grid_is_fine() -> None:
    assert math.sqrt(GRID_STD**2 / (GRID_STD**2 - GRID_ROUNDING_VARIANCE)) < 1.0002


def test_an_order_for_which_the_bound_does_not_hold_is_refused_and_not_paid() -> None:
    """Too small an ε, too many releases: by the price, and by the worker that looks at what it is about to run."""
    budget = open_budget(1.0, 1e-6)
    order = MarginalsOrder(method="marginals", epsilon=SMALLEST_EPSILON / 2, pairs="all")
    with pytest.raises(Unpriceable, match="discrete noise"):
        price_order(order, units=1_000, budget=budget)
    quiet = (GaussianEvent("marginals", 1e7),)
    assert is_paid(quiet, Shares(simple=10**6, renyi=10**9), budget, epsilon_scale=1e-3)
    assert not is_paid(quiet, Shares(simple=9_000, renyi=10**9), budget, epsilon_scale=9e-6)
    assert not is_paid(quiet * MOST_RELEASES, Shares(simple=10**6, renyi=10**9), budget, epsilon_scale=1e-3)


def test_what_is_reserved_is_paid() -> None:
    """The noise is calibrated to what is left of ε; a list that costs the whole of it is not paid."""
    budget = open_budget(1.0, 1e-6)
    price = price_order(MarginalsOrder(method="marginals", epsilon=0.5, pairs="all"), units=1_000, budget=budget)
    assert price.pld_epsilon <= 0.5
    of_gaussians = epsilon_of(price.events, delta=price.delta / (1 + NOISE_RESERVE), epsilon_scale=0.5)
    assert price.pld_epsilon - of_gaussians >= NOISE_RESERVE * 0.99
