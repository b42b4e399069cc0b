"""What holds for the estimate of every method: it is there, it grows with what is ordered and declared, and no row is in it."""

import dataclasses
import json
import math

import pytest

from service.base.errors import TooMuchWork
from service.domain.image_schema import parse_schema
from service.methods.catalogue import CATALOGUE, method_of, parse_order, parse_resolved_order
from service.methods.facts import Facts, PublicRows
from service.methods.idpgan.work import held_public
from service.methods.pricing import price_order, resolve_order
from service.methods.work import CPU, KINDS, Estimate, Machine, Work
from service.platform.settings import Settings
from service.privacy.filters import NANO, Shares
from service.releases.work import MEMORY_MARGIN, SECONDS_MARGIN, estimate_of, refuse_too_much
from tests.catalogue import BUDGET, CASES, QUESTIONS, UNITS, case_of, ordered, schema_of

WIDER = {
    "networks": [{"generator_hidden": [w], "critic_hidden": [w]} for w in (16, 128, 1_024)],
    "image_networks": [
        {"layers": "perceptrons", "generator_hidden": [w], "critic_hidden": [w]} for w in (16, 128, 1_024)
    ],
    "components": [64, 256, 512],
    "rank": [4, 16, 64],
    "numeric_bins": [8, 32, 128],
}
"""Knobs that widen something, and values of each in order."""


def work_of(method, holds, *, units=UNITS, most=1, **knobs):
    facts = Facts.of_declaration(json.dumps(schema_of(method, holds)), units=units, most_per_unit=most, budget=BUDGET)
    order = resolve_order(
        parse_order(ordered(method, **knobs)), facts, Shares(NANO, NANO), parse_schema(schema_of(method, holds))
    )
    return method_of(order).estimate(order, facts)


FIXED = {
    "sampling_probability": 0.1,
    "pairs": "all",
    "pair_groups": "declared",
    "tree_precision_share": 0.0,
    "cells": 4,
    "candidates": [
        {
            "method": "marginals",
            "steps": 3,
            "pairs": "all",
            "pair_groups": "declared",
            "tree_precision_share": 0.0,
        }
    ],
    "questions": [question for question in QUESTIONS if question["kind"] != "median"],
}
"""What the defaults of depend on n or on the columns; a median is for units of one row."""


def fixed(method):
    return {name: value for name, value in FIXED.items() if name in CATALOGUE[method].order.model_fields}


def assert_grows(works, *, in_memory=True):
    seconds, memory = [CPU.seconds_of(w) for w in works], [w.memory_bytes for w in works]
    assert seconds == sorted(seconds)
    assert works[0].flops < works[-1].flops
    if in_memory:
        assert memory == sorted(memory)


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_every_method_estimates_what_is_stored(method, holds):
    case = case_of(method, holds)
    work = CATALOGUE[method].estimate(case.order, case.facts)
    stored = parse_resolved_order(json.loads(case.order.model_dump_json()))
    assert CATALOGUE[method].estimate(stored, case.facts) == work
    assert work.flops > 0
    assert work.memory_bytes > 0
    assert all(math.isfinite(value) and value >= 0 for value in dataclasses.astuple(work))
    found = Estimate.of(work)
    assert found.seconds_on_a_cpu > CPU.start_seconds / 2
    assert found.memory_bytes > CPU.start_bytes / 2


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_an_estimate_grows_with_steps_units_and_rows_of_a_unit(method, holds):
    knobs = fixed(method)
    assert_grows([work_of(method, holds, units=units, **knobs) for units in (400, 4_000, 40_000)])
    # A block holds fewer units where each may have more rows.
    assert_grows([work_of(method, holds, most=most, **knobs) for most in (1, 4, 16)], in_memory=False)
    if "steps" in CATALOGUE[method].order.model_fields:
        seconds = [CPU.seconds_of(work_of(method, holds, **knobs | {"steps": s})) for s in (1, 100, 10_000)]
        assert seconds[0] < seconds[1] < seconds[2]


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_an_estimate_grows_with_widths(method, holds):
    fields = CATALOGUE[method].order.model_fields
    of_other = "image_networks" if holds == "table" else "networks"
    knobs = [name for name in WIDER if name in fields and name != of_other]
    for knob in knobs:
        assert_grows([work_of(method, holds, **fixed(method) | {knob: value}) for value in WIDER[knob]])


def test_an_estimate_takes_every_unit_to_have_the_most_rows_it_may_have():
    """So that what is over a limit does not depend on how many rows anybody has."""
    one, many = (work_of("idpgan", "table", most=most, sampling_probability=0.1) for most in (1, 10))
    assert 7 * one.products < many.products < 10 * one.products  # a generator's own step costs the same


