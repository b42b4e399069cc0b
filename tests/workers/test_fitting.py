"""What a worker asks of a stored order before it charges: who may write to the database has not asked it."""

from __future__ import annotations

from typing import Any

import pytest

from service.datasets.models import Dataset
from service.methods.catalogue import parse_order, parse_resolved_order
from service.privacy.filters import open_budget
from tests.catalogue import CASES, case_of
from tests.orders import price_order
from workers.fitting import misfit, says_what_it_costs

IMAGES = {"type": "image", "height": 12, "width": 9, "channels": 1}


@pytest.mark.parametrize(("method", "holds"), CASES)
def test_what_was_ordered_fits(method: str, holds: Any) -> None:
    case = case_of(method, holds)
    assert misfit(case.order, Dataset(schema=case.schema.as_json())) is None


@pytest.mark.parametrize(
    ("declared", "ordered"),
    [(None, "column"), (None, {"rows": 1, "columns": 1}), ("column", {"rows": 1, "columns": 1}), ("column", "image")],
)
def test_single_images_for_another_unit_than_the_budgets_are_not_paid(declared: Any, ordered: Any) -> None:
    """The same events have the less noise, the smaller the unit is that they are for."""
    dataset = Dataset(schema=IMAGES | ({} if declared is None else {"pixel_unit": declared}))
    order = {"method": "image_release", "epsilon": 1.0, "coefficients": 4}
    assert misfit(parse_resolved_order(order | {"unit": ordered}), dataset) == "underpaid"
    assert misfit(parse_resolved_order(order | {"unit": declared or "image"}), dataset) is None


@pytest.mark.parametrize("stated", ["epsilon", "delta", "pld_epsilon", "renyi_divergence"])
def test_a_price_that_states_less_than_it_costs_is_found(stated: str) -> None:
    """A certificate would have signed it, beside a list that was paid in full."""
    budget = open_budget(3.0, 1e-5)
    price = price_order(parse_order({"method": "marginals", "epsilon": 1.0}), units=200, budget=budget)
    honest = price.as_json
    assert says_what_it_costs(honest, price.events, price.shares, budget)
    for less in (honest[stated] * 0.98, honest[stated] / 100.0, 0.0, -1.0, float("nan")):
        assert not says_what_it_costs(honest | {stated: less}, price.events, price.shares, budget)


WORDS = {"missing": None, "null": None, "a text": "1.0", "a word": "cheap", "no number": float("nan"), "infinity": float("inf"),
         "as text": "Infinity", "a list": [1.0], "an object": {"value": 1.0}, "true": True, "too large": 10**400}  # fmt: skip
"""What stands in a stored price in place of a figure."""


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("figure", ["epsilon", "delta", "pld_epsilon", "renyi_divergence"])
def test_a_price_without_a_figure_states_too_little(figure: str, word: str) -> None:
    """It broke the attempt, and each that followed; now the release is voided before it is charged."""
    budget = open_budget(3.0, 1e-5)
    price = price_order(parse_order({"method": "marginals", "epsilon": 1.0}), units=200, budget=budget)
    forged = {**price.as_json, figure: WORDS[word]}
    if word == "missing":
        del forged[figure]
    assert not says_what_it_costs(forged, price.events, price.shares, budget)


def test_a_price_that_is_no_object_states_nothing() -> None:
    budget = open_budget(3.0, 1e-5)
    price = price_order(parse_order({"method": "marginals", "epsilon": 1.0}), units=200, budget=budget)
    for forged in ([], "cheap", None, 7):
        assert not says_what_it_costs(forged, price.events, price.shares, budget)  # type: ignore[arg-type]  # raw SQL wrote it


def test_what_is_open_is_bought_first_and_once() -> None:
    bought, table = case_of("declaration", "table"), case_of("marginals", "table")
    assert misfit(table.order, Dataset(schema=bought.schema.as_json())) == "declaration_needed"
    assert misfit(bought.order, Dataset(schema=table.schema.as_json())) == "already_declared"
