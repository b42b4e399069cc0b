"""What classifiers reached that were trained on rows or images of this software, in its benches: experience, and no promise.

experience.csv is made by `python -m bench.forecast --experience` from the newest runs on public data. No private row is in it.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from service.base.messages import Figure, Message, plural, sentences
from service.domain.shapes import ImageShape
from service.methods.facts import Facts
from service.methods.few_images import too_few_images
from service.methods.forecast import Expected, Experience, Forecast, in_digits
from service.methods.knobs import DEFAULT_NUMERIC_BINS, Order
from service.privacy.events import Events

ALIKE = 3.0
"""Data are alike that have up to so many times as many rows or columns, at up to so many times the ε, or as many times fewer."""

FEWEST = 5
"""Runs that a range is given for; of a method that has fewer in all, one is enough."""

REVISED = {"marginals": "2026-11-28"}
"""When a method was last changed so much that earlier runs are of another one: it lost half of its rules (docs/decisions/0051)."""

UNKNOWN = Message(
    "How far off counts will be does not follow from the price of this method: it trains a generator or measures no tables, and what that "
    "makes of noise depends on the data."
)


@dataclass(frozen=True)
class Run:
    """The mean of one method on one data set at one ε."""

    method: str
    holds: str
    name: str
    rows: int
    columns: int
    epsilon: float
    real: float
    """AUROC of boosted trees trained on real rows; of images the accuracy of a small network."""
    reached: float
    one_way_tv: float | None
    two_way_tv: float | None
    """Of synthetic from real rows, in the cells of the benches; None of images."""
    date: str
    """Of the oldest of its runs; empty where none was kept."""

    @property
    def is_earlier(self) -> bool:
        """Whether the method was another one."""
        return self.date < REVISED.get(self.method, "")


@cache
def runs() -> tuple[Run, ...]:
    """All of them: a few hundred."""
    text = files("service.methods").joinpath("experience.csv").read_text(encoding="utf-8")
    return tuple(
        Run(
            each["method"],
            each["holds"],
            each["name"],
            int(each["rows"]),
            int(each["columns"]),
            float(each["epsilon"]),
            float(each["real"]),
            float(each["reached"]),
            float(each["one_way_tv"]) if each["one_way_tv"] else None,
            float(each["two_way_tv"]) if each["two_way_tv"] else None,
            each["date"],
        )
        for each in csv.DictReader(text.splitlines())
    )


def experience_of(method: str, holds: str, facts: Facts, order: Order) -> Experience | None:
    """What runs on data of such a size at such an ε lost beside real rows; None where too few were made."""
    shape = facts.shape(DEFAULT_NUMERIC_BINS)
    columns = 0 if isinstance(shape, ImageShape) else len(shape.cells)
    epsilon = order.epsilon if order.epsilon is not None else float(order.share or 0.0) * facts.budget.epsilon
    of_method = [run for run in runs() if run.method == method and run.holds == holds]
    alike = [
        run
        for run in of_method
        if _is_near(run.epsilon, epsilon)
        and _is_near(run.rows, facts.units)
        and (holds == "image" or _is_near(run.columns, columns))
    ]
    if len(alike) < (FEWEST if len(of_method) > FEWEST else 1):
        return None
    return _of(alike)


def _of(alike: Sequence[Run]) -> Experience:
    """Tenth, fiftieth and ninetieth percentile over runs."""
    lost = sorted(run.real - run.reached for run in alike)
    return Experience(
        tables=len({run.name for run in alike}),
        low=_quantile(lost, 0.1),
        median=_quantile(lost, 0.5),
        high=_quantile(lost, 0.9),
        one_way_tv=_expected([run.one_way_tv for run in alike]),
        two_way_tv=_expected([run.two_way_tv for run in alike]),
        runs=len(alike),
        earlier=sum(run.is_earlier for run in alike),
    )


def _expected(found: Sequence[float | None]) -> Expected | None:
    """Of those runs that have one."""
    ordered = sorted(value for value in found if value is not None)
    if not ordered:
        return None
    return Expected(expected=_quantile(ordered, 0.5), low=_quantile(ordered, 0.1), high=_quantile(ordered, 0.9))


def _distances(found: Experience) -> str:
    """What a person sees who compares synthetic with real rows."""
    if found.one_way_tv is None or found.two_way_tv is None:
        return ""
    one, two = (
        Message(
            "%(expected)s (%(low)s to %(high)s)",
            expected=in_digits(tv.expected),
            low=in_digits(tv.low),
            high=in_digits(tv.high),
        )
        if found.tables > 1
        else in_digits(tv.expected)
        for tv in (found.one_way_tv, found.two_way_tv)
    )
    return Message(
        "From the real rows, tables of one column were %(one)s off in total variation, tables of two columns %(two)s: by noise, and by "
        "all that adds to it, such as pairs that are not measured, bins, the fit and the drawing of rows.",
        one=one,
        two=two,
    )


def _of_earlier(found: Experience) -> str:
    """What the figures are of another version of."""
    if not found.earlier:
        return ""
    if found.earlier == found.runs:
        return Message("All of this was with an earlier version of this method.")
    return plural(
        "Of these %(runs)s runs, %(earlier)s was with an earlier version of this method.",
        "Of these %(runs)s runs, %(earlier)s were with an earlier version of this method.",
        found.earlier,
        runs=found.runs,
        earlier=found.earlier,
    )


def in_words(found: Experience, holds: str) -> str:
    """What runs reached, as a sentence."""
    lower = Message("lower by %(median)s", median=_lost(found.median))
    if found.tables > 1:
        lower = Message(
            "lower by %(median)s at the median (four fifths: %(low)s to %(high)s)",
            median=_lost(found.median),
            low=_lost(found.low),
            high=_lost(found.high),
        )
    if holds == "table":
        scores = plural(
            "Experience, not a promise: on %(count)s table of such a size at such an ε, classifiers trained on such rows had an AUROC of "
            "boosted trees %(lower)s than those trained on the real ones.",
            "Experience, not a promise: on %(count)s tables of such a size at such an ε, classifiers trained on such rows had an AUROC of "
            "boosted trees %(lower)s than those trained on the real ones.",
            found.tables,
            count=found.tables,
            lower=lower,
        )
        return sentences(scores, _distances(found), _of_earlier(found))
    return plural(
        "Experience, not a promise: on %(count)s set of images of such a size at such an ε, classifiers trained on such images had an "
        "accuracy %(lower)s than those trained on the real ones.",
        "Experience, not a promise: on %(count)s sets of images of such a size at such an ε, classifiers trained on such images had an "
        "accuracy %(lower)s than those trained on the real ones.",
        found.tables,
        count=found.tables,
        lower=lower,
    )


def only_experience(method: str) -> Callable[[Order, Events, Facts], Forecast]:
    """The forecast of a method whose noise cannot be turned into errors of counts."""

    def forecast(order: Order, _events: Events, facts: Facts) -> Forecast:
        holds = "image" if isinstance(facts.shape(DEFAULT_NUMERIC_BINS), ImageShape) else "table"
        found = experience_of(method, holds, facts, order)
        said = Message("No measured run was similar to this order.") if found is None else in_words(found, holds)
        few = too_few_images(order, facts) if holds == "image" else None
        return Forecast((UNKNOWN, said), () if few is None else (few,), experience=found)

    return forecast


def _is_near(one: float, other: float) -> bool:
    return one > 0.0 < other and abs(math.log(one / other)) <= math.log(ALIKE) + 1e-9


def _quantile(ordered: Sequence[float], part: float) -> float:
    """The nearest rank."""
    return ordered[min(len(ordered) - 1, math.floor(part * len(ordered)))]


def _lost(value: float) -> str:
    return Figure(f"{max(0.0, value):.3f}")
