"""Prices are never low: what is claimed against integrals in which nothing is discretised or Fourier transformed.

An analyst may order any number of steps and keep the one that is priced best, so every point of a scan must hold.
"""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from service.methods.idpgan.order import IdpganOrder
from service.privacy.accounting import epsilon_of, loss_of
from service.privacy.events import GaussianEvent, SampledStepEvent
from service.privacy.filters import open_budget
from service.privacy.losses import SLACK, TRANSFORM_ERROR, UNIT
from tests.loss_integrals import log_moment, true_delta, worst_delta
from tests.orders import price_order

DELTAS = (1e-6, 1e-9, 1e-12)
KINDS = ((0.002, 6.0), (0.01, 1.5), (0.01, 3.0), (0.05, 10.0), (0.3, 30.0), (0.9, 60.0))
"""(q, noise multiplier)."""
LONG_LISTS = ((0.0170666, 6.43, 250_975, 10.0), (0.0170666, 24.76, 400_403, 3.0))
"""(q, noise multiplier, steps, ε at δ = 1e-12): next to it a Fourier transform without a tilt claimed up to 4 % too little."""


def check(claimed, pools, delta, *, part=0.01):
    """No lower than the truth, and within this part of it."""
    assert worst_delta(claimed, pools) <= delta, (claimed, pools, delta)
    assert worst_delta(claimed * (1.0 - part), pools) > delta, (claimed, pools, delta)


def claim(pools, delta, scale):
    return epsilon_of(
        tuple(SampledStepEvent(q, noise, None, n) for q, noise, n in pools), delta=delta, epsilon_scale=scale
    )


def scan(kinds, lengths, deltas):
    for q, noise in kinds:
        for steps in lengths:
            # By the Gaussian limit: the scale only sets the width of the grid.
            size = q * math.sqrt(steps * math.expm1(noise**-2))
            for delta in deltas:
                scale = size**2 / 2 + size * math.sqrt(-2.0 * math.log(delta))
                if scale < 60.0:
                    check(claim([(q, noise, steps)], delta, scale), [(q, noise, steps)], delta)


@pytest.mark.parametrize(("q", "noise", "steps", "scale"), LONG_LISTS)
def test_no_length_of_a_long_list_is_claimed_to_cost_less_than_it_does(q, noise, steps, scale):
    for more in range(20):
        check(claim([(q, noise, steps + more)], 1e-12, scale), [(q, noise, steps + more)], 1e-12)


def test_no_list_of_a_scan_is_claimed_to_cost_less_than_it_does():
    scan(KINDS, (3_001, 39_989), DELTAS)


@pytest.mark.long
def test_no_list_of_a_long_scan_is_claimed_to_cost_less_than_it_does():
    scan(KINDS, (3_001, 10_007, 100_003, 250_975, 400_403, 1_000_000), (*DELTAS, 1e-30))
    for q, noise, steps, scale in LONG_LISTS:
        for more in range(0, 40_000, 199):
            check(claim([(q, noise, steps - more)], 1e-12, scale), [(q, noise, steps - more)], 1e-12)


@pytest.mark.parametrize(("epsilon", "steps"), [(10.0, 250_975), (3.0, 400_403), (0.05, 1_000_000)])
def test_a_long_order_is_sold_for_what_it_costs(epsilon, steps):
    order = IdpganOrder.model_validate({"method": "idpgan", "epsilon": epsilon, "steps": steps})
    price = price_order(order, units=30_000, budget=open_budget(epsilon, 2e-12))
    pools = [
        (event.sampling_probability, event.joint_noise_multiplier, event.count)
        for runs in price.events
        for event in runs.alike
    ]
    check(price.pld_epsilon, pools, price.delta)
    assert worst_delta(epsilon, pools) <= price.delta


