"""What an order leaves open: settled from declared columns, n and budget; priced as one Gaussian release."""

import math

import pytest
from dp_accounting.gaussian_mechanism import get_sigma_gaussian

from service.base.errors import InvalidOrder, InvalidSchema
from service.domain.grids import shape_of
from service.domain.shapes import ImageShape, TableShape
from service.domain.table_schema import parse_table_schema
from service.methods.auto import AutoOrder
from service.methods.catalogue import parse_order, parse_resolved_order
from service.methods.idpgan.order import IdpganOrder
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.pair_rules import MAX_PAIR_WIDTH, noise_of_pairs, pair_widths
from service.methods.marginals.value_rules import PRECISION_SHARES
from service.privacy.accounting import renyi_divergence
from service.privacy.filters import NANO, exact, open_budget, simple_cost
from tests.orders import choose_method, largest_epsilon, price_order, resolve_order

BUDGET = open_budget(4.0, 1e-6)


def order(**knobs):
    return MarginalsOrder.model_validate({"method": "marginals", "epsilon": 1.0, **knobs})


@pytest.mark.parametrize("epsilon", [0.02, 1.0, 15.0])
@pytest.mark.parametrize("pairs", ["all", "few_or_all", "chosen", "none"])
def test_all_events_together_are_one_gaussian_release_just_below_the_requested_epsilon(epsilon, pairs):
    budget = open_budget(2 * epsilon, 1e-6)
    price = price_order(order(epsilon=epsilon, pairs=pairs), units=50_000, budget=budget)
    assert 0.99 * epsilon <= price.pld_epsilon <= epsilon
    assert price.shares.simple == simple_cost(exact(0.5))
    precision = sum(event.noise_multiplier**-2 for event in price.events)
    exactly = get_sigma_gaussian(epsilon, price.delta)
    assert exactly <= precision**-0.5 <= 1.02 * exactly
    assert price.renyi_divergence == pytest.approx(budget.renyi_order * precision / 2, rel=1e-6)
    assert price.renyi_divergence == renyi_divergence(price.events, budget.renyi_order)


def test_choosing_pairs_is_on_the_price_list():
    (alone,) = price_order(order(pairs="all"), units=1_000, budget=BUDGET).events
    events = price_order(order(pairs="chosen"), units=1_000, budget=BUDGET).events
    assert [event.purpose for event in events] == ["one_way_tables", "pair_scores", "marginals"]
    shares = [(alone.noise_multiplier / event.noise_multiplier) ** 2 for event in events]
    assert shares == pytest.approx([0.075, 0.075, 0.85], rel=0.02)
    assert sum(shares) == pytest.approx(1.0, rel=0.02)


def test_the_price_depends_on_neither_n_nor_the_columns():
    one = price_order(order(pairs="all"), units=10, budget=BUDGET)
    other = price_order(order(pairs="all", condition_on="y", components=8), units=10**7, budget=BUDGET)
    assert one.events == other.events


def test_rest_fits_what_is_left():
    left = 3 * NANO // 10
    largest = largest_epsilon(AutoOrder(share="rest"), units=1_000, budget=BUDGET, simple_left=0, renyi_left=left)
    price = price_order(AutoOrder(epsilon=largest), units=1_000, budget=BUDGET)
    assert 0.9 * left < price.shares.renyi <= left


def test_auto_is_the_same_whatever_the_rows_and_gives_its_reason():
    shape = TableShape({"a": 5, "b": 30})
    chosen = choose_method(AutoOrder(epsilon=1.0), shape)
    assert isinstance(chosen, MarginalsOrder)
    assert chosen.chosen_because
    assert chosen.chosen_because.startswith("marginals: ")
    many = TableShape({"a": 5, "b": 2, "y": 65}, target="y")
    for other in (TableShape({"a": 5}), many):
        assert isinstance(choose_method(AutoOrder(epsilon=1.0), other), MarginalsOrder)
    chosen = choose_method(AutoOrder(epsilon=1.0, condition_on="y"), many)
    assert isinstance(chosen, IdpganOrder)
    assert chosen.chosen_because
    assert chosen.chosen_because.startswith("idpgan: ")


