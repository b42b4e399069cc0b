"""What an order of marginals leaves open, settled from the declared schema, n and the budget alone; never from a row."""

from __future__ import annotations

from typing import Any

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.domain.shapes import TableShape
from service.methods.conditions import MAX_STRATA, categories_of, condition_of
from service.methods.facts import Facts
from service.methods.knobs import DEFAULT_NUMERIC_BINS, AnyOrder
from service.methods.marginals.order import COMPONENTS, MarginalsOrder
from service.methods.marginals.pair_rules import MAX_PAIR_WIDTH, MOST_NOISE_PER_PAIR, settled_pairs
from service.methods.marginals.value_rules import settled_tree_share

COMPONENTS_WITHOUT_A_CONDITION = 4_096
"""One mixture may be as large as two are together, unless columns have so many bins that a step takes long (docs/decisions/0051)."""

BECAUSE = Message(
    "marginals: where both were measured, its rows were closer to the real ones, and trained better classifiers, "
    "than those of a generator that was trained with noisy gradients (docs/results.md)"
)


def offer(order: AnyOrder, facts: Facts) -> str | None:
    """Offers itself for every table, unless the order conditions on a field of more values than strata are fitted to."""
    shape = facts.shape(DEFAULT_NUMERIC_BINS)
    is_fitted = isinstance(shape, TableShape) and categories_of(order.condition_on, shape) <= MAX_STRATA
    return BECAUSE if is_fitted else None


def resolve(order: MarginalsOrder, facts: Facts) -> MarginalsOrder:
    """Condition, components, pairs, and how precise trees of open ranges are."""
    shape = facts.table(order.numeric_bins)
    order = order.model_copy(update={"condition_on": condition_of(order, shape)})
    if categories_of(order.condition_on, shape) > MAX_STRATA:
        raise InvalidOrder(
            Message(
                "condition_on: marginals needs a field of at most %(max_strata)s categories; choose another field, or "
                "method: idpgan",
                max_strata=MAX_STRATA,
            ),
            where="condition_on",
        )
    check_choice(order.pairs, order.condition_on, shape, where="pairs")
    return order.model_copy(update=settled(order, facts, shape))


def settled(
    order: MarginalsOrder,
    facts: Facts,
    shape: TableShape,
    *,
    precision_share: float = 1.0,
    most_noise: float = MOST_NOISE_PER_PAIR,
) -> dict[str, Any]:
    """What becomes of components, pairs and trees that an order leaves open.

    precision_share: of the release's Gaussian precision that these measurements have; 1 unless they are a start. most_noise: as there.
    """
    units, budget = facts.units, facts.budget
    found: dict[str, Any] = {"components": order.components or _components(order.condition_on, shape)}
    if order.pairs == "auto":
        found |= settled_pairs(
            order, units=units, shape=shape, budget=budget, precision_share=precision_share, most_noise=most_noise
        )
    if not shape.columns_of_values:
        found["tree_precision_share"] = 0.0  # whatever was ordered: it would be spent on nothing
    elif order.tree_precision_share is None:
        found["tree_precision_share"] = settled_tree_share(
            order, units=units, shape=shape, budget=budget, precision_share=precision_share
        )
    return found


def check_choice(pairs: str, condition: str | None, shape: TableShape, *, where: str) -> None:
    """Pairs cannot be chosen where there is none."""
    if pairs in {"chosen", "few_or_all"} and len(shape.cells) - (condition in shape.cells) < 2:
        raise InvalidOrder(
            Message("pairs: %(pairs)s needs two columns besides the condition", pairs=pairs), where=where
        )


def _components(condition: str | None, shape: TableShape) -> int:
    """Of each mixture, before it is known whether a table has the rows for them."""
    is_small = sum(shape.cells.values()) <= MAX_PAIR_WIDTH
    return COMPONENTS_WITHOUT_A_CONDITION if condition is None and is_small else COMPONENTS
