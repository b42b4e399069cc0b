"""What an order leaves open, settled from the declared schema, n and the budget alone; never from a row."""

from __future__ import annotations

from typing import Any

from service.base.errors import InvalidOrder
from service.domain.shapes import ImageShape, TableShape
from service.methods.idpgan.images import resolve_image_gan
from service.methods.marginals.pair_rules import MAX_PAIR_WIDTH, settled_pairs
from service.methods.marginals.value_rules import settled_value_share
from service.methods.mixture.price import BECAUSE_MIXTURE, resolve_mixture, resolve_mixture_first
from service.methods.orders import (
    COMPONENTS,
    FROM_NOTHING,
    NEAR_TABLES,
    AutoOrder,
    FromNothing,
    IdpganOrder,
    MarginalsOrder,
    MixtureOrder,
    Order,
    TablesFirst,
    default_sampling_probability,
)
from service.privacy.filters import Budget

MAX_SLICES = 64
"""Every value of the condition has a mixture of its own, fitted to its own tables. A target of more values is a column like the others."""

COMPONENTS_WITHOUT_A_CONDITION = 4_096
"""One mixture may be as large as two are together, unless columns have so many cells that a step takes long (docs/decisions/0031)."""

BECAUSE_MARGINALS = (
    "marginals: rows fitted to noised one- and two-way tables were closer to the real ones, and trained better "
    "classifiers, than a generator trained by noisy gradients, where both were measured (docs/results.md)"
)
BECAUSE_IDPGAN = "idpgan: the order conditions on a field of more categories than mixtures are fitted to; without condition_on it would be marginals (docs/results.md)"


def resolve_order(
    order: Order | AutoOrder, *, units: int, shape: TableShape | ImageShape | None = None, budget: Budget | None = None
) -> Order:
    """Fill in what depends on public facts. The result is what the worker executes; resolving it again changes nothing.

    Without a shape, all pairs of a marginals order count as measurable.
    """
    if isinstance(order, AutoOrder):
        order = choose_method(order, shape)
    if isinstance(order, MixtureOrder):
        return resolve_mixture(
            order, units=units, shape=shape if isinstance(shape, ImageShape) else None, budget=budget
        )
    if isinstance(shape, ImageShape):
        if not isinstance(order, IdpganOrder):
            raise InvalidOrder("method: this one makes tables, and the dataset holds images", where="method")
        order = resolve_image_gan(order, units=units, shape=shape, budget=budget)
        order = resolve_mixture_first(order, units=units, shape=shape, budget=budget)
        return _with_sampling_probability(order, units)
    order = order.model_copy(update={"condition_on": _condition(order, shape)})
    if isinstance(order, IdpganOrder):
        return _with_warm_start(_with_sampling_probability(order, units), units, shape, budget)
    _check_slices(order, shape)
    _check_choice(order.pairs, order.condition_on, shape, where="pairs")
    return order.model_copy(update=_settled(order, units=units, shape=shape, budget=budget))


def _condition(order: MarginalsOrder | IdpganOrder, shape: TableShape | None) -> str | None:
    """The field that the order names, or the schema's target unless it has too many values or rows are for tables."""
    if order.condition_on is not None or shape is None or order.purpose == "tables":
        return order.condition_on
    target = shape.target if _categories(shape.target, shape) <= MAX_SLICES else None
    if order.purpose == "classifiers" and target is None:
        raise InvalidOrder(
            f"purpose: classifiers need something to predict, a `target` of at most {MAX_SLICES} categories in the schema "
            "or condition_on in the order",
            where="purpose",
        )
    return target


