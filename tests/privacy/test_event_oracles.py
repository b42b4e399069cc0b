"""Prices of pure, Laplace, exponential, parallel and selecting events: closed forms in 60 digits, dp_accounting, and real mechanisms.

Claims must never be below the truth, and be within 1 % of it.
"""

from __future__ import annotations

import math
from functools import reduce
from itertools import pairwise

import dp_accounting
import mpmath as mp
import numpy as np
import pytest
from dp_accounting import rdp
from dp_accounting.pld import privacy_loss_distribution as pld

from service.base.errors import Unpriceable
from service.privacy.accounting import (
    ADJACENCY,
    FLOAT_SLACK,
    RENYI_ORDERS,
    epsilon_of,
    loss_of,
    renyi_divergence,
    renyi_divergences,
)
from service.privacy.events import (
    ExponentialEvent,
    GaussianEvent,
    LaplaceEvent,
    ParallelEvent,
    PureEvent,
    RepeatAndSelectEvent,
    SampledStepEvent,
    to_dp_event,
)
from service.privacy.mechanisms import log_inverse_gamma
from service.privacy.renyi import CONVERSION_ORDERS

EPSILONS = (1e-5, 1e-3, 0.1, 1.0, 5.0, 40.0)
ORDERS = (2, 3, 8, 31, 64, 1_024)


def claim(*events, delta, scale):
    return epsilon_of(events, delta=delta, epsilon_scale=scale)


def check(claimed, true_delta, delta, *, part=0.01):
    """No lower than the truth, and within this part of it."""
    assert true_delta(claimed) <= delta, (claimed, delta)
    assert true_delta(claimed * (1.0 - part)) > delta, (claimed, delta)


# -- pure


def response_delta(epsilon, of_one, count):
    """δ(ε) of so many randomised responses, each of_one-DP: a finite sum over how often each told the truth."""
    with mp.workdps(60):
        one = mp.mpf(of_one)
        truth = mp.exp(one) / (1 + mp.exp(one))
        losses = ((k, (2 * k - count) * one) for k in range(count + 1))
        return mp.fsum(
            mp.binomial(count, k) * truth**k * (1 - truth) ** (count - k) * (1 - mp.exp(epsilon - loss))
            for k, loss in losses
            if loss > epsilon
        )


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9, 1e-12])
@pytest.mark.parametrize(
    ("epsilon", "count", "scale"), [(0.1, 100, 4.0), (1.0, 1, 1.0), (0.01, 400, 1.0), (3.0, 7, 20.0)]
)
def test_pure_events_cost_what_randomised_responses_do(epsilon, count, scale, delta):
    claimed = claim(PureEvent("x", epsilon, count), delta=delta, scale=scale)
    check(claimed, lambda at: response_delta(at, epsilon, count), delta)
    assert claimed <= epsilon * count * (1.0 + 1e-12)


