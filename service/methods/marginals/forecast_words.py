"""The forecast of an order of marginals in words: what is measured, how far off it will be, and warnings where that says little."""

from __future__ import annotations

from itertools import islice

from service.base.messages import Listed, Message, plural, sentences, whole
from service.domain.shapes import TableShape
from service.methods.forecast import TOLD_APART, Counts, Expected, Forecast, in_digits, usual_group
from service.methods.marginals.noisy_counts import NoisyCounts
from service.methods.marginals.order import MarginalsOrder

MOST_OF_THE_TABLE, MUCH_OF_THE_TABLE = 0.5, 0.1
"""A warning is due where the smallest group that stands out has this part of all rows."""

MUCH_TOTAL_VARIATION = 0.25
"""And where two-way marginals are expected to be off by so much."""

BETWEEN_FIGURES = Message(", ")
"""A semicolon in a language whose decimal mark is a comma."""


def pairs(order: MarginalsOrder, noisy: NoisyCounts) -> str:
    """Which pairs of columns are measured."""
    condition = repr(order.condition_on)
    has_condition = noisy.strata > 1
    beside = (
        Message("Each column is counted within each value of %(condition)s in any case.", condition=condition)
        if has_condition
        else ""
    )
    if noisy.all_pairs == 0:
        return sentences(Message("There is no pair of columns to measure."), beside)
    if order.pairs == "none":
        return _no_pair(noisy.all_pairs, condition, has_condition=has_condition)
    within = (
        Message(
            "within each of the %(strata)s values of %(condition)s",
            strata=whole(noisy.pair_strata),
            condition=condition,
        )
        if noisy.pair_strata > 1
        else Message("in all rows together")
    )
    if noisy.all_pairs == 1:
        one = _one_pair(has_condition=has_condition)
        measured = (
            Message("%(pair)s is measured, %(within)s.", pair=one, within=within)
            if order.pairs == "all"
            else Message("%(pair)s is measured, %(within)s, if noisy scores choose it.", pair=one, within=within)
        )
        return sentences(measured, beside)
    number = _number_of_pairs(noisy.all_pairs, has_condition=has_condition)
    words = {
        "all": Message("All %(number)s are measured, %(within)s.", number=number, within=within),
        "few_or_all": Message(
            "All %(number)s are measured, %(within)s, or a few of them if noisy scores say that these explain the others.",
            number=number,
            within=within,
        ),
        "chosen": Message(
            "Of the %(number)s, noisy scores choose which are measured, %(within)s; they may choose none.",
            number=number,
            within=within,
        ),
    }
    return sentences(words[order.pairs], beside)


def _number_of_pairs(count: int, *, has_condition: bool) -> str:
    if has_condition:
        return Message("%(count)s pairs of the other columns", count=whole(count))
    return Message("%(count)s pairs of columns", count=whole(count))


def _one_pair(*, has_condition: bool) -> str:
    return Message("The one pair of the other columns") if has_condition else Message("The one pair of columns")


def _no_pair(count: int, condition: str, *, has_condition: bool) -> str:
    if count == 1:
        not_measured = Message("%(pair)s is not measured", pair=_one_pair(has_condition=has_condition))
    else:
        not_measured = Message(
            "None of the %(number)s is measured", number=_number_of_pairs(count, has_condition=has_condition)
        )
    if not has_condition:
        return Message("%(so)s: columns are drawn as if they were independent.", so=not_measured)
    return Message(
        "%(so)s: columns are drawn as if they were independent, except for what %(condition)s says of each.",
        so=not_measured,
        condition=condition,
    )


def groups(order: MarginalsOrder, said: Forecast, units: int) -> str:
    """How far off the count of a group will be."""
    off = (
        Message("±%(rows)s %(where)s", rows=in_digits(counts.off_by), where=where)
        for where, counts in _kinds(order, said)
    )
    rows = usual_group(units)
    return plural(
        "A group of %(rows)s row will be off by about %(off)s (at most, 19 times in 20).",
        "A group of %(rows)s rows will be off by about %(off)s (at most, 19 times in 20).",
        rows,
        rows=whole(rows),
        off=Listed(BETWEEN_FIGURES, off),
    )


def smallest(order: MarginalsOrder, said: Forecast) -> str:
    """The smallest group that can be told apart from an empty one."""
    rows = (
        Message("%(rows)s rows %(where)s", rows=in_digits(counts.smallest_group), where=where)
        for where, counts in _kinds(order, said)
    )
    return Message(
        "The smallest group that can be told apart from an empty one has about %(rows)s.",
        rows=Listed(BETWEEN_FIGURES, rows),
    )


