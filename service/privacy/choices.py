"""What an order leaves open, settled from the declared schema, n and the budget alone; never from a row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from service.errors import InvalidOrder
from service.privacy.filters import Budget
from service.privacy.image_gan import resolve_image_gan
from service.privacy.mixture import BECAUSE_MIXTURE, ImageShape, resolve_mixture, resolve_mixture_first
from service.privacy.orders import (
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
from service.privacy.whole_noise import whole_noise

MAX_SLICES = 64
"""Every value of the condition has a mixture of its own, fitted to its own tables."""

MAX_PAIR_WIDTH = 2_048
"""Cells of all columns side by side, as two-way tables see them: bounds memory and the time of a fitting step."""

MOST_NOISE_PER_PAIR = 0.8
"""Pairs are measured while the noise alone moves a two-way table by at most this much in total variation."""

FEWEST_CHOSEN_PAIRS = 5
"""For each column: a choice among all pairs is worth its price where at least so many can be measured (docs/decisions/0022)."""

GROUPS_OF_A_COLUMN = 8
"""Where cells are grouped by counts, all pairs are looked at as if they had so many; how many there will be is not known before."""

MOST_NOISE_PER_GROUPED_PAIR = 0.2
"""All pairs are measured in groups up to this much (docs/decisions/0018),"""

MOST_NOISE_TO_CHOOSE_IN_GROUPS = 0.4
"""and chosen ones up to this much; beyond it single columns alone are nearer, and train better classifiers (docs/decisions/0022)."""

LEAST_NOISE_TO_GROUP = 0.07
"""Up to this much for a pair of declared cells, groups have nothing to gain."""

FEW_SLICES = 2
"""Pairs that would have to be chosen are measured in all rows together instead, where the condition has more values than this (docs/decisions/0021)."""

ONE_WAY_WEIGHT_IN_MUCH_NOISE = 20.0
"""Where all pairs can be measured in groups alone, single columns are as precise as beside chosen ones."""

FEWEST_PAIRS_BY_COLUMN = 3
"""It is asked whether few pairs say nearly everything where there are more than this for each column: a tree has one;"""

LEAST_NOISE_TO_ASK_FOR_FEW = 0.1
"""where noise moves a pair of declared cells by more than this in total variation: up to it all are known well;"""

MOST_NOISE_OF_SCORES = 0.02
"""and where that of a pair's score is at most this (docs/decisions/0025)."""

BECAUSE_MARGINALS = (
    "marginals: rows fitted to noised one- and two-way tables were closer to the real ones, and trained better "
    "classifiers, than a generator trained by noisy gradients, where both were measured (docs/results.md)"
)
BECAUSE_IDPGAN = "idpgan: the table has a single column, or more categories in one column than a mixture is fitted to (docs/results.md)"


@dataclass(frozen=True)
class TableShape:
    """The declared columns: cells of each, the field named as target, and how many rows of a unit are used."""

    cells: Mapping[str, int]
    target: str | None = None
    max_rows_per_unit: int = 1
    has_open_ranges: bool = False
    """Whether a range may be cut into other cells than equal ones, because none are declared."""


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
    if order.condition_on is None and shape is not None and shape.target is not None:
        order = order.model_copy(update={"condition_on": shape.target})
    if isinstance(order, IdpganOrder):
        return _with_warm_start(_with_sampling_probability(order, units), units, shape, budget)
    _check_slices(order, shape)
    _check_choice(order.pairs, order.condition_on, shape, where="pairs")
    if order.pairs != "auto":
        return order
    return order.model_copy(update=_pairs_to_measure(order, units, shape, budget))


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
    if tables is None or start.pairs != "auto" or (shape is not None and budget is None):
        return order
    # In cells as they are declared: networks were only ever begun near such tables.
    tables = tables.model_copy(update={"pair_groups": "declared", "numeric_cells": "declared"})
    pairs = _pairs_to_measure(tables, units, shape, budget, start.precision_share)["pairs"]
    return order.model_copy(update={"warm_start": start.model_copy(update={"pairs": pairs})})


def _unnamed(order: IdpganOrder, defaults: dict[str, Any]) -> dict[str, Any]:
    """Those that the order leaves open."""
    return {name: value for name, value in defaults.items() if name not in order.model_fields_set}


def _allows_tables(label: str | None, shape: TableShape) -> bool:
    """Whether there are pairs to measure, in few enough slices."""
    free = len(shape.cells) - (label in shape.cells)
    return free >= 1 and len(shape.cells) >= 2 and (label is None or shape.cells.get(label, 1) <= MAX_SLICES)


def _with_sampling_probability(order: IdpganOrder, units: int) -> IdpganOrder:
    if order.sampling_probability is not None:
        return order
    return order.model_copy(update={"sampling_probability": default_sampling_probability(units)})


def choose_method(order: AutoOrder, shape: TableShape | ImageShape | None) -> Order:
    """The rule of `method: auto`, with its reason in the order; docs/results.md has the measurements behind it."""
    named = order.model_dump(exclude={"method"})
    if isinstance(shape, ImageShape):
        return MixtureOrder(method="mixture", chosen_because=BECAUSE_MIXTURE, **named)
    label = order.condition_on or (shape.target if shape else None)
    slices = 1 if shape is None or label is None else shape.cells.get(label, 1)
    if slices > MAX_SLICES or (shape is not None and len(shape.cells) < 2):
        return IdpganOrder(method="idpgan", chosen_because=BECAUSE_IDPGAN, **named)
    return MarginalsOrder(method="marginals", chosen_because=BECAUSE_MARGINALS, **named)