def test_steps_of_several_kinds_and_a_gaussian_release():
    pools = [(0.01, 1.1, 700), (0.03, 2.0, 900), (1.0, 6.0, 1)]
    events = (*(SampledStepEvent(q, noise, None, n) for q, noise, n in pools[:2]), GaussianEvent("x", 12.0, 4))
    for delta in DELTAS:
        check(epsilon_of(events, delta=delta, epsilon_scale=5.0), pools, delta)


def test_the_curve_is_from_above_everywhere():
    pools = [(0.02, 1.3, 2_000)]
    loss = loss_of((SampledStepEvent(0.02, 1.3, None, 2_000),), delta=1e-6, epsilon_scale=4.0)
    deltas = [loss.delta(epsilon) for epsilon in np.linspace(0.5, 8.0, 6)]
    truth = [worst_delta(epsilon, pools) for epsilon in np.linspace(0.5, 8.0, 6)]
    assert all(t <= d <= t * 1.1 + 1e-12 for t, d in zip(truth, deltas, strict=True))
    assert loss.delta(loss.epsilon(1e-6)) == pytest.approx(1e-6, rel=3 * SLACK)


# -- the yardstick ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 6.0])
def test_the_integral_is_the_closed_form_of_gaussian_releases(epsilon):
    with mp.workdps(40):
        mu = mp.sqrt(10_000) / 120
        exact = mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)
        for direction in (0, 1):
            assert abs(true_delta(epsilon, [(1.0, 120.0, 10_000)], direction) / exact - 1) < 1e-9


def test_the_integral_has_its_digits():
    """E[e^(s·loss)] of a step in 40 digits: doubles are within 2e-14 of it, a million of them within 2e-8."""
    q, noise, s = 0.0170666, 6.43, 5.0 + 3.0j
    with mp.workdps(40):

        def integrand(x):
            return mp.npdf(x, 0, noise) * (1 - mp.mpf(q) + q * mp.exp((2 * x - 1) / (2 * mp.mpf(noise) ** 2))) ** (
                1 + s
            )

        exact = mp.log(mp.quad(integrand, [-100, -50, -20, 0, 20, 50, 100]))
    assert abs(complex(exact) - log_moment(q, noise, s, 0)) < 2e-14


# -- what the bounds rest on --------------------------------------------------------------------------------------------


def test_tails_of_the_normal_distribution_are_as_exact_as_is_paid_for():
    """losses._masses pays for 64 + 8·x² units; scipy needs a tenth."""
    for x in np.linspace(-30.0, 6.0, 721):
        with mp.workdps(40):
            error = abs(mp.mpf(float(special.ndtr(x))) / mp.ncdf(mp.mpf(float(x))) - 1)
        assert error <= (64 + 8 * x * x) * UNIT / 4


def test_scaled_tails_are_as_exact_as_is_paid_for():
    for x in np.linspace(0.0, 40.0, 401):
        with mp.workdps(60):
            exact = mp.erfc(mp.mpf(float(x))) * mp.exp(mp.mpf(float(x)) ** 2)
            assert abs(mp.mpf(float(special.erfcx(x))) / exact - 1) <= 16 * UNIT


@pytest.mark.parametrize("stages", [10, 16])
def test_fourier_transforms_err_by_less_than_is_paid_for(stages):
    """Against the same in long doubles: in every point, at most TRANSFORM_ERROR·m units of the sum of absolute values."""
    points = 1 << stages
    for values in (np.exp(-((np.arange(points) - 300.0) ** 2) / 2e3), np.random.default_rng(1).random(points) ** 40):
        there = np.abs(np.fft.rfft(values) - np.fft.rfft(values.astype(np.longdouble))).max()
        assert there <= TRANSFORM_ERROR * stages * UNIT * values.sum() / 4
        half = np.fft.rfft(values)
        back = np.abs(np.fft.irfft(half, points) - np.fft.irfft(half.astype(np.clongdouble), points)).max()
        assert back <= TRANSFORM_ERROR * stages * UNIT * 2 * np.abs(half).sum() / points / 4
