"""The forecast of an order of marginals in words: what is measured, how far off it will be, and warnings where that says little."""

from __future__ import annotations

from itertools import islice

from service.domain.shapes import TableShape
from service.methods.forecast import TOLD_APART, Counts, Expected, Forecast, in_digits, usual_group
from service.methods.marginals.noisy_counts import NoisyCounts
from service.methods.marginals.order import MarginalsOrder

MOST_OF_THE_TABLE, MUCH_OF_THE_TABLE = 0.5, 0.1
"""A warning is due where the smallest group that stands out has this part of all rows."""

MUCH_TOTAL_VARIATION = 0.25
"""And where two-way marginals are expected to be off by so much."""


def pairs(order: MarginalsOrder, noisy: NoisyCounts) -> str:
    """Which pairs of columns are measured."""
    has_condition = noisy.strata > 1
    beside = (
        f" Each column is counted within each value of {order.condition_on!r} in any case." if has_condition else ""
    )
    of_columns = f"of {'the other ' if has_condition else ''}columns"
    number = f"{noisy.all_pairs:,} pairs {of_columns}"
    if noisy.all_pairs == 0:
        return "There is no pair of columns to measure." + beside
    within = (
        f"within each of the {noisy.pair_strata} values of {order.condition_on!r}"
        if noisy.pair_strata > 1
        else "in all rows together"
    )
    lost = f", except for what {order.condition_on!r} says of each" if has_condition else ""
    words = {
        "all": f"All {number} are measured, {within}.",
        "few_or_all": f"All {number} are measured, {within}, or a few of them if noisy scores say that these explain the others.",
        "chosen": f"Of the {number}, noisy scores choose which are measured, {within}; they may choose none.",
        "none": f"None of the {number} is measured: columns are drawn as if they were independent{lost}.",
    }
    if noisy.all_pairs == 1:
        words = {
            "all": f"The one pair {of_columns} is measured, {within}.",
            "few_or_all": f"The one pair {of_columns} is measured, {within}, if noisy scores choose it.",
            "chosen": f"Noisy scores choose whether the one pair {of_columns} is measured, {within}.",
            "none": f"The one pair {of_columns} is not measured: columns are drawn as if they were independent{lost}.",
        }
    return words[order.pairs] + ("" if order.pairs == "none" else beside)


def groups(order: MarginalsOrder, said: Forecast, units: int) -> str:
    """How far off the count of a group will be."""
    off = [f"±{in_digits(counts.off_by)} {where}" for where, counts in _kinds(order, said)]
    rows = usual_group(units)
    return f"A group of {rows:,} row{'s' if rows > 1 else ''} will be off by about {', '.join(off)} (at most, 19 times in 20)."


def smallest(order: MarginalsOrder, said: Forecast) -> str:
    """The smallest group that can be told apart from an empty one."""
    rows = [f"{in_digits(counts.smallest_group)} rows {where}" for where, counts in _kinds(order, said)]
    return f"The smallest group that can be told apart from an empty one has about {', '.join(rows)}."


def distances(order: MarginalsOrder, said: Forecast) -> str:
    """Expected total variation."""
    off = [f"{_range(counts.total_variation)} {where}" for where, counts in _kinds(order, said)]
    return f"By noise alone, tables of counts will be off in total variation (0: equal; 1: nothing in common) by about {', '.join(off)}."


def trees(count_std: float, columns: int) -> str:
    """How precisely it is known where the values of open ranges lie."""
    ranges = "the range that declares" if columns == 1 else f"the {columns} ranges that declare"
    return (
        f"Where values of {ranges} no bins lie is measured first: a part of a range, or a single value, with fewer than about "
        f"{in_digits(TOLD_APART * count_std)} rows is not told apart from its neighbours."
    )


def _kinds(order: MarginalsOrder, said: Forecast) -> list[tuple[str, Counts]]:
    kinds = [
        ("where one column tells it", said.one_way),
        (f"where a column and {order.condition_on!r} do", said.with_condition),
    ]
    kinds.append(("where two other columns do" if said.with_condition else "where two columns do", said.two_way))
    return [(where, counts) for where, counts in kinds if counts is not None]


def _range(found: Expected) -> str:
    return f"{in_digits(found.expected)} ({in_digits(found.low)} to {in_digits(found.high)})"


def warnings(order: MarginalsOrder, noisy: NoisyCounts, shape: TableShape, said: Forecast) -> list[str]:
    """What must be said before such an order is paid."""
    found, rows = [], 0 if said.one_way is None else said.one_way.smallest_group
    if rows >= MOST_OF_THE_TABLE * noisy.units:
        found.append(
            f"This order buys next to nothing: its rows will be mostly noise. Even in one column a group would need about {in_digits(rows)} rows to be "
            f"told apart from an empty one, and there are {noisy.units:,} units in all. Ask for a larger ε."
        )
    elif rows >= MUCH_OF_THE_TABLE * noisy.units:
        found.append(
            f"This order buys little: in one column, a group of less than about {in_digits(rows)} rows cannot be told apart from an empty one, "
            f"and there are {noisy.units:,} units in all."
        )
    if noisy.all_pairs and order.pairs in {"none", "chosen"}:
        found.append(_lost(order, noisy, shape))
    if rows < MOST_OF_THE_TABLE * noisy.units:
        kinds = (
            (f"What {order.condition_on!r} says of the other columns", said.with_condition),
            ("Tables of two columns", said.two_way),
        )
        found += [
            f"{what} will be noise for a large part: about {in_digits(off)} in total variation, where 1 is nothing in common."
            for what, counts in kinds
            if counts is not None and (off := counts.total_variation.expected) >= MUCH_TOTAL_VARIATION
        ]
    return found


def _lost(order: MarginalsOrder, noisy: NoisyCounts, shape: TableShape) -> str:
    """What no pair, or only chosen ones, means for columns by name."""
    names = list(islice((repr(name) for name in shape.cells if name != order.condition_on), 2))
    example = f"{' and '.join(names)}, for example, will look independent"
    kept = f" Only what {order.condition_on!r} says of each column is kept." if noisy.strata > 1 else ""
    if order.pairs == "none":
        return (
            f"Relations among columns are lost: {example}. No pair of columns is measured, because the order says so or because at this ε noise "
            f'would hide pairs of {noisy.units:,} units.{kept} A quote with "want": {{"two_way_tv": 0.1}} says which ε keeps them.'
        )
    return (
        f"Relations among columns may be lost: noisy scores choose the pairs that are measured, and where they choose none, {example}.{kept} A "
        "larger ε makes that less likely."
    )
