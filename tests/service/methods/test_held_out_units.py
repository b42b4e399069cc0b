"""Held-out units of a report: what an order may say of them, and what the method is resolved and priced for."""

import json

import pytest

from service.base.errors import InvalidOrder
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import CATALOGUE, check_order, parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.methods.report import (
    REPORT_HELD_OUT,
    forecast_of,
    half_width,
    held_out_units,
    released_for,
    split,
    target_of,
)
from service.methods.wants import least_epsilon, parse_want
from service.privacy.events import GaussianEvent
from service.privacy.filters import NANO, Shares
from tests.catalogue import BUDGET, TABLE_SCHEMA, UNITS, case_of

SCHEMA = parse_table_schema(TABLE_SCHEMA)
LEFT = Shares(NANO, NANO)


def facts(units=UNITS, most=1):
    return Facts.of_declaration(json.dumps(TABLE_SCHEMA), units=units, most_per_unit=most, budget=BUDGET)


def ordered(**knobs):
    return parse_order({"method": "marginals", "epsilon": 1.0, **knobs})


@pytest.mark.parametrize("share", [0.005, 0.0, 0.6, "a tenth"])
def test_a_part_that_leaves_too_little_is_refused(share):
    with pytest.raises(InvalidOrder) as raised:
        ordered(report={"held_out": share})
    assert raised.value.values["where"] == "report.held_out"


@pytest.mark.parametrize("limit", [0.0, 1.0])
def test_an_accuracy_that_says_nothing_is_refused(limit):
    with pytest.raises(InvalidOrder):
        ordered(report={"held_out": 0.1}, accept={"accuracy": limit})


def test_accuracy_is_accepted_only_where_it_is_measured():
    with pytest.raises(InvalidOrder, match="held_out"):
        ordered(report={}, accept={"accuracy": 0.8})
    assert ordered(report={"held_out": 0.1}, accept={"accuracy": 0.8}).accept.accuracy == 0.8


@pytest.mark.parametrize(
    ("change", "knobs", "says"),
    [
        ({"target": None}, {}, "such as colour"),
        ({"target": None}, {"condition_on": "colour"}, None),
        ({}, {}, None),
        ({"fields": TABLE_SCHEMA["fields"][:1]}, {}, "no other column"),
        ({"fields": TABLE_SCHEMA["fields"][1:], "target": None}, {}, "no field of this dataset"),
    ],
)
def test_there_must_be_something_to_predict(change, knobs, says):
    document = {name: value for name, value in {**TABLE_SCHEMA, **change}.items() if value is not None}
    schema, order = parse_table_schema(document), ordered(report={"held_out": 0.1}, **knobs)
    if says is None:
        check_order(order, schema)
        assert target_of(order, schema) == "colour"
        return
    with pytest.raises(InvalidOrder, match=says) as raised:
        check_order(order, schema)
    assert raised.value.values["where"] == "report.held_out"


def test_a_choice_predicts_what_its_own_classifier_does():
    schema = parse_table_schema({"fields": TABLE_SCHEMA["fields"]})
    candidates = [{"method": "marginals"}, {"method": "marginals", "numeric_bins": 4}]
    order = parse_order(
        {"method": "choose", "epsilon": 1.0, "target": "colour", "candidates": candidates, "report": {"held_out": 0.1}}
    )
    assert target_of(order, schema) == "colour"


def test_a_target_of_many_categories_is_not_predicted():
    many = {"name": "colour", "type": "string", "constraints": {"enum": [f"c{i}" for i in range(33)], "required": True}}
    schema = parse_table_schema({**TABLE_SCHEMA, "fields": [many, *TABLE_SCHEMA["fields"][1:]]})
    with pytest.raises(InvalidOrder, match="at most 32"):
        check_order(ordered(report={"held_out": 0.1}), schema)


def test_too_few_units_are_no_test():
    with pytest.raises(InvalidOrder, match="20 are the least"):
        resolve_order(ordered(report={"held_out": 0.01}), facts(), LEFT, SCHEMA)


def test_the_method_is_resolved_for_the_units_that_it_has():
    order = parse_order({"method": "idpgan", "epsilon": 1.0, "steps": 3, "warm_start": {"kind": "none"}})
    fewer = order.model_copy(update={"report": ordered(report={"held_out": 0.25}).report})
    assert held_out_units(fewer, 100_000) == 25_000
    resolved = resolve_order(fewer, facts(100_000), LEFT, SCHEMA)
    assert resolved == resolve_order(order, facts(75_000), LEFT, SCHEMA).model_copy(update={"report": fewer.report})


@pytest.mark.parametrize("method", [n for n, m in CATALOGUE.items() if "table" in m.takes and m.returns == "generator"])
def test_every_method_has_one_event_for_tables_and_answers_and_costs_what_was_ordered(method):
    case = case_of(method, "table", report={"share": 0.1, "held_out": 0.1})
    plain = case_of(method, "table", report={"share": 0.1})
    own, (report,) = split(case.events)
    assert report.purpose == REPORT_HELD_OUT
    assert report.kind == GaussianEvent.kind
    assert report.noise_multiplier == split(plain.events)[1][0].noise_multiplier
    assert [event.purpose for event in own] == [event.purpose for event in split(plain.events)[0]]
    price = price_order(case.order, BUDGET)
    assert price.pld_epsilon <= 2.0
    assert "held out" in released_for(CATALOGUE[method].card, report.purpose).what


def test_what_is_wanted_is_forecast_for_the_units_that_are_left():
    want = parse_want({"one_way_tv": 0.05})
    found = [
        least_epsilon(want, ordered(report=report), facts(2_000), SCHEMA, 10.0).epsilon
        for report in ({"share": 0.05}, {"share": 0.05, "held_out": 0.5})
    ]
    assert found[1] > 1.5 * found[0]


def test_a_quote_says_how_well_accuracy_will_be_known():
    def said(held_out, share, units, most=1):
        known = facts(units, most)
        order = resolve_order(ordered(report={"held_out": held_out, "share": share}), known, LEFT, SCHEMA)
        return forecast_of(CATALOGUE["marginals"], order, price_order(order, BUDGET).events, known)

    large = said(0.1, 0.2, 50_000)
    assert "5,000 of the 50,000 units are held out: nothing is made of them." in large.sentences[-1]
    assert "±0.014" in large.sentences[-1]
    assert large.warnings == said(0.2, 0.2, 50_000).warnings
    small = said(0.1, 0.01, 400)
    assert "next to nothing known of the accuracy" in small.warnings[-1]
    assert half_width(5.0, 1_000, 10) > 3.0 * half_width(5.0, 1_000, 1)
