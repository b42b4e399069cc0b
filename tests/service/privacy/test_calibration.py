"""Prices: from the order and n alone, from below within 1 %, honest about joint releases on one batch."""

import math
from collections import Counter

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp

from service.base.errors import InvalidOrder, Unpriceable
from service.methods.catalogue import parse_order
from service.methods.idpgan.order import IdpganOrder
from service.privacy import calibration
from service.privacy.accounting import ADJACENCY, RENYI_ORDERS, epsilon_of, first_steps, loss_of, renyi_divergence
from service.privacy.events import (
    GaussianEvent,
    SampledStepEvent,
    events_from_json,
    events_to_json,
    steps_in,
    to_dp_event,
)
from service.privacy.filters import FAILURE_PART, NANO, exact, open_budget, renyi_capacity, renyi_epsilon, simple_cost
from tests.orders import largest_epsilon, price_order, resolve_order


def order(**knobs):
    return IdpganOrder.model_validate({"method": "idpgan", **knobs})


@pytest.mark.parametrize("epsilon", [0.02, 1.0, 15.0])
@pytest.mark.parametrize(
    "knobs",
    [
        {},
        {"condition_on": "label"},
        {"noise_decay": {"kind": "constant"}, "thresholds": {"kind": "fixed"}, "clusters": {"kind": "none"}},
        {"noise_decay": {"kind": "periodic"}, "thresholds": {"kind": "adaptive", "every_steps": 13}},
        {"noise_decay": {"kind": "polynomial"}, "steps": 37, "sampling_probability": 0.9},
        {"sampling_probability": 1.0, "steps": 3},
    ],
    ids=["default", "conditional", "all off", "sparse histograms", "short", "full batch"],
)
def test_the_price_hits_the_requested_epsilon_from_below_within_one_percent(epsilon, knobs):
    budget = open_budget(2 * epsilon, 1e-6)
    price = price_order(order(epsilon=epsilon, **knobs), units=50_000, budget=budget)
    # Checked by dp_accounting itself, from the list alone. More exactly: tests/privacy/test_losses.py.
    accountant = pld.PLDAccountant(ADJACENCY, value_discretization_interval=min(1e-3, epsilon * 4e-4))
    counts = Counter()
    for event in (each for runs in price.events for each in runs.alike):
        counts[event.sampling_probability, event.joint_noise_multiplier] += event.count
    for (q, noise_multiplier), count in counts.items():
        gaussian = dp_accounting.GaussianDpEvent(noise_multiplier)
        sampled = gaussian if q == 1.0 else dp_accounting.PoissonSampledDpEvent(q, gaussian)
        accountant.compose(dp_accounting.SelfComposedDpEvent(sampled, count))
    independent = accountant.get_epsilon(price.delta)
    assert 0.985 * epsilon <= independent <= 1.001 * epsilon
    assert 0.99 * epsilon <= price.pld_epsilon <= epsilon == price.epsilon
    assert price.delta == pytest.approx(0.5e-6 / 2)
    assert price.shares.simple == NANO // 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
def test_a_search_for_noise_composes_the_list_three_times_at_most(monkeypatch, epsilon):
    """A composition is what a price takes: up to a second of a core for three thousand steps."""
    composed = []

    def counted(events, **scale):
        composed.append(events)
        return loss_of(events, **scale)

    monkeypatch.setattr(calibration, "loss_of", counted)
    price_order(order(epsilon=epsilon, steps=1_000), units=30_011, budget=open_budget(10.0, 1e-6))
    assert 1 <= len(composed) <= 3


def test_an_order_that_delta_alone_covers_is_refused_without_a_search(monkeypatch):
    composed = []
    monkeypatch.setattr(calibration, "loss_of", lambda *_, **__: composed.append(1))
    with pytest.raises(Unpriceable, match="no amount of noise"):  # a unit is drawn with probability 1e-3
        price_order(
            order(epsilon=3.0, steps=100, sampling_probability=1e-5), units=10_000, budget=open_budget(3.0, 0.01)
        )
    assert not composed


def test_neither_is_one_where_counts_of_all_units_stand_beside_what_delta_covers(monkeypatch):
    composed = []
    monkeypatch.setattr(calibration, "loss_of", lambda *_, **__: composed.append(1))
    for q in (1e-300, 1e-10):
        with pytest.raises(Unpriceable, match="no amount of noise"):
            calibration.least_noise(
                lambda noise, q=q: (GaussianEvent("label_counts", 50.0), SampledStepEvent(q, noise, None, 500)),
                1.0,
                1e-7,
            )
    assert not composed


