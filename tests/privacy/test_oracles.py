"""Prices against everybody else's: closed forms in 60 digits, prv_accountant, autodp, Opacus.

Ours is computed here, live. Theirs lies in oracles/*.json, written by `python -m bench.oracles` with versions and date.
"""

from __future__ import annotations

import json
import math
from functools import lru_cache
from pathlib import Path

import mpmath as mp
import numpy as np
import pytest

from bench.oracles import in_runs
from service.base.errors import Unpriceable
from service.methods.idpgan.order import IdpganOrder
from service.methods.idpgan.price import idpgan_events
from service.privacy.accounting import RENYI_ORDERS, epsilon_of, renyi_divergence, renyi_divergences
from service.privacy.calibration import TOLERANCE
from service.privacy.events import GaussianEvent, SampledStepEvent
from service.privacy.filters import (
    FAILURE_PART,
    LARGEST_COST,
    NANO,
    Shares,
    exact,
    open_budget,
    renyi_cost,
    renyi_epsilon,
)
from tests.orders import price_order

ORACLES = Path(__file__).parent / "oracles"


@lru_cache
def read(name):
    return json.loads((ORACLES / f"{name}.json").read_text(encoding="utf-8"))


ORDERS = read("settings")["orders"]
SETTINGS = [tuple(setting) for setting in read("settings")["settings"]]
SCHEDULES = read("settings")["schedules"]
TIGHT_FROM = 0.005
"""Below this ε prices are only asked to be on the safe side."""
OPACUS_ERROR = 0.02
"""The eps_error that bench/oracles.py asks Opacus' copy for."""


def name_of(setting):
    q, noise_multiplier, steps, delta = setting
    return f"q={q:.3g} noise={noise_multiplier:g} steps={steps} delta={delta:g}"


# -- what has no second opinion: closed forms, in 60 digits ---------------------------------------------------------


def gaussian_delta(epsilon, mu):
    """Balle & Wang 2018, Theorem 8, for one Gaussian of sensitivity/std = μ; T of them have μ·√T."""
    with mp.workdps(60):
        epsilon, mu = mp.mpf(epsilon), mp.mpf(mu)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def sampled_gaussian_delta(epsilon, q, noise_multiplier):
    """One sampled Gaussian: the hockey-stick divergence of (1 - q)·N(0, σ²) + q·N(1, σ²) from N(0, σ²), cut at x*."""
    with mp.workdps(60):
        epsilon, q, sigma = mp.mpf(epsilon), mp.mpf(q), mp.mpf(noise_multiplier)
        cut = sigma**2 * mp.log((mp.expm1(epsilon) + q) / q) + mp.mpf(1) / 2
        above_zero, above_one = mp.ncdf(-cut / sigma), mp.ncdf((1 - cut) / sigma)
        return (1 - q) * above_zero + q * above_one - mp.exp(epsilon) * above_zero


def sampled_gaussian_renyi(q, noise_multiplier, steps, order):
    """Mironov, Talwar & Zhang 2019, equation 3: a finite sum for whole orders."""
    with mp.workdps(60):
        q, sigma = mp.mpf(q), mp.mpf(noise_multiplier)
        moment = mp.fsum(
            mp.binomial(order, k) * (1 - q) ** (order - k) * q**k * mp.exp(mp.mpf(k * k - k) / (2 * sigma**2))
            for k in range(order + 1)
        )
        return steps * mp.log(moment) / (order - 1)


