"""Weights of values: how often each shall come in a sample, whatever the table says.

    {"income": {">50K": 0.5, "<=50K": 0.5}}    {"sex": "uniform"}    {"age": {"<40": 1, ">=40": 1}}

Rows of a value are drawn as if it were a condition; how often they come is all that changes.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

from service.base.messages import Message
from service.samples.table.base import SamplingError
from service.samples.table.columns import CategoryColumn
from service.samples.table.conditions import Conditions, refuse_many
from service.samples.table.selections import CategorySelection, Pairs, RangeSelection, Selections
from service.samples.table.written import RowColumn

Weights = Mapping[str, Mapping[str, float] | str]
MOST_STRATA = 256
"""Of all weighted columns together."""
MOST_WANTED = 16_384
"""Of these, times the columns with conditions."""
MOST_CELLS = 131_072
"""Of the weighted values of a column, times its bins or categories and the intervals that are asked for in it."""
UNIFORM = "uniform"
LARGEST = 1e100


def strata_of(
    conditions: Conditions,
    columns: Sequence[RowColumn],
    weights: Weights,
    wanted: Selections,
    pairs: Pairs | None = None,
) -> list[tuple[float, Selections]]:
    """Shares, one in all, and the values of each part of the sample, which are among those wanted. Parts share what they have in common."""
    if not isinstance(weights, Mapping):
        raise SamplingError(Message('weights: give {"COLUMN": {"VALUE": 0.5, …}} or {"COLUMN": "uniform"}'))
    shares = {}
    for name, given in weights.items():
        column = columns[conditions.place_of(name)]
        shares[column] = _shares(column, _of_values(column, given, wanted, conditions))
    _check_work(conditions, shares, wanted)
    of_columns = [
        [(share, conditions.selections(_meant(column, value))) for value, share in own.items()]
        for column, own in shares.items()
    ]
    strata, pairs = [], pairs or Pairs()
    for combination in itertools.product(*of_columns):
        selections, share = dict(wanted), 1.0
        places: set[int] = set()
        for weight, own in combination:
            selections, share, places = pairs.joined(selections, own), share * weight, places | own.keys()
        if not all(selections[place].can_be() for place in places):
            raise SamplingError(Message("weights: a value with a weight does not meet the condition; leave it out"))
        strata.append((share, selections))
    return strata


def _check_work(conditions: Conditions, shares: Mapping[RowColumn, Mapping[Any, float]], wanted: Selections) -> None:
    """Refuse what would take long, before it is begun."""
    strata = math.prod(map(len, shares.values()))
    if strata > MOST_STRATA:
        raise SamplingError(
            Message(
                "weights: more than %(most)s combinations of values; weight fewer columns or values", most=MOST_STRATA
            )
        )
    if strata * len(wanted) > MOST_WANTED:
        raise SamplingError(
            Message(
                "weights: %(strata)s combinations of values, and conditions on %(columns)s columns: their product may be "
                "%(most)s; weight fewer values, or ask for fewer conditions",
                strata=strata,
                columns=len(wanted),
                most=MOST_WANTED,
            )
        )
    refuse_many([str(value) for own in shares.values() for value in own])
    for column, own in shares.items():
        cells = getattr(column, "size", 1)
        selection = wanted.get(conditions.place_of(column.name))
        if isinstance(selection, RangeSelection):
            cells += len(selection.intervals)
        if len(own) * cells > MOST_CELLS:
            raise SamplingError(
                Message(
                    "weights: %(column)s: %(values)s values have a weight, and it has %(cells)s bins, categories and listed "
                    "values: their product may be %(most)s; weight fewer values, or list fewer",
                    column=column.name,
                    values=len(own),
                    cells=cells,
                    most=MOST_CELLS,
                )
            )


def _of_values(column: RowColumn, given: Any, wanted: Selections, conditions: Conditions) -> Mapping[Any, Any]:
    """Values and their weights; those of `uniform` are all that may come but missing."""
    if isinstance(given, Mapping):
        return given
    if given != UNIFORM:
        raise SamplingError(
            Message(
                'weights: %(column)s: give "uniform" or a weight for each value; %(described)s',
                column=column.name,
                described=column.described,
            )
        )
    if not isinstance(column, CategoryColumn):
        raise SamplingError(
            Message(
                'weights: %(column)s is a range: give parts of it, like {"<40": 1, ">=40": 1}; %(described)s',
                column=column.name,
                described=column.described,
            )
        )
    selection = wanted.get(conditions.place_of(column.name))
    return {
        value: 1.0
        for code, value in enumerate(column.values)
        if value is not None and (not isinstance(selection, CategorySelection) or selection.allowed[code])
    }


def _shares(column: RowColumn, of_values: Mapping[Any, Any]) -> dict[Any, float]:
    """The shares of the values of one column that have any."""
    for value, weight in of_values.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 <= weight <= LARGEST:
            raise SamplingError(
                Message(
                    "weights: %(column)s: the weight of %(value)s is not a number from 0 to %(largest)s",
                    column=column.name,
                    value=repr(value),
                    largest=f"{LARGEST:g}",
                )
            )
    total = math.fsum(of_values.values())
    if not total > 0:
        raise SamplingError(Message("weights: %(column)s: one weight must be more than 0", column=column.name))
    return {value: weight / total for value, weight in of_values.items() if weight > 0}


def _meant(column: RowColumn, value: Any) -> Any:
    """The condition that a key of the weights stands for: a value, or of a range `<40` and the like."""
    if isinstance(column, CategoryColumn) or not isinstance(value, str):
        return {column.name: value}
    is_sign = value.lstrip()[:1] in {"<", ">", "=", "!"}
    if is_sign or value.strip() in {"missing", "not missing"}:
        return f"{column.name} {value.strip()}" if not is_sign else f"{column.name}{value.strip()}"
    return {column.name: value}
