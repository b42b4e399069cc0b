"""What a quote says of how far off counts will be: from schema, n, unit and order alone, with warnings where that says little, and the least ε."""

from __future__ import annotations

import json
import math
import re

import pytest

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.methods import wants
from service.methods.catalogue import CATALOGUE, method_of, parse_order
from service.methods.facts import Facts
from service.methods.forecast import Forecast
from service.methods.marginals.noisy_counts import NoisyCounts
from service.methods.pricing import price_order, resolve_order
from service.methods.wants import MOST_LOOKS, forecast_at, least_epsilon, parse_want
from service.privacy.filters import NANO, Shares, open_budget
from tests.catalogue import CASES, case_of

BUDGET = open_budget(20.0, 1e-6)
ALL = Shares(NANO, NANO)
PENGUINS = {
    "fields": [
        {
            "name": "species",
            "type": "string",
            "constraints": {"enum": ["Adelie", "Chinstrap", "Gentoo"], "required": True},
        },
        {
            "name": "island",
            "type": "string",
            "constraints": {"enum": ["Biscoe", "Dream", "Torgersen"], "required": True},
        },
        {"name": "bill_length_mm", "type": "number", "constraints": {"minimum": 30, "maximum": 60}},
        {"name": "bill_depth_mm", "type": "number", "constraints": {"minimum": 13, "maximum": 22}},
        {"name": "flipper_length_mm", "type": "integer", "constraints": {"minimum": 170, "maximum": 232}},
        {"name": "body_mass_g", "type": "integer", "constraints": {"minimum": 2700, "maximum": 6300}},
        {"name": "sex", "type": "string", "constraints": {"enum": ["female", "male"]}},
    ]
}


def facts_of(schema, units, most=1):
    return Facts.of_declaration(json.dumps(schema), units=units, most_per_unit=most, budget=BUDGET)


def quoted(epsilon, *, schema=None, units=344, most=1, **knobs):
    schema = PENGUINS if schema is None else schema
    facts = facts_of(schema, units, most)
    order = resolve_order(
        parse_order({"method": "marginals", "epsilon": epsilon} | knobs), facts, ALL, parse_schema(schema)
    )
    return method_of(order).forecast(order, price_order(order, BUDGET).events, facts)


def wide(columns):
    values = [[str(value) for value in range(2 + place % 200)] for place in range(columns)]
    fields = [
        {"name": f"c{place}", "type": "string", "constraints": {"enum": enum}} for place, enum in enumerate(values)
    ]
    return {"fields": fields}


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_every_method_says_something_and_nothing_that_is_no_json(method, holds):
    case = case_of(method, holds)
    found = CATALOGUE[method].forecast(case.order, case.events, case.facts)
    assert found.sentences
    assert all(sentence.endswith(".") for sentence in found.sentences)
    json.dumps(found.as_json, allow_nan=False)


def test_an_order_that_buys_next_to_nothing_says_so():
    warnings = quoted(1e-4).warnings
    assert warnings[0].startswith("This order buys next to nothing")
    assert "344 units" in warnings[0]


def test_units_that_may_have_several_rows_are_not_called_rows():
    """How many rows they have together is private, and not said."""
    (warning,) = (each for each in quoted(2.0, most=3).warnings if each.startswith("This order buys little"))
    assert "344 units" in warning
    assert "344 rows" not in warning


def test_one_row_and_one_pair_are_said_as_one():
    two = {"fields": PENGUINS["fields"][:2]}
    for pairs in ("all", "none"):
        first, second, *_ = quoted(4.0, schema=two, units=12, pairs=pairs).sentences
        assert first.startswith("The one pair of columns is ")
        assert second.startswith("A group of 1 row will be off")


def test_the_lost_relation_of_few_rows_is_said_by_name():
    found = quoted(1.0)
    assert found.pairs == "none"
    assert found.two_way is None
    assert any("Relations among columns are lost" in w and "'species' and 'island'" in w for w in found.warnings)
    with_target = quoted(1.0, schema={**PENGUINS, "target": "sex"})
    assert any("'species' and 'island'" in w and "'sex'" in w for w in with_target.warnings)
    of_species = quoted(1.0, schema={**PENGUINS, "target": "species"})
    assert any(
        w.startswith("What 'species' says of the other columns will be noise for a large part")
        for w in of_species.warnings
    )


def test_a_large_order_has_no_warning():
    assert quoted(10.0, units=20_000).warnings == ()


