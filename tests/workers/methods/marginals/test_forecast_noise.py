"""The noise that a forecast speaks of is the noise that a run draws: the same sharing out, table by table."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from service.domain.grids import shape_of
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import method_of, parse_order
from service.methods.facts import Facts
from service.methods.marginals.noisy_counts import NoisyCounts
from service.methods.marginals.precision import ROUNDING_VARIANCE
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares, open_budget
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.noise import LEAST_ROUNDING_VARIANCE
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.method import Marginals
from workers.plan import Plan

SCHEMA = {
    "fields": [
        {
            "name": name,
            "type": "string",
            "constraints": {"required": True, "enum": [str(value) for value in range(cells)]},
        }
        for name, cells in (("a", 3), ("b", 9), ("c", 3), ("d", 70), ("label", 4))
    ]
}
ROWS = 2_000
ORDERS = [
    {"pairs": "all", "pair_groups": "declared"},
    {"pairs": "all", "pair_groups": "declared", "condition_on": "label"},
    {"pairs": "all", "pair_groups": "declared", "condition_on": "label", "pairs_within": "table"},
    {"pairs": "all", "pair_groups": "declared", "one_way_weight": 7.0, "precision_exponent": 1.0},
    {"pairs": "none"},
    {"pairs": "none", "condition_on": "label"},
]


def test_whole_numbers_add_as_much():
    assert ROUNDING_VARIANCE == LEAST_ROUNDING_VARIANCE


@pytest.mark.parametrize("knobs", ORDERS)
def test_every_count_has_the_noise_that_was_forecast(knobs):
    schema, budget = parse_table_schema(SCHEMA), open_budget(5.0, 1e-6)
    facts = Facts(ROWS, budget, lambda bins: shape_of(schema, numeric_bins=bins))
    order = resolve_order(
        parse_order({"method": "marginals", "epsilon": 1.0, **knobs}), facts, Shares(NANO, NANO), schema
    )
    price = price_order(order, budget)
    noisy = NoisyCounts.of(order, price.events, facts.table(order.numeric_bins), ROWS)
    domain = TableDomain.from_schema(schema, numeric_bins=order.numeric_bins)
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, width, ROWS) for width in domain.widths], axis=1).astype(np.uint16)
    run = Marginals(
        order, Plan(price.events), EncodedTable(codes, ROWS, None, 1), domain, SecureRandom.from_test_seed(1), "cpu"
    )
    run.measure()
    strata, measured = (
        run.layout.slices,
        [m for m in run.measured if len(m.counts) == run.layout.slices or len(m.columns) == 2],
    )

    singles = {int(cells): std for cells, std in zip(noisy.cells, noisy.within_strata, strict=True)}
    for table in measured:
        if len(table.columns) == 1 and len(table.counts) == strata:
            assert singles[table.counts.shape[1]] == pytest.approx(math.sqrt(table.variance), rel=5e-3)
    pairs = sorted(
        (math.prod(table.counts.shape[1:]), math.sqrt(table.variance * len(table.counts)))
        for table in measured
        if len(table.columns) == 2
    )
    assert len(pairs) == noisy.measured_pairs
    if pairs:
        forecast = sorted(
            (size, std) for size, number, std in zip(*noisy.two_way, strict=True) for _ in range(round(number))
        )
        assert np.allclose(pairs, forecast, rtol=5e-3)


def test_a_count_of_all_rows_is_as_noisy_as_all_tables_together_say():
    """By one draw of many cells: the same column a hundred times over would take a hundred runs."""
    schema, budget = parse_table_schema(SCHEMA), open_budget(5.0, 1e-6)
    facts = Facts(ROWS, budget, lambda bins: shape_of(schema, numeric_bins=bins))
    asked = parse_order({"method": "marginals", "epsilon": 1.0, "pairs": "none", "condition_on": "label"})
    order = resolve_order(asked, facts, Shares(NANO, NANO), schema)
    price = price_order(order, budget)
    noisy = NoisyCounts.of(order, price.events, facts.table(order.numeric_bins), ROWS)
    multipliers = {event.purpose: event.noise_multiplier for event in price.events}
    place = int(np.flatnonzero(noisy.cells == 70)[0])
    widths = [3, 9, 3, 70]
    exponent = order.precision_exponent
    share = 70**exponent / sum(width**exponent for width in widths)
    of_all = multipliers["one_way_tables"] ** 2 / share + ROUNDING_VARIANCE
    by_stratum = 4 * (multipliers["marginals"] ** 2 / share + ROUNDING_VARIANCE)
    assert noisy.one_way[place] == pytest.approx((1 / of_all + 1 / by_stratum) ** -0.5)


def test_a_count_of_a_tree_has_the_noise_that_was_forecast():
    amounts = [
        {
            "name": name,
            "type": "number",
            "decimals": 2,
            "constraints": {"required": True, "minimum": 0, "maximum": most},
        }
        for name, most in (("fee", 100), ("balance", 2_000_000))
    ]
    weight = {"name": "weight", "type": "number", "constraints": {"required": True, "minimum": 0, "maximum": 9}}
    schema, budget = parse_table_schema({"fields": [*amounts, weight]}), open_budget(5.0, 1e-6)
    facts = Facts(ROWS, budget, lambda bins: shape_of(schema, numeric_bins=bins))
    asked = parse_order({"method": "marginals", "epsilon": 1.0, "tree_precision_share": 0.2})
    order = resolve_order(asked, facts, Shares(NANO, NANO), schema)
    price = price_order(order, budget)
    noisy = NoisyCounts.of(order, price.events, facts.table(order.numeric_bins), ROWS)
    domain = TableDomain.from_schema(schema, numeric_bins=order.numeric_bins)
    places = {place: np.arange(ROWS, dtype=np.uint32) % grid.size for place, grid in domain.value_grids.items()}
    table = EncodedTable(np.zeros((ROWS, 3), np.uint16), ROWS, None, 1, places)
    run = Marginals(order, Plan(price.events), table, domain, SecureRandom.from_test_seed(1), torch.device("cpu"))
    run.measure()
    assert len(run.known.trees) == 3
    for tree in run.known.trees.values():
        assert tree.noise_std == pytest.approx(noisy.in_trees, rel=5e-3)
    said = method_of(order).forecast(order, price.events, facts).sentences
    assert any("of the 3 ranges that declare no bins" in sentence for sentence in said)
    without = asked.model_copy(update={"tree_precision_share": 0.0})
    order = resolve_order(without, facts, Shares(NANO, NANO), schema)
    said = method_of(order).forecast(order, price_order(order, budget).events, facts).sentences
    assert not any("declare no bins" in sentence for sentence in said)
