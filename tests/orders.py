"""Orders for tests that have no dataset: resolved as if for a table or images of a given shape, and priced."""

from __future__ import annotations

from typing import Any

from service.domain.shapes import ImageShape, TableShape
from service.methods import pricing
from service.methods.auto import AutoOrder
from service.methods.catalogue import method_of, with_method
from service.methods.dpgm.order import AutoencoderOrder
from service.methods.facts import Facts
from service.methods.idpgan.knobs import TablesFirst
from service.methods.idpgan.order import GanOrder, IdpganOrder
from service.methods.idpgan.resolve import with_sampling_probability
from service.methods.knobs import AnyOrder, Order, rate_of
from service.methods.marginals.order import COMPONENTS, MarginalsOrder
from service.methods.mixture.order import MixtureOrder
from service.methods.pricing import Price
from service.privacy.filters import Budget, Shares, open_budget

BUDGET = open_budget(100.0, 1e-5)


def facts_of(shape: TableShape | ImageShape, *, units: int, budget: Budget = BUDGET) -> Facts:
    """The same shape for every number of bins."""
    return Facts(units, budget, lambda _numeric_bins: shape)


def choose_method(order: AnyOrder, shape: TableShape | ImageShape) -> Order:
    """What `auto` takes."""
    return with_method(order, facts_of(shape, units=1_000))


def resolve_order(
    order: AnyOrder, *, units: int, shape: TableShape | ImageShape | None = None, budget: Budget | None = None
) -> Any:
    """As the service resolves it; without a shape, only what a price needs is filled in, with all pairs measured."""
    if shape is None:
        return _priceable(order, units)
    facts = facts_of(shape, units=units, budget=budget or BUDGET)
    chosen = with_method(order, facts)
    return method_of(chosen).resolve(chosen, facts)


def price_order(order: AnyOrder, *, units: int, budget: Budget) -> Price:
    """The price of an order, resolved or not."""
    return pricing.price_order(_priceable(order, units), budget)


def largest_epsilon(order: AnyOrder, *, units: int, budget: Budget, simple_left: int, renyi_left: int) -> float:
    """What an order of the rest gets."""
    rest = _priceable(order, units).model_copy(update={"epsilon": None, "share": "rest"})
    is_of_images = isinstance(rest, MixtureOrder) or (isinstance(rest, GanOrder) and rest.image_networks is not None)
    shape = ImageShape(14, 14, 1, 10) if is_of_images else TableShape({"a": 2, "b": 2})
    facts = Facts(units, budget, lambda _numeric_bins: shape)
    return pricing._rest(rest, facts, Shares(max(0, simple_left), renyi_left))


def _priceable(order: AnyOrder, units: int) -> Order:
    if isinstance(order, AutoOrder):
        order = MarginalsOrder(method="marginals", **order.model_dump(exclude={"method"}))
    if isinstance(order, MarginalsOrder) and order.pairs == "auto":
        update = {"pairs": "all", "pair_groups": order.pair_groups or "counted"}
        order = order.model_copy(update={**update, "components": order.components or COMPONENTS})
    if isinstance(order, MixtureOrder) and order.cells is None:
        order = order.model_copy(update={"cells": 1})
    if isinstance(order, GanOrder):
        order = with_sampling_probability(order, units)
    if isinstance(order, AutoencoderOrder) and order.sampling_probability is None:
        order = order.model_copy(update={"sampling_probability": rate_of(None, units)})
    if isinstance(order, IdpganOrder):
        start = order.warm_start
        if isinstance(start, TablesFirst) and start.pairs == "auto":
            start = start.model_copy(update={"pairs": "all"})
        if order.mixture_first is not None and order.mixture_first.cells is None:
            start = order.mixture_first.model_copy(update={"cells": 1})
        order = order.model_copy(update={"warm_start": start})
    assert isinstance(order, Order)
    return order