def test_the_target_of_the_schema_is_the_condition():
    fields = [
        {"name": "y", "type": "boolean"},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 999, "required": True}},
        {"name": "day", "type": "integer", "constraints": {"minimum": 1, "maximum": 7}},
    ]
    shape = shape_of(parse_table_schema({"fields": fields, "target": "y"}), numeric_bins=32)
    sorts = {"size": "values", "day": "cells"}
    assert shape == TableShape({"y": 3, "size": 32, "day": 8}, "y", columns_of_values=1, tree_levels=2, sorts=sorts)
    assert shape_of(parse_table_schema({"fields": fields[::2]}), numeric_bins=32).columns_of_values == 0
    assert resolve_order(AutoOrder(epsilon=1.0), units=9, shape=shape).condition_on == "y"
    assert resolve_order(AutoOrder(epsilon=1.0, condition_on="x"), units=9, shape=shape).condition_on == "x"
    assert resolve_order(IdpganOrder(method="idpgan", epsilon=1.0), units=9, shape=shape).condition_on == "y"
    for target in ("size", "z"):
        with pytest.raises(InvalidSchema, match="target"):
            parse_table_schema({"fields": fields, "target": target})
    many = TableShape({"y": 65, "x": 2, "z": 2}, target="y")
    for method in (AutoOrder(epsilon=1.0), order(), IdpganOrder(method="idpgan", epsilon=1.0)):
        resolved = resolve_order(method, units=9, shape=many, budget=BUDGET)
        assert resolved.condition_on is None
        assert resolve_order(resolved, units=9, shape=many, budget=BUDGET) == resolved
    with pytest.raises(InvalidOrder, match="at most 64"):
        resolve_order(order(condition_on="y"), units=9, shape=TableShape({"y": 65, "x": 2}))


def test_rows_for_tables_have_no_condition_whatever_the_target():
    shape = TableShape({"y": 3, "x": 32, "z": 8}, target="y")
    for name in ("auto", "marginals", "idpgan"):
        for purpose, condition in ((None, "y"), ("classifiers", "y"), ("tables", None)):
            ordered = parse_order({"method": name, "epsilon": 1.0, "purpose": purpose})
            resolved = resolve_order(ordered, units=5_000, shape=shape, budget=BUDGET)
            assert resolved.condition_on == condition
            assert resolve_order(resolved, units=5_000, shape=shape, budget=BUDGET) == resolved
        with pytest.raises(InvalidOrder, match="purpose"):
            parse_order({"method": name, "epsilon": 1.0, "purpose": "tables", "condition_on": "y"})
        classifiers = parse_order({"method": name, "epsilon": 1.0, "purpose": "classifiers"})
        for nothing in (TableShape({"x": 32, "z": 8}), TableShape({"y": 65, "x": 2}, target="y")):
            with pytest.raises(InvalidOrder, match="something to predict"):
                resolve_order(classifiers, units=5_000, shape=nothing, budget=BUDGET)
            other = classifiers.model_copy(update={"condition_on": "x"})
            assert resolve_order(other, units=5_000, shape=nothing, budget=BUDGET).condition_on == "x"


def test_pairs_are_chosen_where_noise_would_drown_all_of_them_and_left_where_it_would_drown_the_chosen():
    few, many = TableShape({f"c{i}": 10 for i in range(5)}), TableShape({f"c{i}": 20 for i in range(100)})
    sizes = (
        (few, 100, "none"),
        (few, 500, "chosen"),  # if scores say so
        (few, 30_000, "all"),
        (many, 4_000, "none"),
        (many, 30_000, "chosen"),
        (many, 10**7, "all"),
    )
    for shape, units, wanted in sizes:
        resolved = resolve_order(order(), units=units, shape=shape, budget=BUDGET)
        assert resolved.pairs == wanted
        assert resolve_order(resolved, units=units, shape=few, budget=BUDGET) == resolved
    rows = TableShape(many.cells, max_rows_per_unit=50)
    assert resolve_order(order(), units=1_500_000, shape=many, budget=BUDGET).pairs == "all"
    assert resolve_order(order(), units=1_500_000, shape=rows, budget=BUDGET).pairs == "chosen"


SKEWED = {**{f"x{i}": 33 for i in range(12)}, "y": 2}


