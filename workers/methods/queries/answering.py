"""Each question's answer: its events are taken from the plan, then its statistic is computed over all rows, then noise makes it public."""

from __future__ import annotations

import datetime as dt
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from service.methods.queries.axes import Axis, axis_of
from service.methods.queries.lattice import LARGEST_SUM_OF_ONE_UNIT, MOST_CANDIDATES, MOST_PLACES
from service.methods.queries.order import (
    ArgMax,
    Count,
    CrossTable,
    Histogram,
    Keys,
    Mean,
    Median,
    Quantiles,
    Question,
    Sum,
)
from service.methods.queries.price import COUNTS, KEYS, LARGEST, MEAN_COUNT, MEAN_SUM, MEDIAN, QUANTILE, SUM
from service.privacy.events import Event, ExponentialEvent, GaussianEvent, PureEvent, ThresholdEvent, events_to_json
from workers.mechanism.exponential import WHOLE, choose, quantile_losses
from workers.mechanism.geometric import MISSED, bounded_sum, cell_counts, half_width, release_integers
from workers.mechanism.key_threshold import frequent_keys, threshold
from workers.mechanism.label_counts import label_counts
from workers.mechanism.noise import drawn_std, most_moved, release_counts
from workers.mechanism.noisy_maximum import largest_count
from workers.mechanism.smooth_median import release_median
from workers.methods.queries.rows import per_unit

if TYPE_CHECKING:
    from service.domain.field_schema import FieldSchema
    from workers.mechanism.secure_random import SecureRandom
    from workers.methods.queries.rows import Integers, Mask, PrivateRows
    from workers.plan import Plan

Answer = dict[str, Any]
Taken = TypeVar("Taken", bound=Event)

PLACES_OF_A_MEDIAN = 1_024
"""At least so many, where a column has fewer values."""
_TWO_SIDED = 1.959963984540054
"""Standard deviations of a Gaussian beyond which 5 in 100 lie."""