def test_a_hundred_of_a_tenth():
    """Sum 10, advanced composition 5.85 (Dwork, Rothblum and Vadhan 2010), loss distribution 4.31."""
    one, count, delta = 0.1, 100, 1e-5
    advanced = math.sqrt(2 * count * math.log(1 / delta)) * one + count * one * math.expm1(one)
    assert advanced == pytest.approx(5.85, abs=0.005)
    assert claim(PureEvent("x", one, count), delta=delta, scale=4.0) == pytest.approx(4.31, abs=0.005)
    # At next to no δ nothing is better than the sum.
    assert claim(PureEvent("x", one, count), delta=1e-99, scale=10.0) == pytest.approx(10.0, rel=1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_a_single_pure_event_costs_its_epsilon(epsilon):
    claimed = claim(PureEvent("x", epsilon), delta=1e-15, scale=1.0)
    assert claimed == pytest.approx(epsilon, rel=1e-9)
    loss = loss_of((PureEvent("x", epsilon),), delta=1e-15)
    assert loss.delta(epsilon * (1.0 + 1e-9)) == 0.0


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_renyi_divergence_of_a_pure_event_is_that_of_randomised_response(epsilon):
    for order, ours in zip(ORDERS, renyi_divergences((PureEvent("x", epsilon),), ORDERS), strict=True):
        with mp.workdps(60):
            truth = mp.exp(epsilon) / (1 + mp.exp(epsilon))
            lie = 1 / (1 + mp.exp(epsilon))
            moment = truth**order * lie ** (1 - order) + lie**order * truth ** (1 - order)
            exact = mp.log(moment) / (order - 1)
            assert exact <= ours <= exact * (1 + mp.mpf(10) ** -12) + 2 * FLOAT_SLACK


# -- Laplace


@pytest.mark.parametrize("delta", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_one_laplace_event_has_its_closed_form(epsilon, delta):
    """δ(x) = 1 - e^((x - ε)/2)."""

    def true_delta(at):
        with mp.workdps(60):
            return max(mp.mpf(0), -mp.expm1((mp.mpf(at) - mp.mpf(epsilon)) / 2))

    check(claim(LaplaceEvent("x", 1.0 / epsilon), delta=delta, scale=epsilon), true_delta, delta)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_renyi_divergence_of_a_laplace_event_is_its_integral(epsilon):
    for order, ours in zip(ORDERS, renyi_divergences((LaplaceEvent("x", 1.0 / epsilon),), ORDERS), strict=True):
        with mp.workdps(60):
            one, alpha = mp.mpf(epsilon), mp.mpf(order)
            # ∫ p^α q^(1-α) for p, q ∝ e^-|x|, e^-|x - ε|: below 0, between, above ε.
            between = (mp.exp((alpha - 1) * one) - mp.exp(-alpha * one)) / (2 * (2 * alpha - 1))
            moment = mp.exp((alpha - 1) * one) / 2 + between + mp.exp(-alpha * one) / 2
            exact = mp.log(moment) / (order - 1)
            assert exact <= ours <= exact * (1 + mp.mpf(10) ** -9) + 2 * FLOAT_SLACK


@pytest.mark.parametrize(("epsilon", "order"), [(0.3, 2), (1.0, 7), (4.0, 3)])
def test_the_integral_of_a_laplace_event_by_quadrature(epsilon, order):
    x = np.linspace(-60.0, 60.0 + epsilon, 2_000_001)
    moment = np.trapezoid(np.exp(-order * np.abs(x) + (order - 1) * np.abs(x - epsilon)) / 2, x)
    ours = renyi_divergence((LaplaceEvent("x", 1.0 / epsilon),), order)
    assert ours == pytest.approx(math.log(moment) / (order - 1), rel=1e-6)


LISTS = {
    "laplace": ((LaplaceEvent("x", 10.0, 100),), 4.0),
    "few laplace": ((LaplaceEvent("x", 0.5, 3),), 5.0),
    "geometric, laplace, gaussian": ((LaplaceEvent("x", 2.0, 7), PureEvent("y", 0.3, 4), GaussianEvent("z", 3.0)), 5.0),
    "laplace beside steps": (
        (LaplaceEvent("x", 4.0, 9), SampledStepEvent(0.02, 1.2, None, 400), PureEvent("y", 0.2)),
        5.0,
    ),
}


def theirs(events, *, pessimistic):
    """Google's distribution of the loss, each rounding to one side."""
    step = {
        "value_discretization_interval": 1e-4,
        "pessimistic_estimate": pessimistic,
        "use_connect_dots": pessimistic,
    }
    losses = []
    for event in events:
        if event.kind == "pure":
            one = pld.from_discrete_laplace_mechanism(event.epsilon, 1, **step)
        elif event.kind == "laplace":
            one = pld.from_laplace_mechanism(event.noise_scale, **step)
        else:
            q = event.sampling_probability
            sampling = {} if q == 1.0 else {"sampling_prob": q, "neighboring_relation": ADJACENCY}
            one = pld.from_gaussian_mechanism(event.joint_noise_multiplier, **sampling, **step)
        losses.append(one.self_compose(event.count))
    return reduce(lambda left, right: left.compose(right), losses)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-8])
@pytest.mark.parametrize("name", LISTS)
def test_lists_cost_what_dp_accounting_says(name, delta):
    events, scale = LISTS[name]
    ours = claim(*events, delta=delta, scale=scale)
    assert theirs(events, pessimistic=False).get_epsilon_for_delta(delta) <= ours
    assert ours <= theirs(events, pessimistic=True).get_epsilon_for_delta(delta) * 1.003


def test_a_vector_with_laplace_noise_is_dominated_by_a_number():
    """One unit moves several numbers by parts that add up to 1: never more than if it moved one by all (docs/privacy.md, Other events)."""
    for parts in ((0.5, 0.5), (0.1, 0.9), (0.2, 0.3, 0.5), (0.05,) * 20):
        assert math.isclose(sum(parts), 1.0)
        for epsilon in (0.3, 2.0, 8.0):
            whole = (LaplaceEvent("x", 1.0 / epsilon),)
            split = tuple(LaplaceEvent("x", 1.0 / (epsilon * part)) for part in parts)
            for order in ORDERS:
                assert renyi_divergence(split, order) <= renyi_divergence(whole, order) * (1 + 1e-9)
            for delta in (1e-1, 1e-2):
                assert claim(*split, delta=delta, scale=epsilon) <= claim(*whole, delta=delta, scale=epsilon) * 1.001