def test_pairs_in_groups_are_measured_with_less_noise_than_pairs_of_declared_cells():
    """How many groups there will be is not known from the declaration; eight a column are looked at."""
    shape = TableShape(SKEWED, "y")
    found = {}
    for units in (400, 1_000, 8_000, 24_000, 200_000, 2_000_000):
        resolved = resolve_order(order(), units=units, shape=shape, budget=BUDGET)
        assert resolve_order(resolved, units=units, shape=shape, budget=BUDGET) == resolved
        assert resolved.pair_groups == "counted"
        declared = resolve_order(order(pair_groups="declared"), units=units, shape=shape, budget=BUDGET)
        assert declared.pair_groups == "declared"
        found[units] = (resolved.pairs, declared.pairs, resolved.pairs_within)
    assert found == {
        400: ("none", "none", None),
        1_000: ("chosen", "chosen", "table"),  # of all rows, where noise is less
        8_000: ("chosen", "chosen", "table"),
        24_000: ("all", "chosen", None),
        200_000: ("all", "all", None),
        2_000_000: ("all", "all", None),
    }
    # Pairs that are ordered as such are measured in the cells that are declared.
    assert resolve_order(order(pairs="all"), units=9, shape=shape, budget=BUDGET).pair_groups is None


def test_more_values_of_a_condition_and_more_rows_of_a_unit_are_more_noise():
    found = {}
    for values, most_rows in ((2, 1), (6, 1), (2, 4)):
        shape = TableShape(SKEWED | {"y": values}, "y", max_rows_per_unit=most_rows)
        found[values, most_rows] = [
            resolve_order(order(**knobs), units=16_000, shape=shape, budget=BUDGET).pairs
            for knobs in ({}, {"pairs_within": "table"}, {"pairs_within": "condition"}, {"purpose": "tables"})
        ]
    assert found == {
        (2, 1): ["all", "all", "all", "all"],
        (6, 1): ["chosen", "all", "none", "all"],  # pairs are chosen of all rows alone
        (2, 4): ["chosen", "chosen", "none", "chosen"],
    }


def test_pairs_are_chosen_where_scores_are_known():
    shape = TableShape(SKEWED, "y")
    resolved = resolve_order(order(), units=1_000, shape=shape, budget=BUDGET)
    assert (resolved.pairs, resolved.pairs_within, resolved.one_way_weight) == ("chosen", "table", None)
    assert resolve_order(order(one_way_weight=9.0), units=1_000, shape=shape, budget=BUDGET).one_way_weight == 9.0
    for knobs in ({"selection_precision_share": 0.005}, {"pairs_within": "condition"}):
        assert resolve_order(order(**knobs), units=1_000, shape=shape, budget=BUDGET).pairs == "none"


def test_open_ranges_get_trees_as_precise_as_noise_allows():
    shape = TableShape(SKEWED, "y", columns_of_values=4, tree_levels=12)
    shares = {
        units: resolve_order(order(), units=units, shape=shape, budget=BUDGET).tree_precision_share
        for units in (100, 2_000, 100_000, 10**8)
    }
    smallest, largest = PRECISION_SHARES
    assert (shares[100], shares[2_000], shares[10**8]) == (0.0, largest, smallest)
    assert smallest < shares[100_000] < largest
    # More levels, and units of more rows, want more.
    deeper = TableShape(SKEWED, "y", columns_of_values=4, tree_levels=24)
    for wider in (deeper, TableShape(SKEWED, "y", 2, columns_of_values=4, tree_levels=12)):
        assert resolve_order(order(), units=100_000, shape=wider, budget=BUDGET).tree_precision_share > shares[100_000]
    for pairs in ("all", "none"):
        resolved = resolve_order(order(pairs=pairs), units=10_000, shape=shape, budget=BUDGET)
        assert resolved.counts_values
        assert resolve_order(resolved, units=10_000, shape=shape, budget=BUDGET) == resolved
    for share in (0.0, 0.3):
        named = resolve_order(order(tree_precision_share=share), units=10_000, shape=shape, budget=BUDGET)
        assert named.tree_precision_share == share
    without = TableShape(SKEWED, "y")
    assert not resolve_order(order(tree_precision_share=0.1), units=10_000, shape=without, budget=BUDGET).counts_values
    begun = resolve_order(idpgan(condition_on="y"), units=10_000, shape=shape, budget=BUDGET)
    assert begun.counts_values
    assert resolve_order(begun, units=10_000, shape=shape, budget=BUDGET) == begun
    assert not resolve_order(
        idpgan(condition_on="y", warm_start={"kind": "none"}), units=10_000, shape=shape, budget=BUDGET
    ).counts_values


