"""The least ε that an order of single images may have: its noise fits the samplers, so that no run ends after its charge for that."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest

from service.base.errors import InvalidOrder
from service.domain.image_schema import parse_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.image_release import drawable
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares, open_budget
from workers.encoding.images import cosines
from workers.mechanism import image_coefficients as exact
from workers.mechanism.noise import LARGEST_NOISE_STD
from workers.numerics.exact_geometric import LARGEST_TERM, Decay

resolving = importlib.import_module("service.methods.image_release.resolve")

BUDGET = open_budget(1_000.0, 1e-12)
COLOUR, FACE = (512, 512, 3), (112, 92, 1)


def resolved(shape: tuple[int, int, int], pixel_unit: Any, most: int, epsilon: float, knobs: dict[str, Any]) -> Any:
    part = {} if pixel_unit is None else {"pixel_unit": pixel_unit}
    schema = parse_schema({"type": "image", "height": shape[0], "width": shape[1], "channels": shape[2]} | part)
    facts = Facts.of_schema(schema, units=10, most_per_unit=most, budget=BUDGET)
    order = parse_order({"method": "image_release", "epsilon": epsilon, **knobs})
    return resolve_order(order, facts, Shares(NANO, NANO), schema)


def least_epsilon(*asked: Any) -> float:
    """As its refusal names it."""
    shape, pixel_unit, most, knobs = asked
    with pytest.raises(InvalidOrder, match="image_release needs") as refused:
        resolved(shape, pixel_unit, most, 1e-9, knobs)
    return float(str(refused.value).split(" needs ")[1].split()[0])


def test_the_samplers_take_what_orders_are_held_to() -> None:
    assert drawable.LARGEST_GEOMETRIC_SCALE == LARGEST_TERM
    assert drawable.LARGEST_GAUSSIAN_STD == LARGEST_NOISE_STD
    assert (drawable.OF_COEFFICIENTS, drawable.OF_VALUES) == (exact.BASIS_SCALE**2, exact.VALUE_SCALE)
    assert drawable.WHITE == exact.WHITE


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize(
    ("shape", "pixel_unit", "most", "knobs"),
    [
        (FACE, None, 1, {}),
        (FACE, "column", 1, {"singular_values_share": 0.49}),
        (FACE, {"rows": 8, "columns": 8}, 1, {"selection_share": 0.49}),
        (FACE, {"rows": 8, "columns": 8}, 1, {"coefficients": 32, "singular_values_share": 1e-6}),
        (COLOUR, None, 1, {"coefficients": 32}),
        (COLOUR, None, 100, {"coefficients": 1}),
        (COLOUR, {"rows": 500, "columns": 300}, 1, {"singular_values_share": 1e-3}),
    ],
)
def test_the_least_epsilon_has_noise_that_can_be_drawn(
    shape: tuple[int, int, int], pixel_unit: Any, most: int, knobs: dict[str, Any], noise: str
) -> None:
    knobs = knobs | {"noise": noise}
    order = resolved(shape, pixel_unit, most, least_epsilon(shape, pixel_unit, most, knobs), knobs)
    kept = order.coefficients or order.sizes[-1]
    down, across = (exact.WholeBasis.of(cosines(side, kept)) for side in shape[:2])
    unit = exact.UnitPixels(*resolving.unit_rows_and_columns(order, shape[:2]), shape[2], most)
    of_coefficients = (exact.l1(down, across, unit), math.sqrt(exact.squared_l2(down, across, unit)))
    of_values = (exact.values_l1(down, across, unit), exact.values_l2(down, across, unit))
    for event in price_order(order, BUDGET).events:
        if event.purpose == "image_size":
            continue
        l1, l2 = of_values if event.purpose == "image_singular_values" else of_coefficients
        if noise == "laplace":
            Decay.of(event.epsilon, l1)  # raises where it is too large
        else:
            assert event.noise_multiplier * l2 <= LARGEST_NOISE_STD


def test_it_is_not_much_more_than_that() -> None:
    assert least_epsilon(FACE, None, 1, {}) == least_epsilon(COLOUR, "column", 1, {}) == resolving.SMALLEST_EPSILON
    needed = least_epsilon(FACE, None, 1, {"noise": "laplace", "coefficients": 16})
    unit = exact.UnitPixels(*FACE)
    down, across = (exact.WholeBasis.of(cosines(side, 16)) for side in FACE[:2])
    with pytest.raises(ValueError, match="larger than can be drawn"):
        Decay.of(0.8 * needed, exact.l1(down, across, unit))
