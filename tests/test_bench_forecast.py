"""What the bench of forecasts measures is what noise does, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from bench.forecast import EXPERIENCE, FITTED, HELD_OUT, Case, Setting, compared, differences_of, experience
from service.domain.grids import shape_of
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import method_of, parse_order
from service.methods.facts import Facts
from service.methods.marginals.price import marginals_events
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares, open_budget
from tests.noiseless import ALMOST_NONE, NoNoise
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.method import Marginals
from workers.plan import Plan

ROWS = 4_000
FIELDS = [
    {"name": "y", "type": "string", "constraints": {"required": True, "enum": ["no", "yes"]}},
    *(
        {"name": name, "type": "string", "constraints": {"required": True, "enum": [str(v) for v in range(cells)]}}
        for name, cells in (("a", 3), ("b", 12), ("c", 5))
    ),
]


def resolved():
    schema = parse_table_schema({"target": "y", "fields": FIELDS})
    facts = Facts(ROWS, open_budget(1.0, 2e-6), lambda bins: shape_of(schema, numeric_bins=bins))
    order = resolve_order(
        parse_order({"method": "marginals", "epsilon": 1.0, "pairs": "all", "pair_groups": "counted"}),
        facts,
        Shares(NANO, NANO),
        schema,
    )
    return schema, facts, order


def measured(schema, order, events, randomness):
    """Skewed columns that depend on each other."""
    domain = TableDomain.from_schema(schema, numeric_bins=order.numeric_bins)
    rng = np.random.default_rng(1)
    first = rng.geometric(0.4, ROWS) - 1
    codes = np.stack([np.minimum(first + rng.integers(0, 2, ROWS), width - 1) for width in domain.widths], axis=1)
    table = EncodedTable(codes.astype(np.uint16), ROWS, None, 1)
    run = Marginals(order, Plan(events), table, domain, randomness, torch.device("cpu"))
    run.measure()
    return run


def variations(differences):
    return [float(np.mean([0.5 * np.abs(table).sum() for table in kind])) / ROWS for kind in differences]


def test_without_noise_nothing_is_measured():
    schema, _, order = resolved()
    run = measured(schema, order, marginals_events(order, noise_multiplier=ALMOST_NONE), NoNoise())
    assert variations(differences_of(run)) == pytest.approx([0.0, 0.0, 0.0], abs=2e-3)


def test_what_noise_does_is_measured_and_compared_with_what_was_forecast():
    schema, facts, order = resolved()
    price = price_order(order, facts.budget)
    said = method_of(order).forecast(order, price.events, facts)
    run = measured(schema, order, price.events, SecureRandom.from_test_seed(1))
    found = differences_of(run)
    case = compared(Setting("made up", ROWS, 4, 1.0, order.pairs), said, found)
    assert all(value > 5e-3 for value in variations(found))
    assert case.found == pytest.approx(tuple(variations(found)))
    assert case.said == tuple(
        counts.total_variation.expected for counts in (said.one_way, said.with_condition, said.two_way)
    )
    assert case.measured_pairs == 3
    for table in found[2]:  # a distance of tables: no count below zero, the same rows in both
        assert abs(table.sum()) < 1e-6 * ROWS


def test_a_miss_is_relative_to_what_was_measured():
    case = Case(Setting("t", 10, 2, 1.0, "all"), 0, (0.12, None, 0.1), (0.1, None, None), (None, None, None))
    assert case.miss(0) == pytest.approx(0.2)
    assert case.miss(1) is None
    assert case.miss(2) is None


def test_no_table_that_constants_were_chosen_on_is_held_out():
    assert not set(FITTED) & set(HELD_OUT)
    assert len(HELD_OUT) >= 20


def test_experience_that_quotes_show_is_that_of_the_runs_on_record():
    """After new runs: python -m bench.forecast --experience."""
    assert EXPERIENCE.read_text(encoding="utf-8") == experience()