class Answering:
    """The questions of one order, in turn."""

    def __init__(self, plan: Plan, rows: PrivateRows, randomness: SecureRandom) -> None:
        self._plan, self._rows, self._randomness = plan, rows, randomness
        self._taken: list[Event] = []

    def answer(self, question: Question) -> Answer:
        """What is public of it, ready for answers.json."""
        self._taken = []
        said: Answer = _OF_KIND[type(question)](self, question)
        asked = question.model_dump(mode="json", exclude={"weight"}, exclude_none=True)
        return {"question": asked, "key": question.key, **said, "events": events_to_json(self._taken)}

    def _take(self, kind: type[Taken], purpose: str) -> Taken:
        event = self._plan.take(kind, purpose)
        self._taken.append(event.cut(1))
        return event

    def count(self, question: Count) -> Answer:
        counted = self._counts(question, ())
        (value,) = counted.pop("counts")
        within = counted["within"]
        return {"value": value, "interval": [value - within, value + within], "within": within}

    def table(self, question: Histogram | CrossTable) -> Answer:
        axes = [axis_of(self._field(column), question.bins) for column in question.columns_asked]
        answer = {"axes": [axis.as_json for axis in axes], "shape": [axis.size for axis in axes]}
        counted = self._counts(question, axes)
        return {**answer, "value": counted.pop("counts"), "interval": None, **counted}

    def _counts(self, question: Count | Histogram | CrossTable, axes: tuple[Axis, ...] | list[Axis]) -> Answer:
        """Counts of all cells, how far each may be off, and how far all of them."""
        size = math.prod(axis.size for axis in axes)
        if question.noise == "gaussian":
            event = self._take(GaussianEvent, COUNTS)
            return self._gaussian(self._cells(question, axes), size, event.noise_multiplier)
        pure = self._take(PureEvent, COUNTS)
        private = cell_counts(self._cells(question, axes), size=size, rows=self._rows.units)
        noisy = release_integers(private, epsilon=pure.epsilon, randomness=self._randomness)
        of_each, of_all = (half_width(private.sensitivity, pure.epsilon, missed) for missed in (MISSED, MISSED / size))
        return {"counts": noisy.tolist(), "within": of_each, "all_within": of_all}

    def _gaussian(self, cells: Integers, size: int, noise_multiplier: float) -> Answer:
        units = self._rows.units
        private = label_counts(
            np.where(cells < 0, size, cells), categories=size, unit_starts=units.starts, max_rows_per_unit=units.most
        )
        stds = [noise_multiplier * private.sensitivities[0]]
        (noisy,) = release_counts(
            private, noise_stds=stds, noise_multiplier=noise_multiplier, randomness=self._randomness
        )
        std = drawn_std(stds[0], moved=most_moved(private))
        of_all = std * math.sqrt(2.0 * math.log(2.0 * size / MISSED))
        return {
            "counts": noisy.tolist(),
            "within": math.ceil(_TWO_SIDED * std),
            "all_within": math.ceil(max(_TWO_SIDED * std, of_all)),
        }

    def sum(self, question: Sum) -> Answer:
        event, rows = self._take(PureEvent, SUM), self._rows
        lattice = rows.lattice(
            question.column, most_places=MOST_PLACES, largest=per_unit(LARGEST_SUM_OF_ONE_UNIT, rows.units)
        )
        counted = rows.meeting(question.where) & rows.has_value(question.column)
        steps = rows.places(question.column, lattice) + lattice.first
        private = bounded_sum(steps, counted, lowest=lattice.first, highest=lattice.last, rows=rows.units)
        (noisy,) = release_integers(private, epsilon=event.epsilon, randomness=self._randomness).tolist()
        within = half_width(private.sensitivity, event.epsilon)
        low, value, high = (_number((noisy + moved) * lattice.step) for moved in (-within, 0, within))
        return {"value": value, "interval": [low, high], "resolution": _number(lattice.step)}

    def mean(self, question: Mean) -> Answer:
        of_count, of_sum = self._take(PureEvent, MEAN_COUNT), self._take(PureEvent, MEAN_SUM)
        rows = self._rows
        most_places = min(MOST_PLACES, per_unit(LARGEST_SUM_OF_ONE_UNIT, rows.units))
        lattice = rows.lattice(question.column, most_places=most_places)
        counted = rows.meeting(question.where) & rows.has_value(question.column)
        count = cell_counts(np.where(counted, 0, -1), size=1, rows=rows.units)
        widest = lattice.size - 1  # twice the distance from the middle, in steps
        twice = 2 * rows.places(question.column, lattice) - widest
        total = bounded_sum(twice, counted, lowest=-widest, highest=widest, rows=rows.units)
        (n,) = release_integers(count, epsilon=of_count.epsilon, randomness=self._randomness).tolist()
        (moved,) = release_integers(total, epsilon=of_sum.epsilon, randomness=self._randomness).tolist()
        near = half_width(count.sensitivity, of_count.epsilon, MISSED / 2.0)
        off = half_width(total.sensitivity, of_sum.epsilon, MISSED / 2.0)

        def at(numerator: int, denominator: int) -> Any:
            share = Fraction(numerator, max(1, denominator))
            place = (max(Fraction(-widest), min(Fraction(widest), share)) + widest) / 2
            return _shown(lattice.value(place), rows.field_kind(question.column))

        corners = [(moved + way * off, denominator) for way in (-1, 1) for denominator in (n - near, n + near)]
        ordered = sorted(corners, key=lambda each: Fraction(each[0], max(1, each[1])))
        return {"value": at(moved, n), "interval": [at(*ordered[0]), at(*ordered[-1])], "rows": n, "rows_within": near}

    def quantiles(self, question: Quantiles) -> Answer:
        rows, candidates = self._rows, self._rows.lattice(question.column, most_places=MOST_CANDIDATES)
        found, missed = [], MISSED / candidates.size
        for probability in question.probabilities:
            event = self._take(ExponentialEvent, QUANTILE)
            counted = rows.meeting(question.where) & rows.has_value(question.column)
            part = round(probability * WHOLE)
            losses = quantile_losses(
                rows.first_above(question.column, candidates),
                counted,
                size=candidates.size,
                ten_thousandths=part,
                rows=rows.units,
            )
            place = choose(losses, epsilon=event.epsilon, randomness=self._randomness)
            value = _shown(candidates.value(place), rows.field_kind(question.column))
            off = 2.0 * losses.sensitivity / WHOLE * math.log(1.0 / missed) / event.epsilon
            found.append({"probability": probability, "value": value, "rows_off_by_at_most": math.ceil(off)})
        return {"value": [each["value"] for each in found], "interval": None, "quantiles": found}

    def arg_max(self, question: ArgMax) -> Answer:
        event, axis = self._take(ExponentialEvent, LARGEST), axis_of(self._field(question.column), question.bins)
        losses = largest_count(self._cells(question, [axis]), size=axis.size, rows=self._rows.units)
        place = choose(losses, epsilon=event.epsilon, randomness=self._randomness)
        behind = math.ceil(losses.sensitivity * math.log(axis.size / MISSED) / event.epsilon)
        return {"value": _cell(axis, place), "interval": None, "behind_by_at_most": behind}

    def median(self, question: Median) -> Answer:
        event = self._take(PureEvent, MEDIAN)
        lattice = self._rows.lattice(question.column, most_places=MOST_CANDIDATES)
        # Noise is never less than (6/ε) places. Whole numbers are few, so that each is parted: the noise between them is rounded away.
        parts = max(1, PLACES_OF_A_MEDIAN // lattice.size)
        place = release_median(
            self._rows.places(question.column, lattice) * parts,
            size=(lattice.size - 1) * parts + 1,
            epsilon=event.epsilon,
            randomness=self._randomness,
        )
        value = _shown(lattice.value(round(place / parts)), self._rows.field_kind(question.column))
        return {"value": value, "interval": None, "resolution": _number(lattice.step)}

    def keys(self, question: Keys) -> Answer:
        event, rows = self._take(ThresholdEvent, KEYS), self._rows
        keys, counts = frequent_keys(
            rows.keys(question.columns),
            rows.meeting(question.where),
            rows=rows.units,
            epsilon=event.epsilon,
            failure_probability=event.failure_probability,
            randomness=self._randomness,
        )
        kinds = [rows.field_kind(column) for column in question.columns]
        values = [
            [_shown(value, kind) for value, kind in zip(key, kinds, strict=True)]
            for key in rows.key_values(keys, question.columns)
        ]
        told = {"epsilon": event.epsilon, "failure_probability": event.failure_probability}
        return {
            "value": [{"values": key, "count": count} for key, count in zip(values, counts.tolist(), strict=True)],
            "interval": None,
            "within": half_width(rows.units.most, event.epsilon),
            "threshold": threshold(**told, most=rows.units.most),
        }

    def _cells(self, question: Question, axes: tuple[Axis, ...] | list[Axis]) -> Integers:
        met: Mask = self._rows.meeting(question.where)
        return self._rows.cells(axes, met)

    def _field(self, column: str) -> FieldSchema:
        return self._rows.field(column)


_OF_KIND: dict[type[Question], Any] = {
    Count: Answering.count,
    Histogram: Answering.table,
    CrossTable: Answering.table,
    Sum: Answering.sum,
    Mean: Answering.mean,
    Quantiles: Answering.quantiles,
    ArgMax: Answering.arg_max,
    Median: Answering.median,
    Keys: Answering.keys,
}


def _cell(axis: Axis, place: int) -> Any:
    """What stands for a cell: its value, the ends of its bin, or null for missing."""
    if place >= axis.known:
        return None
    return axis.edges[place : place + 2] if axis.edges is not None else (axis.categories or ())[place]


def _number(exact: Fraction) -> int | float:
    return int(exact) if exact.denominator == 1 else float(exact)


def _shown(value: Any, kind: str) -> Any:
    """Dates and times as ISO texts (UTC)."""
    if value is None or kind not in {"date", "datetime"}:
        return value
    if kind == "date":
        return (dt.date(1970, 1, 1) + dt.timedelta(days=round(value))).isoformat()
    return dt.datetime.fromtimestamp(round(value), dt.UTC).replace(tzinfo=None).isoformat()