@pytest.mark.parametrize(
    "knobs",
    [
        {"method": "dpsyn", "moments_precision_share": 0.6, "count_precision_share": 0.4},
        {"method": "dpsyn", "moments_precision_share": 0.6, "report": {"share": 0.45}},
        {"method": "idpgan", "label_precision_share": 0.9999, "condition_on": "label"},
    ],
)
def test_fixed_parts_that_leave_nothing_are_named_and_no_noise_is_searched(knobs, monkeypatch):
    """A larger ε, which the other refusal advises, would not help: they are parts of whatever is ordered."""
    composed = []
    monkeypatch.setattr(calibration, "loss_of", lambda *_, **__: composed.append(1))
    for epsilon in (0.1, 10.0):
        ordered = parse_order({"epsilon": epsilon, "sampling_probability": 0.1, **knobs})
        with pytest.raises(Unpriceable, match="share in its name"):
            price_order(ordered, units=10_000, budget=open_budget(10.0, 1e-6))
    assert not composed


def test_a_share_of_next_to_all_steps_is_named_too():
    """Of `rdpcgan` the autoencoder's share is one of the noise that is searched, so that nothing in the list is fixed."""
    for share in (1.0 - 1e-10, 1.0 - 1e-14):
        knobs = {
            "method": "rdpcgan",
            "epsilon": 1.0,
            "sampling_probability": 0.1,
            "autoencoder": {"precision_share": share},
        }
        with pytest.raises(Unpriceable, match="share in its name"):
            price_order(parse_order(knobs), units=10_000, budget=open_budget(10.0, 1e-6))


def test_the_whole_epsilon_of_a_fresh_dataset_is_exactly_its_whole_share():
    for epsilon in (0.1, 0.3, 1 / 3, 2.7, 10.0):
        budget = open_budget(epsilon, 1e-6)
        assert price_order(order(epsilon=epsilon), units=10_000, budget=budget).shares.simple == NANO
        assert price_order(order(share=1.0), units=10_000, budget=budget).shares.simple == NANO


def test_costs_round_up_and_decimals_mean_themselves():
    assert simple_cost(exact(0.1) / exact(1.0)) == 100_000_000
    assert simple_cost(exact(1.0) / exact(3.0)) == 333_333_334
    assert simple_cost(exact(1e-12)) == 1


def test_histogram_and_gradient_on_one_batch_are_one_gaussian():
    step = SampledStepEvent(0.01, 2.0, 4.0, 10)
    assert step.joint_noise_multiplier == pytest.approx((1 / 4 + 1 / 16) ** -0.5)
    alone = SampledStepEvent(0.01, 2.0, None, 10)
    assert renyi_divergence((step,), 8) > renyi_divergence((alone,), 8)


def test_every_histogram_is_on_the_list():
    resolved = resolve_order(
        order(epsilon=1.0, steps=100, thresholds={"kind": "adaptive", "every_steps": 7}), units=10_000
    )
    events = price_order(resolved, units=10_000, budget=open_budget(1.0, 1e-6)).events
    alike = [each for event in events for each in event.alike]
    with_histogram = sum(e.count for e in alike if e.histogram_noise_multiplier is not None)
    assert steps_in(events) == 100
    assert with_histogram == math.ceil(100 / 7)


def test_label_counts_are_charged_only_when_bought():
    budget = open_budget(4.0, 1e-6)
    conditional = price_order(order(epsilon=4.0, condition_on="y"), units=10_000, budget=budget).events
    plain = price_order(order(epsilon=4.0), units=10_000, budget=budget).events
    assert isinstance(conditional[0], GaussianEvent)
    assert conditional[0].purpose == "label_counts"
    assert not any(isinstance(event, GaussianEvent) for event in plain)


def test_the_renyi_share_is_dp_accountings_divergence_rounded_up():
    budget = open_budget(4.0, 1e-6)
    price = price_order(order(epsilon=1.0), units=10_000, budget=budget)
    accountant = rdp.RdpAccountant([budget.renyi_order], ADJACENCY)
    accountant.compose(to_dp_event(price.events))
    expected = accountant.rdp[0] / budget.renyi_capacity * NANO
    assert expected <= price.shares.renyi <= expected + 5


def test_capacity_and_epsilon_are_inverse_and_the_order_is_the_best_of_the_grid():
    for epsilon in (0.05, 1.0, 4.0, 10.0):
        budget = open_budget(epsilon, 1e-6)
        assert renyi_epsilon(budget.renyi_capacity, budget.conversion_delta, budget.renyi_order) == pytest.approx(
            epsilon
        )
        best = max(renyi_capacity(epsilon, (1.0 - FAILURE_PART) * budget.account_delta, a) / a for a in RENYI_ORDERS)
        assert budget.renyi_capacity / budget.renyi_order == best