@pytest.mark.parametrize("method", [name for name, each in CATALOGUE.items() if "image" in each.takes])
def test_too_few_images_are_warned_of_with_what_helps(method):
    """By n, ε, size and classes alone; where more units or a larger ε are ordered as it says, the warning goes."""
    if CATALOGUE[method].takes_parts_of_images:
        return  # a class is of a whole image, which is no unit there
    case = case_of(method, "image")
    digits = {"type": "image", "height": 28, "width": 28, "channels": 1, "classes": 10}

    def warned(units, epsilon=1.0):
        order = case.order.model_copy(update={"epsilon": epsilon, "share": None})
        return CATALOGUE[method].forecast(order, case.events, facts_of(digits, units)).warnings

    (said,) = warned(30)
    least = int(
        re.search(r"It takes ([\d,]+) units at least; a larger ε, or fewer classes, helps", said)[1].replace(",", "")
    )
    assert warned(least) == ()
    assert warned(round(0.9 * least)) != ()
    assert warned(round(0.9 * least), epsilon=2.0) == ()


def test_more_epsilon_and_more_rows_are_closer():
    order = {"pairs": "all", "pair_groups": "declared", "tree_precision_share": 0.0}
    off = [quoted(epsilon, **order) for epsilon in (0.5, 1.0, 2.0, 8.0)]
    for kind in ("one_way", "two_way"):
        counts = [getattr(each, kind) for each in off]
        assert [each.off_by for each in counts] == sorted((each.off_by for each in counts), reverse=True)
        variation = [each.total_variation.expected for each in counts]
        assert variation == sorted(variation, reverse=True)
    few, many = (quoted(1.0, units=units, **order).one_way for units in (344, 3_440))
    assert many.total_variation.expected < few.total_variation.expected / 3
    assert many.off_by == pytest.approx(few.off_by, rel=0.01)


def test_what_is_left_of_noise_is_never_more_than_noise():
    schema = {"fields": [{"name": f"c{place}", "type": "boolean"} for place in range(4)]}
    found = quoted(20.0, schema=schema, units=100_000_000, pairs="all", pair_groups="declared")
    for counts, cells in ((found.one_way, 3), (found.two_way, 9)):
        raw = cells * counts.count_std.largest / math.sqrt(2.0 * math.pi) / 100_000_000
        assert 0.0 < counts.total_variation.expected <= raw * (1 + 1e-9)


def test_what_a_column_is_decides_into_how_many_groups_its_cells_fall():
    """Rows of a range lie in few of its equal cells; bins that a tree found have about as many rows each."""
    enum = [str(value) for value in range(32)]
    sorts = {
        "categories": {"type": "string", "constraints": {"required": True, "enum": enum}},
        "cells": {"type": "number", "bins": 32, "constraints": {"required": True, "minimum": 0, "maximum": 1e6}},
        "values": {"type": "number", "constraints": {"required": True, "minimum": 0, "maximum": 1e6}},
    }
    groups = {}
    for sort, field in sorts.items():
        schema = {"fields": [{"name": f"c{place}", **field} for place in range(6)]}
        facts = facts_of(schema, 20_000)
        order = resolve_order(parse_order({"method": "marginals", "epsilon": 3.0}), facts, ALL, parse_schema(schema))
        noisy = NoisyCounts.of(order, price_order(order, BUDGET).events, facts.table(order.numeric_bins), 20_000)
        assert set(noisy.caps) == {32.0}
        (groups[sort],) = noisy.groups
    assert groups["cells"] < groups["values"] < groups["categories"] < 32.0


def test_rows_of_one_unit_add_to_the_noise():
    one, three = (quoted(2.0, most=most, pairs="none").one_way for most in (1, 3))
    assert three.off_by == pytest.approx(3 * one.off_by, rel=0.02)


def test_experience_is_of_tables_alike_and_says_how_many():
    found = quoted(1.0, schema={**PENGUINS, "target": "sex"}, units=3_000)
    assert found.experience is not None
    assert found.experience.tables >= 5
    assert found.experience.low <= found.experience.median <= found.experience.high
    assert any(s.startswith(f"Experience, not a promise: on {found.experience.tables} tables") for s in found.sentences)
    for off in (found.experience.one_way_tv, found.experience.two_way_tv):
        assert 0.0 < off.low <= off.expected <= off.high < 1.0
    assert found.experience.one_way_tv.expected < found.experience.two_way_tv.expected
    (said,) = (s for s in found.sentences if s.startswith("Experience"))
    assert "From the real rows, tables of one column were " in said
    assert found.experience.tables <= found.experience.runs
    assert 0 < found.experience.earlier < found.experience.runs
    assert said.endswith(
        f"Of these {found.experience.runs} runs, {found.experience.earlier} were with an earlier version of this method."
    )
    tenth = quoted(0.1, schema={**PENGUINS, "target": "sex"}, units=3_000)
    assert tenth.experience.earlier == tenth.experience.runs
    assert "All of this was with an earlier version of this method." in " ".join(tenth.sentences)
    assert quoted(1.0, units=3_000).experience is None  # nothing to predict