# -- exponential


def exponential_mechanisms(epsilon):
    """Output probabilities at two neighbours, scores moved by at most 1: adversarial and random."""
    generator = np.random.default_rng(5)
    moves = [
        np.array([1.0, -1.0]),
        np.array([0.0, 1.0]),
        np.array([1.0] + [-1.0] * 9),
        *generator.uniform(-1, 1, (30, 6)),
    ]
    for move in moves:
        scores = generator.uniform(0, 4, len(move)) / epsilon
        for base in (scores, np.zeros(len(move)), -move / 2):
            with_unit, without = (np.exp(epsilon * s / 2) for s in (base + move, base))
            yield with_unit / with_unit.sum(), without / without.sum()


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 2.0, 6.0])
def test_no_exponential_mechanism_costs_more_than_its_event(epsilon):
    events = (ExponentialEvent("x", epsilon),)
    priced = renyi_divergences(events, ORDERS)
    loss = loss_of(events, delta=1e-3, epsilon_scale=epsilon)
    most = np.zeros(len(ORDERS))
    for p, q in exponential_mechanisms(epsilon):
        for place, order in enumerate(ORDERS):
            for a, b in ((p, q), (q, p)):
                exponents = order * np.log(a) + (1 - order) * np.log(b)
                divergence = float(np.logaddexp.reduce(exponents)) / (order - 1)
                assert divergence <= priced[place] * (1 + 1e-9) + 1e-12
                most[place] = max(most[place], divergence)
        for at in (0.0, epsilon / 3, epsilon * 0.9):
            assert max(0.0, float(np.maximum(p - math.exp(at) * q, 0).sum())) <= loss.delta(at) + 1e-12
    if epsilon <= 0.5:
        assert most[0] >= 0.9 * priced[0]  # the bound is nearly reached: half as much would be too little


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_exponential_event_costs_the_smaller_of_both_bounds(epsilon):
    pure = renyi_divergences((PureEvent("x", epsilon),), ORDERS)
    ours = renyi_divergences((ExponentialEvent("x", epsilon),), ORDERS)
    for order, by_pure, exponential in zip(ORDERS, pure, ours, strict=True):
        by_range = order * epsilon**2 / 8
        assert exponential == pytest.approx(min(by_pure, by_range), rel=1e-12, abs=2 * FLOAT_SLACK)
        assert exponential >= min(by_pure, by_range)
    delta = 1e-6
    assert claim(ExponentialEvent("x", epsilon, 9), delta=delta, scale=1.0) == claim(
        PureEvent("x", epsilon, 9), delta=delta, scale=1.0
    )


# -- parallel

TABLES = GaussianEvent("tables", 2.0, 2)
QUERY = PureEvent("query", 1.5)
STEPS = SampledStepEvent(0.02, 1.2, None, 300)


def test_a_release_in_parts_costs_its_dearest_part():
    events = (ParallelEvent("classes", ((TABLES,), (QUERY, LaplaceEvent("x", 2.0)), (STEPS,))), GaussianEvent("y", 4.0))
    for order in ORDERS[:4]:
        parts = [renyi_divergence((*part, events[1]), order) for part in events[0].parts]
        assert renyi_divergence(events, order) == pytest.approx(max(parts), rel=1e-12)
    for delta in (1e-2, 1e-5, 1e-9):
        parts = [claim(*part, events[1], delta=delta, scale=3.0) for part in events[0].parts]
        assert claim(*events, delta=delta, scale=3.0) == max(parts)
        assert len({round(part, 3) for part in parts}) == 3


def test_a_unit_may_be_in_any_part_of_each_split():
    """The dearest part of the first split is the first, of the second split the second."""
    small, large = PureEvent("x", 0.2), PureEvent("x", 1.0)
    events = (ParallelEvent("a", ((large,), (small,))), ParallelEvent("b", ((small,), (large,))))
    assert claim(*events, delta=1e-9, scale=2.0) == claim(PureEvent("x", 1.0, 2), delta=1e-9, scale=2.0)
    again = (ParallelEvent("a", ((large,), (TABLES,)), 2),)
    mixed = claim(large, TABLES, delta=1e-4, scale=2.0)
    assert claim(*again, delta=1e-4, scale=2.0) >= mixed
    for order in ORDERS:
        assert renyi_divergence(events, order) == pytest.approx(renyi_divergence((PureEvent("x", 1.0, 2),), order))