def test_trees_are_on_the_price_list():
    for pairs, others in (("all", []), ("none", ["one_way_tables"]), ("chosen", ["one_way_tables", "pair_scores"])):
        named = order(pairs=pairs, condition_on="y", tree_precision_share=0.02)
        events = price_order(named, units=1_000, budget=BUDGET).events
        assert [event.purpose for event in events] == ["value_trees", *others, "marginals"]
    shares = {"grouping_precision_share": 0.49, "few_precision_share": 0.49, "tree_precision_share": 0.04}
    greedy = order(pairs="few_or_all", pair_groups="counted", **shares)
    with pytest.raises(InvalidOrder, match="nothing for the tables"):
        price_order(greedy, units=1_000, budget=BUDGET)


def test_stored_orders_of_open_ranges_are_read_as_orders_without_trees():
    """They were priced without any; what else they say stands."""
    stored = {"method": "marginals", "epsilon": 1.0, "pairs": "all", "pair_groups": "counted", "components": 64}
    read = parse_resolved_order(stored | {"numeric_cells": "counted", "values_precision_share": 0.01})
    assert read == parse_resolved_order(stored | {"tree_precision_share": 0.0})
    assert parse_resolved_order(read.model_dump(mode="json")) == read
    begun = {"kind": "tables", "pairs": "all", "values_precision_share": 0.02}
    gan = parse_resolved_order({"method": "idpgan", "epsilon": 1.0, "warm_start": begun})
    assert gan.warm_start.tree_precision_share == 0.0
    assert not gan.counts_values


@pytest.mark.parametrize(
    "knobs",
    [
        {"tree_precision_share": 1e-60},
        {"grouping_precision_share": 1e-60},
        {"few_precision_share": 1e-7},
        {"one_way_weight": 1e-37},
        {"method": "idpgan", "warm_start": {"kind": "tables", "precision_share": 1e-60}},
        {"method": "idpgan", "warm_start": {"kind": "tables", "tree_precision_share": 1e-9}},
        {"method": "idpgan", "label_precision_share": 1e-60},
        {"method": "mixture", "count_share": 1e-60},
    ],
    ids=str,
)
def test_shares_next_to_nothing_are_refused(knobs):
    with pytest.raises(InvalidOrder):
        parse_order({"method": "marginals", "epsilon": 1.0} | knobs)


def test_where_one_way_tables_come_first_they_are_on_the_price_list_at_their_share():
    for knobs, wanted in (
        ({"pairs": "all"}, {"marginals": 1.0}),
        ({"pairs": "none", "pair_groups": "counted"}, {"marginals": 1.0}),
        ({"pairs": "none", "condition_on": "y"}, {"one_way_tables": 0.25, "marginals": 0.75}),
        (
            {"pairs": "none", "condition_on": "y", "all_rows_precision_share": 0.4},
            {"one_way_tables": 0.4, "marginals": 0.6},
        ),
        (
            {"pairs": "chosen", "pairs_within": "table", "selection_precision_share": 0.1},
            {"one_way_tables": 0.25, "pair_scores": 0.1, "marginals": 0.65},
        ),
        (
            {"pairs": "all", "pair_groups": "counted", "grouping_precision_share": 0.2},
            {"one_way_tables": 0.2, "marginals": 0.8},
        ),
        (
            {"pairs": "chosen", "pair_groups": "counted", "selection_precision_share": 0.1},
            {"one_way_tables": 0.1, "pair_scores": 0.1, "marginals": 0.8},
        ),
        ({"pairs": "all", "tree_precision_share": 0.04}, {"value_trees": 0.04, "marginals": 0.96}),
        (
            {"pairs": "few_or_all", "grouping_precision_share": 0.2, "few_precision_share": 0.05},
            {"one_way_tables": 0.2, "pair_scores": 0.05, "marginals": 0.75},
        ),
    ):
        price = price_order(order(**knobs), units=1_000, budget=BUDGET)
        whole = get_sigma_gaussian(1.0, price.delta)
        shares = {event.purpose: (whole / event.noise_multiplier) ** 2 for event in price.events}
        assert shares == pytest.approx(wanted, rel=0.01)  # several events cost the discretisation of the PLD
        assert 0.99 <= price.pld_epsilon <= 1.0