def test_many_small_releases_compose_tightly_in_the_renyi_account():
    budget = open_budget(4.0, 1e-6)
    price = price_order(order(share=0.02, steps=200), units=50_000, budget=budget)
    assert NANO // price.shares.renyi > 3 * (NANO // price.shares.simple)


@pytest.mark.parametrize("knobs", [{}, pytest.param({"condition_on": "y"}, marks=pytest.mark.long)])
@pytest.mark.parametrize("left", [500_000_000, 50_000_000, 3_000_000])
def test_the_largest_next_epsilon_fits(knobs, left):
    budget = open_budget(3.0, 1e-6)
    epsilon = largest_epsilon(order(share="rest", **knobs), units=20_000, budget=budget, simple_left=0, renyi_left=left)
    price = price_order(order(epsilon=epsilon, **knobs), units=20_000, budget=budget)
    assert 0.9 * left < price.shares.renyi <= left


def test_the_list_survives_json_and_an_unknown_kind_is_refused():
    events = price_order(order(epsilon=1.0, condition_on="y"), units=9_999, budget=open_budget(2.0, 1e-6)).events
    assert events_from_json(events_to_json(events)) == events
    with pytest.raises(Unpriceable, match="laplacian"):
        events_from_json([{"kind": "laplacian"}])


def test_a_cut_list_costs_less_and_keeps_the_labels():
    events = price_order(order(epsilon=1.0, condition_on="y"), units=9_999, budget=open_budget(2.0, 1e-6)).events
    cut = first_steps(events, 123)
    assert steps_in(cut) == 123
    assert cut[0] == events[0]
    assert renyi_divergence(cut, 8) < renyi_divergence(events, 8)
    assert first_steps(events, 10**9) == events


def test_a_coarser_grid_only_overstates():
    events = (SampledStepEvent(0.02, 1.5, None, 500),)
    fine = epsilon_of(events, delta=1e-6, epsilon_scale=0.1)
    assert fine <= epsilon_of(events, delta=1e-6, epsilon_scale=3.0) <= epsilon_of(events, delta=1e-6, epsilon_scale=50)


@pytest.mark.parametrize("noise", [0.0, -1.0, math.nan, math.inf])
def test_noise_that_is_no_noise_is_refused(noise):
    with pytest.raises(Unpriceable):
        GaussianEvent("label_counts", noise)
    with pytest.raises(Unpriceable):
        SampledStepEvent(0.1, noise, None, 1)


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"method": "idpgan"}, "order"),
        ({"method": "idpgan", "epsilon": 0}, "epsilon"),
        ({"method": "idpgan", "epsilon": -1}, "epsilon"),
        ({"method": "idpgan", "epsilon": math.nan}, "epsilon"),
        ({"method": "idpgan", "epsilon": math.inf}, "epsilon"),
        ({"method": "idpgan", "epsilon": 1e308}, "epsilon"),
        ({"method": "idpgan", "epsilon": 1, "share": 0.5}, "order"),
        ({"method": "idpgan", "share": 1.5}, "share"),
        ({"method": "idpgan", "share": "most"}, "share"),
        ({"method": "idpgan", "epsilon": 1, "sigma": 3}, "sigma"),
        ({"method": "gan", "epsilon": 1}, "method"),
        ({"method": ["idpgan"], "epsilon": 1}, "method"),
        ({"method": "idpgan", "epsilon": 1, "noise_decay": {"kind": "linear"}}, "noise_decay"),
        ({"method": "idpgan", "epsilon": 1, "steps": 10**9}, "steps"),
        ([], "order"),
        (None, "order"),
    ],
)
def test_a_wrong_order_names_its_knob(document, where):
    with pytest.raises(InvalidOrder) as caught:
        parse_order(document)
    assert caught.value.values["where"].split(".")[0] == where


def test_an_order_that_no_noise_can_make_affordable_is_unpriceable():
    with pytest.raises(Unpriceable):
        price_order(
            order(epsilon=1e-7, sampling_probability=1.0, steps=1_000_000), units=100, budget=open_budget(1.0, 1e-6)
        )


@pytest.mark.parametrize("wrong", [-1e-9, math.nan, math.inf])
def test_a_divergence_that_is_no_number_is_never_a_price(monkeypatch, wrong):
    """dp_accounting only warns on a negative divergence and then reports ε = 0."""
    monkeypatch.setattr(rdp.RdpAccountant, "rdp", property(lambda _: np.array([wrong])))
    with pytest.raises(Unpriceable):
        renyi_divergence((SampledStepEvent(0.1, 1.0, None, 1),), 8)