def test_a_release_of_one_part_costs_as_that_part():
    part = (TABLES, QUERY, STEPS)
    for delta in (1e-3, 1e-8):
        assert claim(ParallelEvent("x", (part,)), delta=delta, scale=4.0) == claim(*part, delta=delta, scale=4.0)
    assert renyi_divergences((ParallelEvent("x", (part,)),), ORDERS[:4]) == renyi_divergences(part, ORDERS[:4])
    twice = tuple(event.cut(2 * event.count) for event in part)
    assert claim(ParallelEvent("x", (part, part), 2), delta=1e-6, scale=6.0) == claim(*twice, delta=1e-6, scale=6.0)


def test_parts_within_parts_are_all_looked_at():
    inner = ParallelEvent("inner", ((QUERY,), (PureEvent("x", 2.5),)))
    outer = ParallelEvent("outer", ((inner,), (PureEvent("x", 0.1),)))
    assert claim(outer, delta=1e-9, scale=2.0) == claim(PureEvent("x", 2.5), delta=1e-9, scale=2.0)


def test_where_outputs_decide_between_parts_no_combination_is_enough():
    """After a response that tells much, a pure event; after one that tells little, a Gaussian. δ of that in closed form."""
    first, pure, sigma, at = 0.5, 2.0, 1.2, 1.8
    tells = math.exp(first) / (1.0 + math.exp(first))

    def gaussian(epsilon):
        a, b = epsilon * sigma - 0.5 / sigma, epsilon * sigma + 0.5 / sigma
        return mp.ncdf(-a) - mp.exp(epsilon) * mp.ncdf(-b)

    happens = tells * response_delta(at - first, pure, 1) + (1.0 - tells) * gaussian(at + first)
    parts = ((PureEvent("x", pure),), (GaussianEvent("y", sigma),))
    fixed, adaptive = (
        loss_of((PureEvent("z", first), ParallelEvent("w", parts, 1, follows)), delta=0.1, epsilon_scale=at).delta(at)
        for follows in (False, True)
    )
    assert fixed < 0.999 * happens
    assert adaptive >= happens
    events = (PureEvent("z", first), ParallelEvent("w", parts, 1, follows_outputs=True))
    assert renyi_divergence(events, 8) == renyi_divergence((*events[:1], ParallelEvent("w", parts)), 8)


def test_too_many_combinations_are_priced_by_renyi_divergences():
    split = ParallelEvent("x", tuple((PureEvent("y", 0.1 + 0.01 * part),) for part in range(5)))
    few, many = (split,) * 2, (split,) * 3
    dearest = PureEvent("y", 0.14)
    assert claim(*few, delta=1e-6, scale=0.3) == claim(dearest.cut(2), delta=1e-6, scale=0.3)
    exact = claim(dearest.cut(3), delta=1e-6, scale=0.4)
    assert exact <= claim(*many, delta=1e-6, scale=0.4) <= 4.0 * exact


# -- repeat and select


BASES = (
    (GaussianEvent("x", 3.0),),
    (SampledStepEvent(0.01, 1.0, None, 500), GaussianEvent("x", 9.0)),
    (LaplaceEvent("x", 10.0, 3),),
)


@pytest.mark.slow
@pytest.mark.parametrize(("mean", "shape"), [(10.0, 1.0), (10.0, 0.0), (100.0, 0.5), (2.0, 7.0), (10.0, None)])
@pytest.mark.parametrize("base", BASES, ids=["gaussian", "steps", "laplace"])
def test_a_selection_costs_what_dp_accounting_says(base, mean, shape):
    events = (RepeatAndSelectEvent("x", base, mean, shape),)
    accountant = rdp.RdpAccountant(list(CONVERSION_ORDERS), ADJACENCY)
    accountant.compose(to_dp_event(events))
    # A divergence grows with its order; for Poisson their bound does not, and the least one at a larger order holds.
    theirs = np.minimum.accumulate(accountant.rdp[::-1])[::-1]
    ours = renyi_divergences(events, CONVERSION_ORDERS)
    for bound, other in zip(ours, theirs, strict=True):
        assert other <= bound * (1 + 1e-13)
        assert bound <= other * (1 + 1e-8)
    largest = (2.0 + shape) * 0.3 if base[0].kind == "laplace" and shape is not None else math.inf  # ε-DP as a whole
    for delta in (1e-5, 1e-9):
        other = min(accountant.get_epsilon(delta), largest)
        assert other <= claim(*events, delta=delta, scale=1.0) * (1 + 1e-12)
        assert claim(*events, delta=delta, scale=1.0) <= other * 1.001


