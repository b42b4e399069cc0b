"""One purchase: its event is taken from the plan, then its statistic is computed over all rows, then noise makes it public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from service.domain.field_schema import MAX_CATEGORIES
from service.methods.declaration.price import BOUND, CATEGORIES
from service.methods.declaration.ranks import part_beyond, rows_off
from service.privacy.events import Event, ExponentialEvent, ThresholdEvent, events_to_json
from workers.mechanism import RowsOfUnits
from workers.mechanism.exponential import bound_losses, choose
from workers.mechanism.geometric import half_width
from workers.mechanism.key_threshold import frequent_keys, threshold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from service.domain.inferred import End
    from service.domain.open_columns import Candidate
    from service.methods.declaration.order import Purchase
    from workers.encoding.values import TableValues
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan

Bought = dict[str, Any]


class Buying:
    """The purchases of one order, in turn."""

    def __init__(self, plan: Plan, rows: TableValues, randomness: SecureRandom) -> None:
        self._plan, self._rows, self._randomness = plan, rows, randomness
        self._units = RowsOfUnits(rows.unit_starts, rows.max_rows_per_unit)

    def buy(self, purchase: Purchase) -> Bought:
        """What is public of it: constraints for the declaration, and how far off they may be."""
        return self._range(purchase) if purchase.ends else self._categories(purchase)

    def _range(self, purchase: Purchase) -> Bought:
        candidates = self._rows.candidates[purchase.column]
        places, off, taken = {}, 0, list[Event]()
        for end in purchase.ends:
            event = self._plan.take(ExponentialEvent, BOUND)
            taken.append(event.cut(1))
            places[end], off = self._end(purchase.column, end, candidates, event.epsilon)
        constraints = _apart(places, candidates)
        said = {"rows_off_by_at_most": off, "candidates": len(candidates), "events": events_to_json(taken)}
        return {"column": purchase.column, "constraints": constraints, **said}

    def _end(self, column: str, end: End, candidates: Sequence[Candidate], epsilon: float) -> tuple[int, int]:
        """The place of the candidate that was chosen, and how many rows it may be off."""
        how: dict[str, Any] = {
            "candidates": len(candidates),
            "epsilon": epsilon,
            "most_per_unit": self._units.most,
        }
        beyond = part_beyond(**how, units=self._rows.units)
        numbers = self._rows.numbers[column]
        losses = bound_losses(
            _reached(numbers, np.array([candidate.number for candidate in candidates]), end),
            ~np.isnan(numbers),
            size=len(candidates),
            ten_thousandths=beyond,
            rows=self._units,
        )
        outward = choose(losses, epsilon=epsilon, randomness=self._randomness)
        return outward if end == "maximum" else len(candidates) - 1 - outward, rows_off(**how)

    def _categories(self, purchase: Purchase) -> Bought:
        event = self._plan.take(ThresholdEvent, CATEGORIES)
        codes, texts = self._rows.codes[purchase.column], self._rows.texts[purchase.column]
        keys, counts = frequent_keys(
            codes,
            codes >= 0,
            rows=self._units,
            epsilon=event.epsilon,
            failure_probability=event.failure_probability,
            randomness=self._randomness,
        )
        kept = np.sort(np.argsort(-counts, kind="stable")[: MAX_CATEGORIES - 1])  # of more than fit, the most frequent
        told = {"epsilon": event.epsilon, "failure_probability": event.failure_probability}
        return {
            "column": purchase.column,
            "constraints": {"enum": [texts[key] for key in keys[kept].tolist()]},
            "counts": counts[kept].tolist(),
            "within": half_width(self._units.most, event.epsilon),
            "threshold": threshold(**told, most=self._units.most),
            "events": events_to_json([event.cut(1)]),
        }


def _reached(numbers: NDArray[np.float64], grid: NDArray[np.float64], end: End) -> NDArray[np.int64]:
    """(rows,) the first candidate, counted outward, that a row does not lie beyond."""
    known = np.nan_to_num(numbers)
    if end == "maximum":
        return np.searchsorted(grid, known, side="left").astype(np.int64)
    return (len(grid) - np.searchsorted(grid, known, side="right")).astype(np.int64)


def _apart(places: dict[End, int], candidates: Sequence[Candidate]) -> dict[str, Any]:
    """What a declaration says: where both ends are bought, one below the other. Post-processing."""
    if len(places) == 2:
        low, high = sorted(places.values())
        if low == high:
            low, high = max(0, low - 1), min(len(candidates) - 1, high + 1)
        places = {"minimum": low, "maximum": high}
    return {end: candidates[place].said for end, place in places.items()}