def test_networks_begin_near_tables_of_declared_cells():
    shape = TableShape(SKEWED, "y")
    started = resolve_order(idpgan(), units=24_000, shape=shape, budget=BUDGET)
    assert started.warm_start.pairs == "none"
    assert started.tables_order.pair_groups is None


def idpgan(**knobs):
    return IdpganOrder.model_validate({"method": "idpgan", "epsilon": 1.0, **knobs})


def test_networks_begin_near_tables_where_the_columns_allow_it():
    few, many = TableShape({"y": 2, "a": 9}, target="y"), TableShape({f"c{i}": 20 for i in range(100)})
    for shape, kind in (
        (few, "tables"),
        (TableShape({"a": 9}), "none"),
        (TableShape({"y": 65, "a": 9}, "y"), "tables"),
    ):
        resolved = resolve_order(idpgan(), units=9, shape=shape, budget=BUDGET)
        assert resolved.warm_start.kind == kind
        assert resolve_order(resolved, units=9, shape=shape, budget=BUDGET) == resolved
        assert resolve_order(idpgan(warm_start={"kind": "none"}), units=9, shape=shape).warm_start.kind == "none"
    assert resolve_order(idpgan(), units=9).warm_start is None
    assert resolve_order(idpgan(), units=9, shape=few).steps == 1_000
    assert resolve_order(idpgan(steps=7), units=9, shape=few).steps == 7
    assert resolve_order(idpgan(warm_start={"kind": "none"}), units=9, shape=few).steps == 3_000
    for knobs, wanted in (({}, 8), ({"critic_steps_per_generator_step": 3}, 3), ({"warm_start": {"kind": "none"}}, 5)):
        assert resolve_order(idpgan(**knobs), units=9, shape=few).critic_steps_per_generator_step == wanted
    for knobs, bound in (({}, None), ({"warm_start": {"kind": "none"}}, 0.1), ({"critic_weight_bound": 2.0}, 2.0)):
        assert resolve_order(idpgan(**knobs), units=9, shape=few).critic_weight_bound == bound
    asked = idpgan(warm_start={"kind": "tables"})
    with pytest.raises(InvalidOrder, match="at most 64"):
        resolve_order(asked.model_copy(update={"condition_on": "y"}), units=9, shape=TableShape({"y": 65, "a": 9}))
    for units, pairs in ((5_000, "none"), (50_000, "chosen"), (10_000_000, "all")):
        assert resolve_order(asked, units=units, shape=many, budget=BUDGET).warm_start.pairs == pairs


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("pairs", ["all", "chosen", "none"])
def test_tables_of_a_warm_start_are_on_the_price_list_at_their_share(epsilon, pairs):
    start = {"kind": "tables", "pairs": pairs, "precision_share": 0.3}
    asked = idpgan(epsilon=epsilon, condition_on="y", steps=200, warm_start=start)
    price = price_order(asked, units=50_000, budget=open_budget(2 * epsilon, 1e-6))
    assert 0.99 * epsilon <= price.pld_epsilon <= epsilon
    bought = [event for event in price.events if event.kind == "gaussian"]
    purposes = {
        "all": ["marginals"],
        "chosen": ["one_way_tables", "pair_scores", "marginals"],
        "none": ["one_way_tables", "marginals"],
    }
    assert [event.purpose for event in bought] == purposes[pairs]
    precision = sum(event.noise_multiplier**-2 for event in bought)
    assert precision == pytest.approx(0.3 * get_sigma_gaussian(epsilon, price.delta) ** -2, rel=1e-6)
    cold = price_order(idpgan(epsilon=epsilon, steps=200), units=50_000, budget=open_budget(2 * epsilon, 1e-6))
    assert price.events[-1].gradient_noise_multiplier > cold.events[-1].gradient_noise_multiplier


def test_the_rest_of_a_budget_pays_for_tables_and_steps():
    left = 3 * NANO // 10
    asked = idpgan(steps=200, warm_start={"kind": "tables"})
    rest = asked.model_copy(update={"epsilon": None, "share": "rest"})
    largest = largest_epsilon(rest, units=1_000, budget=BUDGET, simple_left=0, renyi_left=left)
    price = price_order(asked.model_copy(update={"epsilon": largest}), units=1_000, budget=BUDGET)
    assert 0.9 * left < price.shares.renyi <= left


