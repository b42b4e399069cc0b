"""Which unit an order of single images has, which orders are refused, and what they cost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from imprimatur.declarations import COPIES_IMAGES
from service.base.errors import InvalidInput, InvalidOrder, InvalidSchema
from service.domain.image_schema import parse_schema
from service.domain.privacy_unit import parse_privacy_unit
from service.domain.unit_words import part_in_words, protected_units
from service.intake.ingest import ingest_table
from service.methods.catalogue import CATALOGUE, parse_order
from service.methods.facts import Facts
from service.methods.knobs import Order
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares, open_budget
from service.privacy.statements import default_delta, statement_warnings

BUDGET = open_budget(10.0, 1e-5)
PLAIN = {"type": "image", "height": 12, "width": 9, "channels": 1}
COLUMNS = PLAIN | {"pixel_unit": "column"}
BLOCKS = PLAIN | {"pixel_unit": {"rows": 4, "columns": 3}}


def resolved(schema: dict[str, Any], most: int = 1, units: int = 1, **knobs: Any) -> Order:
    facts = Facts.of_declaration(json.dumps(schema), units=units, most_per_unit=most, budget=BUDGET)
    order = parse_order({"epsilon": 1.0, **knobs})
    return resolve_order(order, facts, Shares(NANO, NANO), parse_schema(schema))


@pytest.mark.parametrize(
    ("schema", "unit"), [(PLAIN, "image"), (COLUMNS, "column"), (BLOCKS, {"rows": 4, "columns": 3})]
)
def test_the_stored_order_states_the_unit(schema: dict[str, Any], unit: Any) -> None:
    order = resolved(schema, method="image_release")
    assert order.model_dump(mode="json")["unit"] == unit
    assert resolved(schema, method="image_release", unit=unit) == order


@pytest.mark.parametrize(
    ("schema", "unit"),
    [
        (PLAIN, "column"),
        (COLUMNS, "image"),
        (BLOCKS, "column"),
        (BLOCKS, {"rows": 3, "columns": 3}),
        (PLAIN, {"rows": 1, "columns": 1}),
    ],
)
def test_another_unit_than_the_budgets_is_refused(schema: dict[str, Any], unit: Any) -> None:
    with pytest.raises(InvalidOrder, match="unit: this dataset's is"):
        resolved(schema, method="image_release", unit=unit)


@pytest.mark.parametrize("schema", [COLUMNS, BLOCKS])
@pytest.mark.parametrize("method", [name for name, each in CATALOGUE.items() if "image" in each.takes])
def test_methods_of_whole_images_are_refused_where_units_are_parts(schema: dict[str, Any], method: str) -> None:
    if CATALOGUE[method].takes_parts_of_images:
        assert method == "image_release"
        return
    with pytest.raises(InvalidOrder, match=r"protects whole images.*choose image_release"):
        resolved(schema, method=method)


def test_the_client_knows_whose_images_are_copies() -> None:
    assert tuple(name for name, each in CATALOGUE.items() if each.takes_parts_of_images) == COPIES_IMAGES


def test_auto_takes_it_for_parts_alone() -> None:
    assert resolved(COLUMNS).method == "image_release"  # type: ignore[attr-defined]
    assert resolved(PLAIN, units=500).method == "mixture"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("knobs", "sentence"),
    [
        ({"coefficients": 10}, "coefficients: at most 9"),
        ({"sizes": [10, 12]}, "sizes: at least one of at most 9"),
        ({"sizes": [3, 2]}, "rising"),
        ({"epsilon": 0.001}, "needs 0.01 at least"),
        ({"units": 1_001, "most": 1_000}, "at most 1000000 images"),
    ],
)
def test_what_cannot_be_is_refused(knobs: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidOrder, match=sentence):
        resolved(PLAIN, method="image_release", **knobs)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"classes": 3, "pixel_unit": "column"}, "leave out classes"),
        ({"pixel_unit": {"rows": 12, "columns": 9}}, "^schema: pixel_unit: this is the whole image"),
        ({"pixel_unit": {"rows": 0, "columns": 9}}, "^schema: pixel_unit: Input should be greater"),
        ({"pixel_unit": {"rows": 13, "columns": 1}}, "no larger"),
        ({"pixel_unit": "row"}, "pixel_unit"),
    ],
)
def test_a_part_is_declared_so_that_it_means_something(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidSchema, match=sentence):
        parse_schema(PLAIN | change)


def test_schemas_without_the_new_word_are_stored_as_before() -> None:
    assert parse_schema(PLAIN).as_json() == PLAIN
    assert parse_schema(BLOCKS).as_json() == BLOCKS


def test_parts_and_persons_are_not_declared_together() -> None:
    with pytest.raises(InvalidInput, match="one of the two"):
        ingest_table(
            None,  # type: ignore[arg-type]  # refused before the file is looked at
            parse_schema(COLUMNS),
            privacy_unit=parse_privacy_unit({"max_images_per_unit": 3}),
            limits=None,  # type: ignore[arg-type]
            scratch_dir=None,
            fingerprint_key=b"",
        )


def test_the_unit_is_said_in_words() -> None:
    assert part_in_words(None, 12) == "one image"
    assert part_in_words((12, 1), 12).startswith("one column of pixels of one image: neither an image nor a person")
    assert part_in_words((4, 3), 12).startswith("one block of 4 × 3 pixels of one image")


def test_delta_is_judged_by_how_many_parts_there_are() -> None:
    schemas = [parse_schema(schema) for schema in (PLAIN, COLUMNS, BLOCKS)]
    assert [protected_units(schema, 400) for schema in schemas] == [400, 400 * 9, 400 * 3 * 3]
    assert protected_units(None, 400) == 400, "a table"
    for schema, says in zip(schemas, (False, True, True), strict=True):
        units, delta = protected_units(schema, 400), default_delta(400)
        warnings = statement_warnings(epsilon=1.0, delta=delta, units=units)
        assert any(f"for {units:,} units" in warning for warning in warnings) is says


def test_a_forecast_says_that_a_part_is_no_person() -> None:
    method = CATALOGUE["image_release"]
    facts = Facts.of_declaration(json.dumps(COLUMNS), units=1, most_per_unit=1, budget=BUDGET)
    (warning,) = method.forecast(resolved(COLUMNS), (), facts).warnings
    assert "no promise to a person" in warning


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("knobs", [{}, {"coefficients": 3}, {"singular_values_share": 0.2}])
def test_prices_hold_and_every_measurement_is_in_them(noise: str, knobs: dict[str, Any]) -> None:
    price = price_order(resolved(COLUMNS, method="image_release", noise=noise, **knobs), BUDGET)
    assert 0.98 < price.pld_epsilon <= 1.0
    purposes = [event.purpose for event in price.events]
    expected = ["image_size"] if "coefficients" not in knobs else []
    expected += ["image_coefficients"] + (["image_singular_values"] if "singular_values_share" in knobs else [])
    assert purposes == expected