def test_the_order_that_held_a_worker_for_a_week_is_estimated_at_days_and_gigabytes():
    wide = [4_096] * 8
    knobs = {"steps": 100_000, "networks": {"generator_hidden": wide, "critic_hidden": wide}}
    found = Estimate.of(work_of("idpgan", "table", **knobs))
    assert found.seconds_on_a_cpu > 3 * 86_400
    assert found.memory_bytes > 6e9


BEGINS = {"public_dataset": "00000000-0000-0000-0000-000000000001", "public_steps": 5}
BEGINNING = [(method, holds) for method, holds in CASES if "public_dataset" in CATALOGUE[method].order.model_fields]


def publicly(facts, rows, a_row):
    return dataclasses.replace(facts, public=PublicRows(rows, rows * a_row))


@pytest.mark.parametrize(("method", "holds"), BEGINNING)
def test_public_rows_are_read_and_held_in_an_estimate_and_in_nothing_else(method, holds):
    case = case_of(method, holds, **BEGINS)
    sizes = [publicly(case.facts, rows, 784) for rows in (10, 1_000, 100_000)]
    works = [CATALOGUE[method].estimate(case.order, facts) for facts in sizes]
    assert_grows(works)
    assert works[0].elements < works[1].elements < works[2].elements
    most = held_public(sizes[2], case.facts.shape(case.order.numeric_bins))
    beside = works[2].memory_bytes - CATALOGUE[method].estimate(case_of(method, holds).order, case.facts).memory_bytes
    assert beside == pytest.approx(most), "they are held all the time, beside what is largest"
    unknown = CATALOGUE[method].estimate(case.order, case.facts)
    assert unknown.memory_bytes > works[0].memory_bytes, "the most that may be is held where nothing is known"
    asked = parse_order(ordered(method, **BEGINS))
    schema = parse_schema(schema_of(method, holds))
    resolved = [resolve_order(asked, facts, Shares(NANO, NANO), schema) for facts in (case.facts, *sizes)]
    assert all(each == resolved[0] for each in resolved)
    assert price_order(resolved[0], BUDGET) == price_order(case_of(method, holds).order, BUDGET)


def test_a_choice_reads_public_rows_once_unless_by_other_bins():
    first = {"method": "idpgan", "steps": 2, "warm_start": {"kind": "none"}, "sampling_probability": 0.1, **BEGINS}

    def extra(*bins):
        candidates = [{**first, "networks": {"numeric_bins": each}} for each in bins]
        case = case_of("choose", "table", candidates=candidates)
        works = [CATALOGUE["choose"].estimate(case.order, publicly(case.facts, rows, 8)) for rows in (0, 100_000)]
        return Work(
            elements=works[1].elements - works[0].elements, memory_bytes=works[1].memory_bytes - works[0].memory_bytes
        )

    assert extra(8, 8).elements == extra(8, 8, 8).elements > 0
    assert extra(8, 16).elements == pytest.approx(2 * extra(8, 8).elements)
    assert extra(8, 16).memory_bytes == 2 * extra(8, 8).memory_bytes > 0, "each is held from the first try to the last"


def settings(**limits):
    addresses = dict.fromkeys(("database_url", "redis_url", "storage_url", "secret_key_file"), "x")
    return Settings(**addresses, **limits)


def test_an_order_is_refused_where_its_estimate_is_over_a_margin_of_either_limit():
    case = case_of("idpgan", "table")
    found = estimate_of(case.order, case.facts, settings())
    seconds, memory = found.seconds_on_a_cpu * SECONDS_MARGIN, int(found.memory_bytes * MEMORY_MARGIN) + 1
    refuse_too_much(case.order, found, settings(job_seconds_limit=seconds, job_memory_bytes_limit=memory))
    for limits in ({"job_seconds_limit": 0.9 * seconds}, {"job_memory_bytes_limit": int(0.9 * memory)}):
        with pytest.raises(TooMuchWork, match="smaller values of steps, sampling_probability, networks") as refused:
            refuse_too_much(case.order, found, settings(**limits))
        assert refused.value.values["estimate"] == found.as_json
        assert "steps" in refused.value.values["knobs"]


def test_a_faster_processor_takes_as_much_less():
    case = case_of("idpgan", "table", steps=3_000)
    slow, fast = (estimate_of(case.order, case.facts, settings(job_cpu_speed=speed)) for speed in (1.0, 4.0))
    assert slow.seconds_on_a_cpu == pytest.approx(4 * fast.seconds_on_a_cpu, rel=0.1)


def test_parts_of_a_job_add_up_and_hold_what_the_larger_holds():
    rates = Machine(Work(**dict.fromkeys(KINDS, 2.0)), start_seconds=1.0, start_bytes=10.0)
    both = Work(products=1.0, memory_bytes=5.0) + Work(draws=2.0, memory_bytes=3.0).times(3)
    assert (rates.seconds_of(both), rates.memory_of(both)) == (1.0 + 2.0 * 7.0, 15.0)
    assert both.holding(4.0).memory_bytes == 9.0