def _with_warm_start(order: IdpganOrder, units: int, shape: TableShape | None, budget: Budget | None) -> IdpganOrder:
    """Tables first, unless the order says otherwise or the columns do not allow it.

    Without a shape nothing is begun that was not ordered, and all pairs count as measurable. With a shape and no budget
    the choice of pairs waits for the budget.
    """
    start = order.warm_start
    if start is None and shape is not None:
        start = TablesFirst() if _allows_tables(order.condition_on, shape) else FromNothing()
    if not isinstance(start, TablesFirst):
        defaults = FROM_NOTHING if isinstance(start, FromNothing) else {}
        return order.model_copy(update={"warm_start": start, **_unnamed(order, defaults)})
    if shape is not None and not _allows_tables(order.condition_on, shape):
        raise InvalidOrder(
            f"warm_start: tables need two columns, and a condition of at most {MAX_SLICES} categories",
            where="warm_start",
        )
    _check_choice(start.pairs, order.condition_on, shape, where="warm_start.pairs")
    order = order.model_copy(update={"warm_start": start, **_unnamed(order, NEAR_TABLES)})
    tables = order.tables_order
    if tables is None or (shape is not None and budget is None):
        return order
    # In cells as they are declared: networks were only ever begun near such tables.
    tables = tables.model_copy(update={"pair_groups": "declared", "numeric_cells": "declared"})
    settled = _settled(tables, units=units, shape=shape, budget=budget, precision_share=start.precision_share)
    of_start = {name: value for name, value in settled.items() if name in TablesFirst.model_fields}
    return order.model_copy(update={"warm_start": start.model_copy(update=of_start)})


def _settled(
    order: MarginalsOrder,
    *,
    units: int,
    shape: TableShape | None,
    budget: Budget | None,
    precision_share: float = 1.0,
) -> dict[str, Any]:
    """What becomes of components, pairs and values that an order leaves open."""
    settled: dict[str, Any] = {"components": order.components or _components(order.condition_on, shape)}
    if order.pairs == "auto":
        settled |= settled_pairs(order, units=units, shape=shape, budget=budget, precision_share=precision_share)
    if shape is not None and not shape.columns_of_values:
        settled["values_precision_share"] = 0.0  # whatever was ordered: nothing would be bought
    elif order.values_precision_share is None and shape is not None and budget is not None:
        share = settled_value_share(order, units=units, shape=shape, budget=budget, precision_share=precision_share)
        settled["values_precision_share"] = share
    return settled


def _components(condition: str | None, shape: TableShape | None) -> int:
    """Of each mixture, before it is known whether a table has the rows for them."""
    is_small = shape is not None and sum(shape.cells.values()) <= MAX_PAIR_WIDTH
    return COMPONENTS_WITHOUT_A_CONDITION if condition is None and is_small else COMPONENTS


def _unnamed(order: IdpganOrder, defaults: dict[str, Any]) -> dict[str, Any]:
    """Those that the order leaves open."""
    return {name: value for name, value in defaults.items() if name not in order.model_fields_set}


def _allows_tables(label: str | None, shape: TableShape) -> bool:
    """Whether there are pairs to measure, in few enough slices."""
    free = len(shape.cells) - (label in shape.cells)
    return free >= 1 and len(shape.cells) >= 2 and _categories(label, shape) <= MAX_SLICES


def _with_sampling_probability(order: IdpganOrder, units: int) -> IdpganOrder:
    if order.sampling_probability is not None:
        return order
    return order.model_copy(update={"sampling_probability": default_sampling_probability(units)})


def choose_method(order: AutoOrder, shape: TableShape | ImageShape | None) -> Order:
    """The rule of `method: auto`, with its reason in the order; docs/results.md has the measurements behind it."""
    named = order.model_dump(exclude={"method"})
    if isinstance(shape, ImageShape):
        return MixtureOrder(method="mixture", chosen_because=BECAUSE_MIXTURE, **named)
    if _categories(order.condition_on, shape) > MAX_SLICES:
        return IdpganOrder(method="idpgan", chosen_because=BECAUSE_IDPGAN, **named)
    return MarginalsOrder(method="marginals", chosen_because=BECAUSE_MARGINALS, **named)


def _check_slices(order: MarginalsOrder, shape: TableShape | None) -> None:
    if _categories(order.condition_on, shape) > MAX_SLICES:
        raise InvalidOrder(
            f"condition_on: marginals needs a field of at most {MAX_SLICES} categories", where="condition_on"
        )


def _categories(label: str | None, shape: TableShape | None) -> int:
    """Of a condition, a missing one included; 1 without a condition, or where the field is not known."""
    return 1 if label is None or shape is None else shape.cells.get(label, 1)


def _check_choice(pairs: str, label: str | None, shape: TableShape | None, *, where: str) -> None:
    """Pairs cannot be chosen where there is none."""
    if shape is not None and pairs in {"chosen", "few_or_all"} and len(shape.cells) - (label in shape.cells) < 2:
        raise InvalidOrder(f"pairs: {pairs} needs two columns besides the condition", where=where)