# -- at least 200 settings ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(SETTINGS)), ids=[name_of(setting) for setting in SETTINGS])
def test_a_setting_costs_what_every_accountant_says(index):
    q, noise_multiplier, steps, delta = SETTINGS[index]
    prv, autodp, opacus = (read(tool)["settings"][index] for tool in ("prv", "autodp", "opacus"))
    events = (SampledStepEvent(q, noise_multiplier, None, steps),)

    divergences = renyi_divergences(events, ORDERS)
    for order, ours, by_autodp, by_opacus in zip(ORDERS, divergences, autodp["renyi"], opacus["renyi"], strict=True):
        truth = sampled_gaussian_renyi(q, noise_multiplier, steps, order)
        assert ours >= truth * (1 - mp.mpf(10) ** -15)
        assert ours <= truth * (1 + mp.mpf(10) ** -9) + steps * 1e-14
        # Theirs carry the rounding of doubles in the logarithm of a sum near 1.
        assert by_opacus == pytest.approx(ours, rel=1e-6, abs=steps * 1e-14)
        assert by_autodp == pytest.approx(ours, rel=1e-6, abs=steps * 1e-14)

    scale = prv.get("estimate") or autodp["exact_epsilon"] or autodp["renyi_epsilon"]
    epsilon = epsilon_of(events, delta=delta, epsilon_scale=max(scale, 1e-4))
    if q == 1.0:
        mu = mp.sqrt(steps) / mp.mpf(noise_multiplier)
        assert gaussian_delta(epsilon, mu) <= delta
        if epsilon >= TIGHT_FROM:
            assert gaussian_delta(epsilon * (1 - 2e-3), mu) > delta * (1 - 1e-6)
            assert autodp["exact_epsilon"] == pytest.approx(epsilon, rel=2e-3)
    elif steps == 1:
        assert sampled_gaussian_delta(epsilon, q, noise_multiplier) <= delta
    if "lower" in prv and not contradicted(prv, opacus):
        assert prv["lower"] <= epsilon
        if epsilon >= TIGHT_FROM:
            assert epsilon <= prv["upper"]
    if "prv_upper" in opacus:
        assert opacus["prv_upper"] - 2.5 * OPACUS_ERROR <= epsilon
        if epsilon >= TIGHT_FROM:
            assert epsilon <= opacus["prv_upper"] * 1.002
    if epsilon >= TIGHT_FROM:
        # Rényi bounds are upper bounds: the tighter accountant may not exceed them by more than its grid.
        assert epsilon <= autodp["renyi_epsilon"] * 1.002
        assert epsilon <= min(map(renyi_epsilon, divergences, [delta] * len(ORDERS), ORDERS)) * 1.002


def contradicted(prv, opacus):
    """Whether Opacus' copy of the same algorithm, on its finer mesh, lies outside prv_accountant's own bounds.

    At 100,000 steps an error of 2e-6 in a step's mean, which the algorithm corrects for, shifts ε by 0.2; two more such
    settings it refuses itself ("discrete mean differs"). There Opacus' answer stands alone.
    """
    if "prv_upper" not in opacus:
        return False
    estimate = opacus["prv_upper"] - OPACUS_ERROR
    return not prv["lower"] - OPACUS_ERROR / 2 <= estimate <= prv["upper"] + OPACUS_ERROR / 2


def test_the_two_copies_of_prv_contradict_each_other_once():
    pairs = zip(SETTINGS, read("prv")["settings"], read("opacus")["settings"], strict=True)
    assert [s for s, prv, opacus in pairs if "lower" in prv and contradicted(prv, opacus)] == [
        (0.05, 3.0, 100_000, 1e-8)
    ]


def test_enough_settings_were_answered_by_each():
    assert len(SETTINGS) >= 200
    assert len(set(SETTINGS)) == len(SETTINGS)
    assert sum("lower" in answer for answer in read("prv")["settings"]) >= 200
    assert sum("renyi" in answer for answer in read("autodp")["settings"]) == len(SETTINGS)
    assert sum("renyi" in answer for answer in read("opacus")["settings"]) == len(SETTINGS)
    assert sum("prv_upper" in answer for answer in read("opacus")["settings"]) >= 150
    for tool in ("prv", "autodp", "opacus"):
        assert {"tool", "version", "python", "numpy", "scipy", "made_on"} <= set(read(tool))


# -- whole orders: decaying noise, histograms, labels ---------------------------------------------------------------


