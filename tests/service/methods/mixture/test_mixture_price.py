"""The price list of a mixture of images: known from order, schema and n, and one Gaussian of the wanted noise in all."""

import math

import pytest

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape, TableShape
from service.methods.auto import AutoOrder
from service.methods.catalogue import parse_order
from service.methods.marginals.order import MarginalsOrder
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import (
    CELL_MEANS,
    CELL_MOMENTS,
    CLASS_MEANS,
    LEANINGS,
    SHARED_MOMENTS,
    TONES,
    mixture_events,
)
from service.privacy.filters import NANO, open_budget
from tests.orders import largest_epsilon, price_order, resolve_order

BUDGET = open_budget(10.0, 1e-5)
DIGITS = ImageShape(28, 28, 1, classes=10)


def order_of(**knobs):
    return parse_order({"method": "mixture", "epsilon": 1.0, **knobs})


@pytest.mark.parametrize("upright", [None, True, False])
@pytest.mark.parametrize(("cells", "rounds"), [(1, 0), (8, 2)])
def test_the_releases_are_together_one_gaussian(cells, rounds, upright):
    events = mixture_events(order_of(cells=cells, upright=upright), noise_multiplier=3.0)
    assert [event.purpose for event in events] == [
        *([LEANINGS] if upright is None else []),
        CLASS_MEANS,
        TONES,
        SHARED_MOMENTS,
        *[CELL_MEANS] * rounds,
        CELL_MOMENTS,
    ]
    assert sum(event.noise_multiplier**-2 for event in events) == pytest.approx(1 / 9)
    assert order_of(cells=cells, upright=upright).steps == len(events)


def test_slants_are_looked_for_in_grey_images_only():
    colour = ImageShape(32, 32, 3, classes=10)
    for wanted in (None, True, False):
        order = order_of(upright=wanted)
        assert resolve_order(order, units=60_000, shape=DIGITS, budget=BUDGET).upright is wanted
        assert resolve_order(order, units=60_000, shape=colour, budget=BUDGET).upright is (wanted or False)


@pytest.mark.parametrize("epsilon", [0.5, 10.0])
def test_the_price_is_just_below_what_was_asked(epsilon):
    order = resolve_order(order_of(epsilon=epsilon), units=60_000, shape=DIGITS, budget=BUDGET)
    price = price_order(order, units=60_000, budget=BUDGET)
    assert 0.99 * epsilon <= price.pld_epsilon <= epsilon
    assert price.shares.simple == math.ceil(epsilon / 10.0 * NANO)


def test_cells_where_there_is_enough_for_them():
    def cells(units, epsilon, shape=DIGITS):
        order = order_of(epsilon=epsilon)
        resolved = resolve_order(order, units=units, shape=shape, budget=BUDGET)
        assert resolve_order(resolved, units=units, shape=shape, budget=BUDGET) == resolved
        return resolved.cells

    assert cells(60_000, 10.0) == 24
    assert cells(60_000, 1.0) == 1
    assert cells(600, 10.0) == 1
    assert cells(6_000_000, 1.0) == 24
    by_share = MixtureOrder(method="mixture", share=1.0)
    assert resolve_order(by_share, units=60_000, shape=DIGITS, budget=BUDGET).cells == 24
    assert resolve_order(order_of(cells=3), units=10, shape=DIGITS, budget=BUDGET).cells == 3


def test_auto_makes_images_by_the_mixture_and_says_why():
    order = resolve_order(AutoOrder(epsilon=1.0), units=60_000, shape=DIGITS, budget=BUDGET)
    assert isinstance(order, MixtureOrder)
    assert "classifiers trained on its images" in order.chosen_because


def test_methods_and_data_must_fit():
    with pytest.raises(InvalidOrder):
        resolve_order(MarginalsOrder(method="marginals", epsilon=1.0), units=100, shape=DIGITS, budget=BUDGET)
    with pytest.raises(InvalidOrder):
        mixture_events(order_of(), noise_multiplier=1.0)
    shape = TableShape({"a": 2, "b": 3})
    assert not isinstance(resolve_order(AutoOrder(epsilon=1.0), units=100, shape=shape, budget=BUDGET), MixtureOrder)


def test_shares_that_leave_nothing_are_refused():
    with pytest.raises(InvalidOrder, match="leave nothing"):
        order_of(directions_precision_share=0.39, sorting_precision_share=0.19, sorting_rounds=3)


def test_the_rest_of_a_budget_fits():
    left = NANO // 3
    epsilon = largest_epsilon(
        MixtureOrder(method="mixture", share="rest"), units=60_000, budget=BUDGET, simple_left=0, renyi_left=left
    )
    price = price_order(order_of(epsilon=epsilon, cells=1), units=60_000, budget=BUDGET)
    assert 0.9 * left < price.shares.renyi <= left


def test_cells_are_for_the_noise_of_all_images_that_a_unit_may_have():
    def cells(most, units=60_000):
        shape = ImageShape(28, 28, 1, classes=10, max_images_per_unit=most)
        return resolve_order(order_of(epsilon=10.0), units=units, shape=shape, budget=BUDGET).cells

    assert [cells(1), cells(10), cells(10, 600_000)] == [24, 1, 24]
    order = order_of(epsilon=1.0)
    people = ImageShape(28, 28, 1, classes=10, max_images_per_unit=10)
    one, ten = (resolve_order(order, units=60_000, shape=shape, budget=BUDGET) for shape in (DIGITS, people))
    prices = [price_order(resolved, units=60_000, budget=BUDGET).shares for resolved in (one, ten)]
    assert prices[0] == prices[1], "ten photographs of a person cost what one costs"