def test_images_have_no_tables_to_begin_from():
    shape = ImageShape(height=8, width=8, channels=1, classes=1)
    assert resolve_order(idpgan(), units=100, shape=shape).warm_start.kind == "none"
    with pytest.raises(InvalidOrder, match="warm_start"):
        resolve_order(idpgan(warm_start={"kind": "tables"}), units=100, shape=shape)


def test_noise_of_pairs_is_that_of_an_average_table():
    """Of equal tables: each of K has noise_std·√K, in as many cells as it has in all strata."""
    noise = noise_of_pairs((10,) * 40, strata=2, noise_std=4.0, units=5_000, exponent=2 / 3)
    assert noise == pytest.approx(200 * 4.0 * math.sqrt(math.comb(40, 2)) / (math.sqrt(2 * math.pi) * 5_000))
    assert noise_of_pairs((10,), strata=2, noise_std=4.0, units=5_000, exponent=2 / 3) == 0.0


def test_wide_tables_have_coarser_pairs():
    assert pair_widths((5, 300, 20), pair_cells=64) == (5, 64, 20)
    assert sum(pair_widths((200,) * 100, pair_cells=64)) <= MAX_PAIR_WIDTH
    assert min(pair_widths((200,) * 1_000, pair_cells=64)) == 2


def test_columns_of_two_way_tables_are_narrowed_in_few_looks():
    """A quote that seeks an ε narrows a thousand columns 34 times; each time went through all of them up to 62 times."""

    class Counted(list):
        looks = 0

        def __iter__(self):
            self.looks += 1
            return super().__iter__()

    for cells in ([200] * 1_000, [2 + place % 200 for place in range(1_000)], [2] * 700 + [64] * 11, [3] * 800, [5]):
        for most in (1, 2, 3, 8, 64):
            counted = Counted(cells)
            widths = pair_widths(counted, pair_cells=most)
            assert counted.looks <= 3
            cap = max(widths, default=0)
            assert widths == tuple(min(width, cap) for width in cells)
            assert cap <= most
            narrowed = cap < min(most, max(cells))
            assert not narrowed or sum(min(width, cap + 1) for width in cells) > MAX_PAIR_WIDTH, "as wide as may be"
            assert cap <= 2 or sum(widths) <= MAX_PAIR_WIDTH


def test_one_mixture_is_as_large_as_two_unless_the_table_is_wide():
    def components(shape: TableShape, **knobs) -> int:
        return resolve_order(order(**knobs), units=10_000, shape=shape, budget=BUDGET).components

    narrow, wide = ({**{f"c{i}": 64 for i in range(columns)}, "y": 2} for columns in (31, 32))
    assert components(TableShape(narrow)) == components(TableShape(narrow, "y"), purpose="tables") == 4_096
    assert components(TableShape(narrow, "y")) == components(TableShape(wide)) == 2_048
    assert components(TableShape(narrow), components=256) == 256


@pytest.mark.parametrize("label", [None, "y"])
def test_pairs_cannot_be_chosen_where_there_is_none(label):
    """Else the release would fail after its charge."""
    few = TableShape({"a": 3, **({"y": 2} if label else {})})
    enough = TableShape({**few.cells, "b": 3})
    chosen = order(pairs="chosen", condition_on=label)
    with pytest.raises(InvalidOrder, match="two columns") as refusal:
        resolve_order(chosen, units=1_000, shape=few, budget=BUDGET)
    assert refusal.value.values["where"] == "pairs"
    resolved = resolve_order(chosen, units=1_000, shape=enough, budget=BUDGET)
    left_open = {"tree_precision_share": 0.0, "components": 2_048 if label else 4_096}
    assert resolved == chosen.model_copy(update=left_open)
    tables = {"kind": "tables", "pairs": "chosen"}
    begun = idpgan(condition_on="y", warm_start=tables)
    with pytest.raises(InvalidOrder, match="two columns"):
        resolve_order(begun, units=1_000, shape=TableShape({"a": 3, "y": 2}), budget=BUDGET)