@pytest.mark.parametrize("index", range(len(SCHEDULES)), ids=[schedule["name"] for schedule in SCHEDULES])
def test_a_schedule_is_the_list_that_was_asked_about_and_costs_what_prv_says(index):
    schedule, prv = SCHEDULES[index], read("prv")["schedules"][index]
    order = IdpganOrder.model_validate({"method": "idpgan", "epsilon": 1.0, **schedule["knobs"]})
    events = idpgan_events(
        order,
        noise_multiplier=schedule["noise_multiplier"],
        label_noise_multiplier=schedule["label_noise_multiplier"],
    )
    ours = in_runs(events)
    np.testing.assert_allclose(ours, schedule["events"], rtol=1e-12)
    epsilon = epsilon_of(events, delta=schedule["delta"], epsilon_scale=prv["estimate"])
    assert prv["lower"] <= epsilon <= prv["upper"]
    truth = mp.fsum(sampled_gaussian_renyi(q, noise, count, 8) for q, noise, count in schedule["events"])
    assert float(truth) <= renyi_divergence(events, 8) <= float(truth) * (1 + 1e-9)


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize(("q", "gradient", "histogram"), [(0.05, 1.3, 4.0), (0.4, 2.0, 2.0), (1.0, 1.0, 8.0)])
def test_histogram_and_gradient_on_one_batch_by_integration_over_both(q, gradient, histogram, order):
    """E over N(0, 1)² of the likelihood ratio of the *pair* to the power α; no use is made of the 1/σ² rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(160)
    weights = weights / weights.sum()
    first, second = np.meshgrid(nodes, nodes)
    log_ratio = first / gradient - 1 / (2 * gradient**2) + second / histogram - 1 / (2 * histogram**2)
    moment = np.sum(np.outer(weights, weights) * (1 - q + q * np.exp(log_ratio)) ** order)
    events = (SampledStepEvent(q, gradient, histogram, 1),)
    assert renyi_divergence(events, order) == pytest.approx(np.log(moment) / (order - 1), rel=1e-8)


def test_the_other_direction_of_a_sampled_gaussian_costs_less():
    """The Rényi account charges D(P‖Q); that D(Q‖P) is smaller is proved in the source, and seen here by quadrature."""
    x = np.linspace(-40.0, 41.0, 400_001)
    for q, sigma, order in [(0.01, 0.8, 8), (0.25, 1.0, 4), (0.6, 2.0, 16), (0.95, 1.5, 8)]:
        base = np.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
        log_ratio = np.log1p(q * np.expm1((2 * x - 1) / (2 * sigma**2)))
        reverse = math.log(np.trapezoid(base * np.exp(-(order - 1) * log_ratio), x)) / (order - 1)
        assert reverse <= renyi_divergence((SampledStepEvent(q, sigma, None, 1),), order)


# -- calibration ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 2.0, 10.0, 60.0])
@pytest.mark.parametrize("budget_delta", [1e-4, 1e-6, 1e-10])
def test_calibrated_noise_spends_the_request_by_the_closed_form(epsilon, budget_delta):
    """One full-batch step is one Gaussian, whose δ(ε) is known exactly."""
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": epsilon,
            "steps": 1,
            "sampling_probability": 1.0,
            "noise_decay": {"kind": "constant"},
        }
    )
    price = price_order(order, units=1_000, budget=open_budget(80.0, budget_delta))
    mu = 1 / mp.mpf(price.events[0].joint_noise_multiplier)
    assert gaussian_delta(epsilon, mu) <= price.delta
    assert gaussian_delta(epsilon * (1 - 1.5 * TOLERANCE), mu) > price.delta


@pytest.mark.parametrize(
    "knobs",
    [
        pytest.param({}, marks=pytest.mark.long),
        {"condition_on": "y"},
        {"steps": 7, "sampling_probability": 0.7},
    ],
)
def test_the_renyi_share_is_never_below_the_true_divergence(knobs):
    for budget in (open_budget(0.1, 1e-6), open_budget(4.0, 1e-6), open_budget(60.0, 1e-9)):
        price = price_order(
            IdpganOrder.model_validate({"method": "idpgan", "share": 0.1, **knobs}), units=30_000, budget=budget
        )
        truth = mp.fsum(
            sampled_gaussian_renyi(e.sampling_probability, e.joint_noise_multiplier, e.count, budget.renyi_order)
            for e in price.events
        )
        assert price.shares.renyi >= truth / mp.mpf(budget.renyi_capacity) * NANO
        assert price.shares.renyi <= truth / mp.mpf(budget.renyi_capacity) * NANO * (1 + 1e-8) + 2


def test_a_million_steps_of_almost_nothing_do_not_round_down_to_nothing():
    """In doubles, log(1 + 1e-16) is 0: the divergence of such a step would be lost a million times over."""
    for order in (2, 16, 64):
        ours = renyi_divergence((SampledStepEvent(1e-6, 100.0, None, 1_000_000),), order)
        assert ours >= sampled_gaussian_renyi(1e-6, 100.0, 1_000_000, order)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 1e-6), (3.0, 1e-5), (10.0, 1e-12)])
def test_the_capacity_is_the_exact_conversion(epsilon, delta):
    """Canonne, Kamath & Steinke 2020, Proposition 12, for every order of the grid, in 60 digits."""
    budget = open_budget(epsilon, delta)
    with mp.workdps(60):
        alpha, half = mp.mpf(budget.renyi_order), mp.mpf(delta) / 2 * (1 - mp.mpf(FAILURE_PART))
        b = mp.mpf(budget.renyi_capacity)
        implied = mp.exp((alpha - 1) * (b - mp.mpf(epsilon))) / (alpha - 1) * (1 - 1 / alpha) ** alpha
        assert abs(implied / half - 1) < mp.mpf(10) ** -9
    assert budget.renyi_order in RENYI_ORDERS


def test_a_wider_grid_is_never_cheaper_than_the_truth():
    """The width of the grid only costs tightness: even absurd widths stay above the closed form."""
    for scale in (1e-3, 1.0, 100.0):
        for noise_multiplier, steps in [(2.0, 1), (5.0, 50), (300.0, 100_000)]:
            epsilon = epsilon_of((GaussianEvent("x", noise_multiplier, steps),), delta=1e-7, epsilon_scale=scale)
            assert gaussian_delta(epsilon, mp.sqrt(steps) / mp.mpf(noise_multiplier)) <= 1e-7


# -- what is no price -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("divergence", [-1e-300, -1.0, math.nan, math.inf, -math.inf])
def test_a_divergence_that_is_none_never_becomes_a_cost(divergence):
    with pytest.raises(Unpriceable):
        renyi_cost(divergence, open_budget(1.0, 1e-6))


def test_costs_that_are_not_whole_finite_and_positive_are_no_shares():
    for cost in (-1, LARGEST_COST + 1, math.nan, math.inf, -math.inf, -0.5, 0.5, True, "1", None):
        with pytest.raises(Unpriceable):
            Shares(cost, 0)
        with pytest.raises(Unpriceable):
            Shares(0, cost)


def test_a_divergence_beyond_doubles_is_unpriceable_or_closes_the_account():
    budget = open_budget(1.0, 1e-6)
    divergence = renyi_divergence((SampledStepEvent(0.5, 1e-2, None, 1_000_000),), budget.renyi_order)
    assert renyi_cost(divergence, budget) == LARGEST_COST
    with pytest.raises(Unpriceable):
        renyi_divergence((SampledStepEvent(0.5, 1e-160, None, 1_000_000),), budget.renyi_order)


def test_a_loss_that_no_epsilon_bounds_is_unpriceable():
    events = (SampledStepEvent(1.0, 1e-3, None, 1_000),)
    try:
        epsilon = epsilon_of(events, delta=1e-9)
    except Unpriceable:
        return
    assert gaussian_delta(epsilon, mp.sqrt(1_000) / mp.mpf(1e-3)) <= 1e-9


def test_a_delta_far_below_the_rounding_of_doubles_has_its_epsilon():
    """Sums are relative to δ, however small: the hockey-stick divergence of one step, in 60 digits."""
    for delta in (1e-14, 1e-30, 1e-60):
        epsilon = epsilon_of((SampledStepEvent(0.01, 1.0, None, 1),), delta=delta, epsilon_scale=5.0)
        assert sampled_gaussian_delta(epsilon, 0.01, 1.0) <= delta < sampled_gaussian_delta(0.998 * epsilon, 0.01, 1.0)


def test_decimals_mean_themselves():
    assert exact(0.1) * 10 == 1