def distances(order: MarginalsOrder, said: Forecast) -> str:
    """Expected total variation."""
    off = (
        Message("%(range)s %(where)s", range=_range(counts.total_variation), where=where)
        for where, counts in _kinds(order, said)
    )
    return Message(
        "By noise alone, tables of counts will be off in total variation (0: equal; 1: nothing in common) by about "
        "%(off)s.",
        off=Listed(BETWEEN_FIGURES, off),
    )


def trees(count_std: float, columns: int) -> str:
    """How precisely it is known where the values of open ranges lie."""
    return plural(
        "Where values of the range that declares no bins lie is measured first: a part of a range, or a single value, with fewer "
        "than about %(rows)s rows is not told apart from its neighbours.",
        "Where values of the %(columns)s ranges that declare no bins lie is measured first: a part of a range, or a single value, "
        "with fewer than about %(rows)s rows is not told apart from its neighbours.",
        columns,
        columns=columns,
        rows=in_digits(TOLD_APART * count_std),
    )


def _kinds(order: MarginalsOrder, said: Forecast) -> list[tuple[str, Counts]]:
    two = Message("where two other columns do") if said.with_condition else Message("where two columns do")
    kinds = [
        (Message("where one column tells it"), said.one_way),
        (Message("where a column and %(condition)s do", condition=repr(order.condition_on)), said.with_condition),
        (two, said.two_way),
    ]
    return [(where, counts) for where, counts in kinds if counts is not None]


def _range(found: Expected) -> str:
    return Message(
        "%(expected)s (%(low)s to %(high)s)",
        expected=in_digits(found.expected),
        low=in_digits(found.low),
        high=in_digits(found.high),
    )


def warnings(order: MarginalsOrder, noisy: NoisyCounts, shape: TableShape, said: Forecast) -> list[str]:
    """What must be said before such an order is paid."""
    found: list[str] = []
    rows = 0 if said.one_way is None else said.one_way.smallest_group
    if rows >= MOST_OF_THE_TABLE * noisy.units:
        found.append(
            Message(
                "This order buys next to nothing: its rows will be mostly noise. Even in one column a group would need about %(rows)s "
                "rows to be told apart from an empty one, and the release is made of %(units)s units. Ask for a larger ε.",
                rows=in_digits(rows),
                units=whole(noisy.units),
            )
        )
    elif rows >= MUCH_OF_THE_TABLE * noisy.units:
        found.append(
            Message(
                "This order buys little: in one column, a group of less than about %(rows)s rows cannot be told apart from "
                "an empty one, and the release is made of %(units)s units.",
                rows=in_digits(rows),
                units=whole(noisy.units),
            )
        )
    if noisy.all_pairs and order.pairs in {"none", "chosen"}:
        found.append(_lost(order, noisy, shape))
    if rows < MOST_OF_THE_TABLE * noisy.units:
        kinds = (
            (
                Message("What %(condition)s says of the other columns", condition=repr(order.condition_on)),
                said.with_condition,
            ),
            (Message("Tables of two columns"), said.two_way),
        )
        found += [
            Message(
                "%(what)s will be noise for a large part: about %(off)s in total variation, where 1 is nothing in common.",
                what=what,
                off=in_digits(off),
            )
            for what, counts in kinds
            if counts is not None and (off := counts.total_variation.expected) >= MUCH_TOTAL_VARIATION
        ]
    return found


def _lost(order: MarginalsOrder, noisy: NoisyCounts, shape: TableShape) -> str:
    """What no pair, or only chosen ones, means for columns by name."""
    one, other = islice((repr(name) for name in shape.cells if name != order.condition_on), 2)
    kept = (
        Message("Only what %(condition)s says of each column is kept.", condition=repr(order.condition_on))
        if noisy.strata > 1
        else ""
    )
    if order.pairs == "none":
        return sentences(
            Message(
                "Relations among columns are lost: %(one)s and %(other)s, for example, will look independent. No pair of columns is "
                "measured, because the order says so or because at this ε noise would hide pairs of %(units)s units.",
                one=one,
                other=other,
                units=whole(noisy.units),
            ),
            kept,
            Message('A quote with "want": {"two_way_tv": 0.1} says which ε keeps them.'),
        )
    return sentences(
        Message(
            "Relations among columns may be lost: noisy scores choose the pairs that are measured, and where they choose none, "
            "%(one)s and %(other)s, for example, will look independent.",
            one=one,
            other=other,
        ),
        kept,
        Message("A larger ε makes that less likely."),
    )
