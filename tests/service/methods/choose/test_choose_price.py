"""`method: choose` before a row is read: what is refused, what it costs, and what is filled in."""

import json
import math

import pytest

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.methods.catalogue import check_order, parse_order, with_method
from service.methods.choose.methods import METHODS
from service.methods.choose.price import events
from service.methods.choose.runs import exceeded_rarely, gamma_of
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.privacy.accounting import epsilon_of, renyi_divergence
from service.privacy.calibration import is_paid
from service.privacy.events import (
    ExponentialEvent,
    GaussianEvent,
    OneOfEvent,
    ParallelEvent,
    events_from_json,
    events_to_json,
)
from service.privacy.filters import NANO, Shares
from tests.catalogue import BUDGET, TABLE_SCHEMA, UNITS, case_of

FACTS = Facts.of_declaration(json.dumps(TABLE_SCHEMA), units=UNITS, most_per_unit=1, budget=BUDGET)
SCHEMA = parse_schema(TABLE_SCHEMA)


def resolved(**knobs):
    order = parse_order({"method": "choose", "epsilon": 2.0, **knobs})
    return resolve_order(order, FACTS, Shares(NANO, NANO), SCHEMA)


@pytest.mark.parametrize(
    ("candidates", "sentence"),
    [
        ([{"method": "queries", "questions": [{"kind": "count"}]}], "choose one of 'marginals', 'idpgan'"),
        ([{"method": "choose", "candidates": [{"method": "marginals"}]}], "choose one of 'marginals', 'idpgan'"),
        ([{"method": "mixture"}], "choose one of 'marginals', 'idpgan'"),
        ([{"method": "marginals"}, {"method": "idpgan"}], "orders of one method"),
        ([{"method": "marginals", "epsilon": 1.0}], "no price of its own"),
        ([{"method": "marginals", "share": "rest"}], "no price of its own"),
        ([{"method": "marginals", "numeric_bin": 4}], "no such knob; there are: .*numeric_bins.*did you mean"),
        (
            [{"method": "marginals", "condition_on": "size"}],
            "candidates.0.condition_on: 'size' is not a column with declared",
        ),
        ([{"method": "marginals", "chosen_because": "x"}], "chosen_because may not be ordered"),
        ([{"method": "marginals", "report": {"share": 0.1}}], "candidates.0.report: of the release as a whole"),
        ([{"method": "marginals", "owner_report": True}], "candidates.0.owner_report: of the release as a whole"),
        ([{"method": "marginals"}] * 17, "at most 16"),
        ([{"method": "idpgan", "image_networks": {}}], "candidates.0: image_networks"),
        ([{"method": "marginals"}] * 16, None),
        ([], "at least 1"),
    ],
)
def test_candidates_are_orders_of_one_method_that_draws_rows(candidates, sentence):
    def place():
        check_order(parse_order({"method": "choose", "epsilon": 1.0, "candidates": candidates}), SCHEMA)

    if sentence is None:
        place()
        return
    with pytest.raises(InvalidOrder, match=sentence):
        place()


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"target": "size"}, "target: 'size' is not a column with declared categories; choose one of"),
        ({"target": "color"}, "did you mean"),
        ({"trials": [{"method": "marginals"}]}, "filled in"),
        ({"condition_on": "colour"}, "say it in each candidate"),
        ({"purpose": "tables"}, "say it in each candidate"),
    ],
)
def test_what_else_is_refused(knobs, sentence):
    order = {"method": "choose", "epsilon": 1.0, "candidates": [{"method": "marginals"}], **knobs}
    with pytest.raises(InvalidOrder, match=sentence):
        check_order(parse_order(order), SCHEMA)


def test_a_table_without_categories_has_nothing_to_predict():
    schema = parse_schema({"fields": [field for field in TABLE_SCHEMA["fields"] if field["name"] != "colour"]})
    order = parse_order({"method": "choose", "epsilon": 1.0, "candidates": [{"method": "marginals"}]})
    with pytest.raises(InvalidOrder, match="no field of this dataset has any"):
        check_order(order, schema)


def test_parts_of_too_few_units_are_refused():
    with pytest.raises(InvalidOrder, match="leave 19 units"):
        resolve_order(
            parse_order({"method": "choose", "epsilon": 1.0, "candidates": [{"method": "marginals"}] * 16}),
            Facts.of_declaration(json.dumps(TABLE_SCHEMA), units=330, most_per_unit=1, budget=BUDGET),
            Shares(NANO, NANO),
            SCHEMA,
        )


def test_auto_never_chooses_it():
    assert with_method(parse_order({"epsilon": 1.0}), FACTS).method != "choose"


def test_candidates_are_settled_for_their_part_and_for_all_units():
    order = resolved(candidates=[{"method": "idpgan", "steps": 5, "noise_decay": {"kind": "constant"}}] * 3)
    assert {each.sampling_probability for each in order.trials} == {0.25}
    assert {each.sampling_probability for each in order.candidates} == {0.25}
    big = Facts.of_declaration(json.dumps(TABLE_SCHEMA), units=40_000, most_per_unit=1, budget=BUDGET)
    unsettled = parse_order({"method": "choose", "epsilon": 2.0, "candidates": [{"method": "idpgan"}] * 3})
    order = resolve_order(unsettled, big, Shares(NANO, NANO), SCHEMA)
    assert {each.sampling_probability for each in order.trials} == {512 / 10_000}
    assert {each.sampling_probability for each in order.candidates} == {512 / 40_000}
    assert order.target == "colour"