@pytest.mark.parametrize(("shape", "mean"), [(1.0, 5.0), (0.0, 5.0), (3.0, 12.0), (0.5, 40.0)])
def test_the_number_of_runs_has_the_mean_that_is_paid_for(shape, mean):
    """Papernot and Steinke 2022, Definition 1, summed up."""
    with mp.workdps(30):
        gamma = mp.exp(-mp.mpf(log_inverse_gamma(mean, shape)))

        def weight(k):
            if shape == 0.0:
                return (1 - gamma) ** k / (k * mp.log(1 / gamma))
            return mp.rf(shape, k) / mp.factorial(k) * (1 - gamma) ** k / (gamma**-shape - 1)

        weights = [weight(k) for k in range(1, 4_000)]
        assert abs(mp.fsum(weights) - 1) < 1e-9
        found = mp.fsum(k * w for k, w in enumerate(weights, start=1))
        assert mean <= found * (1 + mp.mpf(10) ** -12)
        assert found <= mean * (1 + 1e-7)


def test_a_selection_beside_other_events_is_priced_as_a_whole():
    selection, steps = RepeatAndSelectEvent("x", BASES[0], 4.0, 1.0), SampledStepEvent(0.01, 1.0, None, 300)
    both = [
        renyi_divergence((selection,), order) + renyi_divergence((steps, QUERY), order) for order in CONVERSION_ORDERS
    ]
    assert renyi_divergences((steps, selection, QUERY), CONVERSION_ORDERS) == pytest.approx(both, rel=1e-9)
    by_hand = min(
        rdp.compute_epsilon([order], [divergence], 1e-6)[0]
        for order, divergence in zip(CONVERSION_ORDERS, both, strict=True)
    )
    assert claim(steps, selection, QUERY, delta=1e-6, scale=3.0) == pytest.approx(by_hand, rel=1e-6)
    loss = loss_of((steps, selection), delta=1e-6)
    assert loss.delta(loss.epsilon(1e-6)) == pytest.approx(1e-6, rel=1e-6)
    assert loss.delta(0.0) == 1.0


@pytest.mark.parametrize("runs", [2, 3])
def test_a_real_selection_costs_no_more(runs):
    """Randomised responses run K times (geometric), of which one 'yes' is released if there is any."""
    epsilon, gamma = 0.5, 1.0 / runs
    truth = math.exp(epsilon) / (1.0 + math.exp(epsilon))

    def no(of_one):  # P(no run says yes) = E[(1 - p)^K]
        return gamma * (1.0 - of_one) / (1.0 - (1.0 - gamma) * (1.0 - of_one))

    p, q = (np.array([1.0 - no(yes), no(yes)]) for yes in (truth, 1.0 - truth))
    priced = renyi_divergences((RepeatAndSelectEvent("x", (PureEvent("y", epsilon),), float(runs), 1.0),), RENYI_ORDERS)
    for order, bound in zip(RENYI_ORDERS[:60], priced, strict=False):
        for a, b in ((p, q), (q, p)):
            assert math.log(float((a**order * b ** (1 - order)).sum())) / (order - 1) <= bound
    # One run costs less: paying for the base alone would be too little.
    worst = max(math.log(float((a**64 * b**-63).sum())) / 63 for a, b in ((p, q), (q, p)))
    assert worst > renyi_divergence((PureEvent("y", epsilon),), 64)


# -- all of them


def test_a_divergence_grows_with_its_order():
    for event in (
        PureEvent("x", 0.7),
        LaplaceEvent("x", 3.0),
        ExponentialEvent("x", 1.0),
        RepeatAndSelectEvent("x", BASES[0], 9.0, None),
    ):
        grown = renyi_divergences((event,), RENYI_ORDERS)
        assert all(left <= right * (1 + 1e-12) for left, right in pairwise(grown))


def test_lists_without_a_counterpart_are_refused_by_name():
    for event in (ExponentialEvent("x", 1.0), ParallelEvent("x", ((QUERY,),))):
        with pytest.raises(Unpriceable, match="dp_accounting has no event"):
            to_dp_event((event,))
    assert isinstance(to_dp_event((TABLES, STEPS)), dp_accounting.ComposedDpEvent)
