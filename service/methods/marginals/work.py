"""How much marginals are: counting tables, and the steps of fitting a mixture to them. At most, since a fit may end early."""

from __future__ import annotations

import math

from service.methods.facts import Facts
from service.methods.marginals.components import components_of
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.pair_rules import pair_widths
from service.methods.work import FLOAT, Work, coded_rows

TWINS = 2
"""Beside the fit is another, which tells it when to stop."""
ARRAYS_OF_LOGITS = 6
"""That a fit or its twin holds: logits, Adam's means, the best ones, shares and their gradient."""
LOOK_EVERY = 10
"""Steps of a fit between two looks at its error, as in `workers.methods.marginals.fit.mixture_fit`."""
STRENGTHS, RAKING_STEPS = 5, 6
"""Strengths of raking that are tried, and its steps, as in `workers.methods.marginals.fit.raking`."""
NODES_OF_A_LEVEL = 2**10
"""Of a tree of counts, as is usual; there may be eight times as many, or few."""


def estimate(order: MarginalsOrder, facts: Facts) -> Work:
    """All pairs are counted, whichever will be chosen; each in the most groups that it may have."""
    shape = facts.table(order.numeric_bins)
    free = {name: cells for name, cells in shape.cells.items() if name != order.condition_on}
    strata = 1 if order.condition_on is None else shape.cells.get(order.condition_on, 1)
    widths = pair_widths(tuple(free.values()), pair_cells=order.pair_cells)
    cells, alone = float(sum(widths)), float(sum(free.values()))
    measures_pairs = order.pairs != "none" and len(free) > 1
    pair_strata = 1 if order.pairs_within == "table" else strata

    rows, pairs = float(facts.units) * shape.max_rows_per_unit, math.comb(len(free), 2) if measures_pairs else 0
    counted = strata * alone + (pair_strata * (cells**2 - sum(width**2 for width in widths)) / 2.0 if pairs else 0.0)
    levels = shape.tree_levels * float(order.counts_values)
    looks = 2.0 if order.looks_at_single_columns_first else 1.0
    work = coded_rows(rows, len(shape.cells), shape.columns_of_values) + Work(
        elements=looks * rows * (len(free) + pairs) + 12.0 * counted + 4.0 * rows * levels,
        draws=looks * counted + NODES_OF_A_LEVEL * levels,
        calls=looks * (len(free) + pairs),
        memory_bytes=40.0 * counted + 32.0 * NODES_OF_A_LEVEL,
    )
    if measures_pairs:
        work += _fits(order, strata=strata, pair_strata=pair_strata, cells=cells, alone=alone, units=facts.units)
    return work


def _fits(order: MarginalsOrder, *, strata: int, pair_strata: int, cells: float, alone: float, units: int) -> Work:
    components = components_of(order, strata=strata, width=alone, units=units)
    logits, square = float(strata * components) * alone, strata * components * cells**2
    step = Work(products=3.0 * square, elements=24.0 * logits + 6.0 * pair_strata * cells**2, calls=0.1 * strata)
    look = Work(products=square, elements=10.0 * pair_strata * cells**2)
    raked = Work(products=square, elements=4.0 * RAKING_STEPS * logits).times(STRENGTHS)
    denoised = Work(elements=50.0 * pair_strata * cells**2, calls=10.0)
    tables = 8.0 * pair_strata * cells**2
    held = TWINS * ARRAYS_OF_LOGITS * FLOAT * logits + 10.0 * tables
    whole = (step.times(TWINS) + look.times(TWINS / LOOK_EVERY)).times(order.steps) + raked.times(TWINS) + denoised
    return whole.holding(held)