def test_a_method_of_few_runs_says_what_the_benches_know():
    fields = [{"name": f"c{place}", "type": "boolean"} for place in range(15)]
    idpgan = quoted(1.0, schema={"fields": fields}, units=30_000, method="idpgan", warm_start={"kind": "none"})
    assert idpgan.one_way is None
    assert idpgan.experience is not None
    assert "Experience, not a promise: on 1 table of such a size" in idpgan.sentences[1]
    far = quoted(1.0, schema={"fields": fields}, units=300, method="idpgan", warm_start={"kind": "none"})
    assert far.sentences[1] == "No measured run was similar to this order."


# -- work


def test_work_is_bounded_by_kinds_of_columns_and_not_by_pairs(monkeypatch):
    cells = 0
    whole = NoisyCounts._stds_of_pairs

    def counted(self, groups):
        nonlocal cells
        cells += len(groups) ** 2
        return whole(self, groups)

    monkeypatch.setattr(NoisyCounts, "_stds_of_pairs", counted)
    for columns in (100, 1_000):
        cells = 0
        quoted(1.0, schema=wide(columns), units=100_000, pairs="all")
        assert 0 < cells <= 12 * 64**2, (
            columns
        )  # a pair of columns has at most 64 cells each; a thousand columns have 499,500 pairs


def test_a_search_takes_a_bounded_number_of_looks(monkeypatch):
    looks = 0

    def counted(*arguments):
        nonlocal looks
        looks += 1
        return forecast_at(*arguments)

    monkeypatch.setattr(wants, "forecast_at", counted)
    for want in ({"one_way_tv": 1e-9}, {"one_way_tv": 0.999}, {"group": 100, "within": 0.2}, {"two_way_tv": 0.05}):
        looks = 0
        asked(want)
        assert 0 < looks <= MOST_LOOKS


# -- want


def asked(want, *, largest=20.0, units=344, **order):
    facts = facts_of(PENGUINS, units)
    return least_epsilon(
        parse_want(want), parse_order({"epsilon": 1.0, **order}), facts, parse_schema(PENGUINS), largest
    )


@pytest.mark.parametrize(
    "want",
    [
        {"group": 50, "within": 0.5, "columns": 1},
        {"group": 100, "within": 0.3},
        {"one_way_tv": 0.05},
        {"two_way_tv": 0.2},
    ],
)
def test_the_least_epsilon_gives_what_is_wanted_and_less_does_not(want):
    found = asked(want)
    assert found.epsilon is not None
    assert found.says == f"About ε = {found.epsilon:g} is the least that gives that."
    assert parse_want(want).misses(quoted(found.epsilon)) == []
    assert parse_want(want).misses(quoted(0.9 * found.epsilon)) != []


def test_what_cannot_be_had_is_said_with_what_can():
    found = asked({"group": 20, "within": 0.01}, largest=2.0)
    assert found.epsilon is None
    assert found.largest == 2.0
    assert found.says.startswith(
        "No ε that this dataset can still pay gives that. The largest is 2, and with it: a group of 20 rows "
    )
    assert asked({"group": 20, "within": 0.5}, largest=0.0).says.startswith("Nothing is left")


def test_pairs_that_may_not_be_measured_are_not_known():
    chosen = quoted(1.0, pairs="chosen")
    assert chosen.two_way is not None
    (missed,) = parse_want({"two_way_tv": 0.9}).misses(chosen)
    assert "not all pairs of columns are sure to be measured" in missed
    assert parse_want({"one_way_tv": 0.9}).misses(chosen) == []
    assert parse_want({"one_way_tv": 0.9}).misses(Forecast(("nothing.",))) != []


@pytest.mark.parametrize(
    ("want", "says"),
    [
        ({}, "want: say what is wanted"),
        ({"group": 200}, "want: give group and within together"),
        ({"group": "200", "within": 0.1}, "want.group: "),
        ({"group": 200, "within": 2}, "want.within: "),
        ({"three_way_tv": 0.1}, "want.three_way_tv: .*; there are: group, within, columns, one_way_tv, two_way_tv"),
        (7, "want: "),
    ],
)
def test_a_want_that_says_nothing_is_refused(want, says):
    with pytest.raises(InvalidOrder, match=says):
        parse_want(want)


def test_a_method_without_counts_is_refused():
    with pytest.raises(InvalidOrder, match="not forecast for method: idpgan"):
        asked({"one_way_tv": 0.1}, method="idpgan")
