"""How much of a charged report noise will hide: from the declaration, n, ε and the report's share alone. Reads no row.

The tables of the report and how its event is shared out among them are said here once; `workers/reports/charged.py` measures by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from service.base.messages import Message, percent, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.domain.shapes import TableShape

NUMERIC_BINS = 32
"""Cells of a range that declares none."""
PAIR_CELLS = 8
"""Cells of a column in two-way tables, at most: the fewer, the less noise."""
MOST_PAIRS = 64
PRECISION_EXPONENT = 2 / 3
"""Precision of a table by its cells, as `service.methods.marginals.order` has it by default."""

HIDDEN = 0.5
"""Total variation that noise alone shows, from which on a table says nothing: its page then says that noise hides it."""


def pairs_of(names: Sequence[str], target: str | None, most: int) -> list[tuple[int, int]]:
    """Pairs of columns by the declaration alone: those with the target first, then in the order of the columns."""
    found = list(combinations(range(len(names)), 2))
    if target in names:
        at = list(names).index(str(target))
        found.sort(key=lambda pair: at not in pair)  # stable
    return found[:most]


@dataclass(frozen=True, slots=True)
class NoiseAlone:
    """Total variation that noise alone is expected to show, on average over tables of one column and of two."""

    one_way: float
    two_way: float | None


def noise_alone(shape: TableShape, noise_multiplier: float, units: int) -> NoiseAlone:
    """Where units have several rows, at least: as if each had all that it may have."""
    names, cells = list(shape.cells), list(shape.cells.values())
    few = [min(one, PAIR_CELLS) for one in cells]
    singles = [float(one) for one in cells]
    pairs = [float(few[one] * few[other]) for one, other in pairs_of(names, shape.target, MOST_PAIRS)]
    total = sum(size**PRECISION_EXPONENT for size in (*singles, *pairs))

    def mean(sizes: Sequence[float]) -> float:
        stds = [noise_multiplier * math.sqrt(total / size**PRECISION_EXPONENT) for size in sizes]
        shown = [size * std / units / math.sqrt(2.0 * math.pi) for size, std in zip(sizes, stds, strict=True)]
        return sum(shown) / len(shown)

    return NoiseAlone(mean(singles), mean(pairs) if pairs else None)


def hidden_by_noise(alone: NoiseAlone, units: int) -> Message | None:
    """What to know before such a report is ordered; None where it will tell something."""
    if alone.one_way >= HIDDEN:
        return Message(
            "Noise would hide all of it: with %(units)s units at this ε, a single column would look off by %(off)s of its rows even if "
            "it were exact. More units, a larger ε or a larger part of the precision for the report helps.",
            units=whole(units),
            off=_at_most_all(alone.one_way),
        )
    if alone.two_way is not None and alone.two_way >= HIDDEN:
        return Message(
            "Noise would hide what it says of pairs of columns: with %(units)s units at this ε, they would look off by %(off)s of the rows even "
            "if they were exact. More units, a larger ε or a larger part of the precision for the report helps.",
            units=whole(units),
            off=_at_most_all(alone.two_way),
        )
    return None


def _at_most_all(share: float) -> Message:
    if share >= 1.0:
        return Message("%(share)s and more", share=percent(1.0))
    return Message("about %(share)s", share=percent(round(share, 2)))