def pair_widths(cells: Sequence[int], *, pair_cells: int) -> tuple[int, ...]:
    """Cells of every column in two-way tables: at most so many, and fewer where all together are too many."""
    while pair_cells > 2 and sum(min(width, pair_cells) for width in cells) > MAX_PAIR_WIDTH:
        pair_cells -= 1
    return tuple(min(width, pair_cells) for width in cells)


def pairs_worth_measuring(
    widths: tuple[int, ...],
    *,
    slices: int,
    noise_std: float,
    units: int,
    exponent: float,
    most_noise: float = MOST_NOISE_PER_PAIR,
) -> tuple[int, int]:
    """How many pairs of average size can share a measurement, and how many there are.

    noise_std is that of the whole measurement with one table; K tables of `cells` cells have noise_std·√K each, which
    moves one by 0.4·cells·noise_std·√K/units in total variation.
    """
    sizes = [slices * a * b for a, b in combinations(widths, 2)]
    if not sizes:
        return 0, 0
    total = sum(size**exponent for size in sizes)
    noise = sum(size * noise_std * math.sqrt(total / size**exponent) for size in sizes) / len(sizes)
    moved = math.sqrt(1.0 / (2.0 * math.pi)) * noise / max(1, units)
    affordable = math.floor(len(sizes) * (most_noise / moved) ** 2) if moved > 0.0 else len(sizes)
    return min(len(sizes), affordable), len(sizes)


def _check_slices(order: MarginalsOrder, shape: TableShape | None) -> None:
    if shape is None or order.condition_on is None:
        return
    if shape.cells.get(order.condition_on, 1) > MAX_SLICES:
        raise InvalidOrder(
            f"condition_on: marginals needs a field of at most {MAX_SLICES} categories", where="condition_on"
        )


def _check_choice(pairs: str, label: str | None, shape: TableShape | None, *, where: str) -> None:
    """Pairs cannot be chosen where there is none."""
    if shape is not None and pairs in {"chosen", "few_or_all"} and len(shape.cells) - (label in shape.cells) < 2:
        raise InvalidOrder(f"pairs: {pairs} needs two columns besides the condition", where=where)


def _pairs_to_measure(
    order: MarginalsOrder,
    units: int,
    shape: TableShape | None,
    budget: Budget | None,
    precision_share: float = 1.0,
) -> dict[str, Any]:
    """What `pairs: auto` becomes; and what they count and how precise single columns are beside them, if the order does not say.

    All pairs, if noise allows in cells or in groups of them, or few of them where scores can tell that these say nearly all; else all
    of all rows together, where slices are several and cost most, or the better ones within slices, if these are still many; else none.
    """
    if shape is None or budget is None:
        return {"pairs": "all", "pair_groups": order.pair_groups or "counted"}
    noise_std = whole_noise(order, budget) / math.sqrt(precision_share) * shape.max_rows_per_unit
    free = [cells for name, cells in shape.cells.items() if name != order.condition_on]
    values = 1 if order.condition_on is None else shape.cells.get(order.condition_on, 1)
    slices = 1 if order.pairs_within == "table" else values

    def worth_measuring(pair_cells: int, most_noise: float = MOST_NOISE_PER_PAIR, pair_slices: int = slices) -> int:
        return pairs_worth_measuring(
            pair_widths(free, pair_cells=pair_cells),
            slices=pair_slices,
            noise_std=noise_std,
            units=units,
            exponent=order.precision_exponent,
            most_noise=most_noise,
        )[0]

    open_ranges = shape.has_open_ranges and order.numeric_cells != "declared"
    cells: dict[str, Any] = {"numeric_cells": order.numeric_cells or ("counted" if open_ranges else "declared")}
    everything, few_cells = math.comb(len(free), 2), min(GROUPS_OF_A_COLUMN, order.pair_cells)
    little_noise = worth_measuring(order.pair_cells, LEAST_NOISE_TO_GROUP) == everything
    groups = order.pair_groups or ("declared" if little_noise and not open_ranges else "counted")
    in_groups, affordable = groups == "counted", worth_measuring(order.pair_cells)
    if affordable == everything:
        noise_of_scores = noise_std * math.sqrt(everything / order.few_precision_share) / (2.0 * max(1, units))
        asks_for_few = (
            in_groups
            and everything > FEWEST_PAIRS_BY_COLUMN * len(free)
            and worth_measuring(order.pair_cells, LEAST_NOISE_TO_ASK_FOR_FEW) < everything
            and noise_of_scores <= MOST_NOISE_OF_SCORES
        )
        return {"pairs": "few_or_all" if asks_for_few else "all", "pair_groups": groups} | cells
    if in_groups and worth_measuring(few_cells, MOST_NOISE_PER_GROUPED_PAIR) == everything:
        weight = order.one_way_weight or ONE_WAY_WEIGHT_IN_MUCH_NOISE
        return {"pairs": "all", "pair_groups": groups, "one_way_weight": weight} | cells
    enough_to_choose = affordable >= FEWEST_CHOSEN_PAIRS * len(free)
    if in_groups and order.pairs_within is None and values > FEW_SLICES:
        stands_out = enough_to_choose or worth_measuring(few_cells) == everything
        if stands_out and worth_measuring(few_cells, MOST_NOISE_PER_GROUPED_PAIR, pair_slices=1) == everything:
            return {"pairs": "all", "pair_groups": groups, "pairs_within": "table"} | cells
    if enough_to_choose or (in_groups and worth_measuring(few_cells, MOST_NOISE_TO_CHOOSE_IN_GROUPS) == everything):
        return {"pairs": "chosen", "pair_groups": groups} | cells
    return {"pairs": "none", "pair_groups": groups, "numeric_cells": "declared"}