def test_one_candidate_costs_the_dearer_of_try_and_choice_and_the_last_run():
    """SEEDS D: max(ε_1, ε_s) + ε, and composition makes it no dearer."""
    order = resolved(candidates=[{"method": "marginals"}], selection_share=0.3)
    delta = 2.0 / BUDGET.epsilon * BUDGET.account_delta
    trials, winner = events(order, 2.0, delta)(1.0)
    (trial, (choice,)) = trials.parts
    assert choice.epsilon == pytest.approx(0.6)
    assert epsilon_of(trial, delta=0.3 * delta) == pytest.approx(0.6, rel=0.011)
    assert epsilon_of(winner.lists[0], delta=0.7 * delta) == pytest.approx(1.4, rel=0.011)
    whole = epsilon_of((trials, winner), delta=delta)
    parts = max(epsilon_of(trial, delta=0.3 * delta), choice.epsilon) + epsilon_of(winner.lists[0], delta=0.7 * delta)
    assert whole <= parts
    assert whole >= max(epsilon_of(winner.lists[0], delta=delta), choice.epsilon)


@pytest.mark.parametrize("form", ["parts", "repeat"])
def test_the_price_is_within_one_per_cent_below_what_was_ordered_and_is_paid(form):
    order = resolved(candidates=[{"method": "marginals"}, {"method": "marginals", "purpose": "tables"}], form=form)
    price = price_order(order, BUDGET)
    assert 0.99 * 2.0 <= price.pld_epsilon <= 2.0
    assert is_paid(price.events, price.shares, BUDGET, epsilon_scale=2.0)
    cheaper = Shares(simple=price.shares.simple * 9 // 10, renyi=price.shares.renyi * 9 // 10)
    assert not is_paid(price.events, cheaper, BUDGET, epsilon_scale=2.0)


def test_the_choice_is_part_of_the_price():
    """Without it the list is cheaper in the Rényi account, in which it is the dearest part."""
    trials, winner = price_order(resolved(candidates=[{"method": "marginals"}] * 2), BUDGET).events
    assert trials.parts[-1][0].kind == ExponentialEvent.kind
    unpaid = ParallelEvent(trials.purpose, trials.parts[:-1])
    order = BUDGET.renyi_order
    assert renyi_divergence((unpaid, winner), order) < 0.9 * renyi_divergence((trials, winner), order)


def test_one_of_several_lists_costs_the_dearest():
    cheap = METHODS["marginals"].events(case_of("marginals", "table").order, 1.0, 1e-7)(4.0)
    dear = METHODS["marginals"].events(case_of("marginals", "table").order, 1.0, 1e-7)(2.0)
    either = OneOfEvent("choose_winner", (cheap, dear))
    for order in (2, 8, 64):
        assert renyi_divergence((either,), order) == pytest.approx(renyi_divergence(dear, order), rel=1e-9)
    assert epsilon_of((either,), delta=1e-6) >= epsilon_of(dear, delta=1e-6)
    alike = OneOfEvent("choose_winner", (dear, dear))
    assert epsilon_of((alike,), delta=1e-6) == epsilon_of(dear, delta=1e-6)
    assert events_from_json(json.loads(json.dumps(events_to_json((either,))))) == (either,)


def test_which_list_runs_may_follow_what_was_released():
    """So unlike lists have no loss distribution: each alone may cost less than the one that an output points to."""
    unlike = tuple((GaussianEvent("marginals", noise),) * many for noise, many in ((2.0, 1), (20.0, 3)))
    assert OneOfEvent("choose_winner", unlike).mechanism.ways(1) is None
    assert OneOfEvent("choose_winner", unlike[:1] * 2).mechanism.ways(1) is not None


def test_a_logarithmic_number_of_runs_leaves_more_for_each_of_them():
    candidates = [{"method": "marginals"}]
    costs = {}
    for shape in (0.0, 1.0):
        order = resolved(candidates=candidates, form="repeat", mean_runs=10, runs_shape=shape)
        (event,) = price_order(order, BUDGET).events
        assert (event.mean, event.shape) == (10.0, shape)
        costs[shape] = epsilon_of(event.base, delta=1e-5)
    assert costs[0.0] > costs[1.0]  # what selecting costs less is left for the runs


@pytest.mark.parametrize(("mean", "shape"), [(1.0, 1.0), (3.0, 1.0), (10.0, 0.0), (4.0, 0.5)])
def test_so_many_runs_are_exceeded_once_in_a_million(mean, shape):
    gamma, runs = gamma_of(mean, shape), exceeded_rarely(mean, shape, 1e-6)
    weights, weight = [], 1.0
    for k in range(1, 20_000):
        weights.append(weight)
        weight *= (1.0 - gamma) * (k + shape) / (k + 1)
    total = math.fsum(weights)
    assert math.fsum(k * each for k, each in enumerate(weights, 1)) / total == pytest.approx(mean, rel=1e-6)
    assert math.fsum(k * each for k, each in enumerate(weights, 1)) / total <= mean
    assert math.fsum(weights[runs:]) / total <= 1e-6
    assert runs == 1 or math.fsum(weights[runs - 1 :]) / total > 1e-6
