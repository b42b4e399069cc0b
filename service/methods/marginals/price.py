"""`method: marginals`: its events."""

from __future__ import annotations

import math

from service.base.errors import InvalidOrder
from service.base.messages import Figure, Message
from service.methods.knobs import SMALLEST_SHARE
from service.methods.marginals.order import MarginalsOrder
from service.privacy.calibration import EventsAt
from service.privacy.events import Events, GaussianEvent

MARGINALS = "marginals"
ONE_WAY_TABLES = "one_way_tables"
PAIR_SCORES = "pair_scores"
VALUE_TREES = "value_trees"
"""Purposes of the releases."""

SHARED_VALUES = "shared_values"
"""Of releases before 2026-11-27: counts of single values."""


def events(order: MarginalsOrder, _epsilon: float, _delta: float) -> EventsAt:
    """The list below, for the catalogue."""
    return lambda noise_multiplier: marginals_events(order, noise_multiplier=noise_multiplier)


def marginals_events(order: MarginalsOrder, *, noise_multiplier: float) -> Events:
    """Gaussian releases from all units that together are one of this noise multiplier: Σ 1/σ_i² = 1/σ².

    Each is joint over all its tables, whose noise is shared out by the worker; so the list depends on neither columns
    nor n (docs/privacy.md, Lemma 4). One where all pairs are measured, two where their cells are grouped by counts or where
    single columns alone are measured within a condition; three where scores say which pairs are measured; one before all others where
    ranges are open.
    """
    if order.pairs == "auto":
        raise InvalidOrder("pairs must be resolved before pricing")
    trees = {VALUE_TREES: order.tree_precision_share} if order.tree_precision_share else {}
    shares = trees | _shares_before_pairs(order)
    shares[MARGINALS] = 1.0 - sum(shares.values())
    if shares[MARGINALS] < SMALLEST_SHARE:
        raise InvalidOrder(
            Message(
                "the precision shares leave nothing for the tables that all of them are for: together they may be at most "
                "%(most)s",
                most=Figure(f"{1.0 - SMALLEST_SHARE:g}"),
            )
        )
    return tuple(GaussianEvent(purpose, noise_multiplier / math.sqrt(share)) for purpose, share in shares.items())


def _shares_before_pairs(order: MarginalsOrder) -> dict[str, float]:
    """Of the precision, by purpose: what is released before it is known what else is."""
    if not order.looks_at_single_columns_first:
        return {}
    shares = {ONE_WAY_TABLES: order.grouping_precision_share}
    if order.pairs == "none" or (order.pairs == "chosen" and order.pairs_within == "table"):
        shares = {ONE_WAY_TABLES: order.all_rows_precision_share}
    elif order.pairs == "chosen":
        shares = {ONE_WAY_TABLES: order.selection_precision_share}
    if order.pairs == "chosen":
        shares[PAIR_SCORES] = order.selection_precision_share
    elif order.pairs == "few_or_all":
        shares[PAIR_SCORES] = order.few_precision_share
    return shares
