"""Ours beside AIM on every table that both ran on, from the runs on record (bench/tables/records.py).

    python -m bench.tables.beside

Writes what stands between markers in docs/results/tables.md, and the picture that the page shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bench.pages import RESULTS
from bench.tables.compared import GROUPS, INTERACTIONS, Table
from bench.tables.dots import Dots
from bench.tables.records import runs_of
from bench.tables.report import ROOT

PAGE = ROOT / "docs" / "results" / "tables.md"
PICTURE = RESULTS / "tables-beside.svg"
BEGIN, END = "<!-- {}: by python -m bench.tables.beside -->", "<!-- end of {} -->"

OURS, FOR_TABLES, PEERS = "marginals", "marginals for tables", ("AIM", "AIM-GDP")
EPSILONS = (0.1, 1.0, 3.0, 10.0)


class Measure(NamedTuple):
    name: str
    digits: int
    is_better_higher: bool


MEASURES = (
    Measure("LR AUROC", 3, True),
    Measure("GB AUROC", 3, True),
    Measure("TV1", 4, False),
    Measure("TV2", 4, False),
    Measure("TV3", 4, False),
    Measure("value TV2", 4, False),
)
VALUES = len(MEASURES) - 1
"""Place of the last, which some early runs lack; all others are in every run."""
CPU = Measure("CPU seconds", 0, is_better_higher=False)
PICTURED = next(place for place, measure in enumerate(MEASURES) if measure.name == "TV2")


@dataclass(frozen=True)
class Score:
    """Means over seeds, rounded as they are shown."""

    values: tuple[float, ...]
    cpu_seconds: float

    @property
    def all(self) -> tuple[float, ...]:
        return (*self.values, self.cpu_seconds)

    @classmethod
    def of(cls, runs: list[dict[str, Any]]) -> Score:
        means = (float(np.mean([run["metrics"].get(name, np.nan) for run in runs])) for name, _, _ in MEASURES)
        values = tuple(round(mean, measure.digits) for mean, measure in zip(means, MEASURES, strict=True))
        return cls(values, float(np.mean([run["cpu_seconds"] for run in runs])))


@dataclass
class Beside:
    """One table at one ε."""

    table: Table
    epsilon: float
    ours: Score
    peers: dict[str, Score] = field(default_factory=dict)

    def is_ahead(self, peer: str, place: int) -> bool:
        """Whether a peer is, in one measure, by the digits shown."""
        theirs, ours = self.peers[peer].values[place], self.ours.values[place]
        return theirs > ours if MEASURES[place].is_better_higher else theirs < ours


@cache
def newest(table: Table) -> dict[tuple[str, float | None], Score]:
    """What the last run of each method and ε gave, if it has all measures."""
    runs: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
    for run in runs_of(table.name):
        if all(measure.name in run["metrics"] for measure in MEASURES[:VALUES]):
            runs.setdefault((run["method"], run["epsilon"]), []).append(run)
    return {key: Score.of(of_key) for key, of_key in runs.items()}


def beside(group: str) -> Iterator[tuple[Table, list[Beside]]]:
    """The figures of every table, ours and the peers', at every ε that ours ran at."""
    for table in GROUPS[group]:
        scores = newest(table)
        yield (
            table,
            [
                Beside(table, e, scores[OURS, e], {peer: scores[peer, e] for peer in PEERS if (peer, e) in scores})
                for e in EPSILONS
                if (OURS, e) in scores
            ],
        )


def _with_peers() -> list[Beside]:
    """In the mean: but for tables that were made up to show one limit."""
    groups = [group for group in GROUPS if group != "limits"]
    return [one for group in groups for _, lines in beside(group) for one in lines if one.peers]


def measured() -> str:
    """Which tables both ran on, at which ε."""
    lines = []
    for peer in PEERS:
        for epsilon in EPSILONS:
            titles = [_title(one.table) for one in _with_peers() if one.epsilon == epsilon and peer in one.peers]
            if titles:
                lines.append(f"- {peer}, ε = {epsilon:g}, {len(titles)} tables: {', '.join(titles)}")
    return "\n".join(lines)


class _Mean(NamedTuple):
    text: str
    """What is added in the mean of tables, or what distances are multiplied by in their geometric mean."""
    error: str
    """Its standard error over tables."""
    tables: int


def _mean_change(pairs: Sequence[tuple[float, float]], measure: Measure) -> _Mean | None:
    """From the first of each pair to the second, over tables where both are known, and no distance is zero."""
    before, after = np.array(pairs, dtype=np.float64).reshape(-1, 2).T
    known = np.isfinite(before) & np.isfinite(after) & (measure.is_better_higher | (np.minimum(before, after) > 0.0))
    if not known.any():
        return None
    before, after = before[known], after[known]
    changes = after - before if measure.is_better_higher else np.log(after / before)
    mean, error = float(np.mean(changes)), float(np.std(changes, ddof=min(1, len(changes) - 1)) / np.sqrt(len(changes)))
    if measure.is_better_higher:
        return _Mean(f"{mean:+.3f}".replace("0.", "."), _number(error, 3), len(changes))
    factor = float(np.exp(mean))
    digits = 3 if measure is CPU else 2
    return _Mean(f"× {_number(factor, digits)}", _number(factor * error, digits), len(changes))


def means() -> str:
    """Ours beside each peer, in the mean of all tables on which both ran."""
    lines = [f"| ε | | {' | '.join(f'ours beside {peer}' for peer in PEERS)} |", "|---|---|" + "---|" * len(PEERS)]
    for epsilon in EPSILONS:
        there = [one for one in _with_peers() if one.epsilon == epsilon]
        ran = [[(one.peers[peer], one.ours) for one in there if peer in one.peers] for peer in PEERS]
        lines += _lines_of_means(f"{epsilon:g}", ran) if there else []
    return "\n".join(lines)


def purposes() -> str:
    """Rows ordered for tables beside rows ordered for classifiers, in the mean of all tables."""
    every = [newest(table) for tables in GROUPS.values() for table in tables]
    ran = [
        [(scores[OURS, e], scores[FOR_TABLES, e]) for scores in every if {(OURS, e), (FOR_TABLES, e)} <= scores.keys()]
        for e in EPSILONS
    ]
    lines = [f"| | | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |", "|---|---|" + "---|" * len(EPSILONS)]
    return "\n".join([*lines, *_lines_of_means("for tables, beside for classifiers", ran)])


def _lines_of_means(what: str, ran: Sequence[Sequence[tuple[Score, Score]]]) -> list[str]:
    """A line for each measure; in each column the change from the first scores to the second."""
    lines = []
    for place, measure in enumerate((*MEASURES, CPU)):
        changes = [_mean_change([(before.all[place], after.all[place]) for before, after in of], measure) for of in ran]
        cells = ["" if mean is None else f"{mean.text} ± {mean.error} ({mean.tables})" for mean in changes]
        lines.append(f"| {what} | {measure.name} | {' | '.join(cells)} |")
    return lines


def behind() -> str:
    """Every place where a peer is ahead: ours, and theirs."""
    lines = ["| measure | ε | of the tables | ours (theirs) |", "|---|---|---|---|"]
    for place, measure in enumerate(MEASURES):
        for epsilon in EPSILONS:
            ran = [one for one in _with_peers() if one.epsilon == epsilon]
            lost = [one for one in ran if any(one.is_ahead(peer, place) for peer in one.peers)]
            if lost:
                places = "; ".join(_behind(one, place) for one in lost)
                lines.append(f"| {measure.name} | {epsilon:g} | {len(lost)} of {len(ran)} | {places} |")
    return "\n".join(lines)


def _behind(one: Beside, place: int) -> str:
    digits = MEASURES[place].digits
    peers = (
        f"{peer} {_number(score.values[place], digits)}"
        for peer, score in one.peers.items()
        if one.is_ahead(peer, place)
    )
    return f"{_title(one.table)} {_number(one.ours.values[place], digits)} ({', '.join(peers)})"


def interactions() -> str:
    """Tables whose target shows in no pair of columns, of every method that ran."""
    lines = [
        f"| table | rows from | ε | {' | '.join(measure.name for measure in MEASURES[:VALUES])} | CPU s |",
        "|---|---|---|" + "---|" * (VALUES + 1),
    ]
    for table in INTERACTIONS:
        scores = newest(table)
        for method in ("real", "independent", OURS, *PEERS, "idpgan"):
            for epsilon in (None, *EPSILONS):
                if (method, epsilon) in scores:
                    score = scores[method, epsilon]
                    cells = (
                        _number(score.values[place], measure.digits) for place, measure in enumerate(MEASURES[:-1])
                    )
                    shown = "–" if epsilon is None else f"{epsilon:g}"
                    seconds = "" if epsilon is None else f"{score.cpu_seconds:.0f}"
                    lines.append(f"| {_title(table)} | {method} | {shown} | {' | '.join(cells)} | {seconds} |")
    return "\n".join(lines)


def dots() -> Dots:
    """Distance of pairs at ε = 1, a line for each table."""
    rows = {
        _title(one.table): {
            OURS: one.ours.values[PICTURED],
            **{peer: score.values[PICTURED] for peer, score in one.peers.items()},
        }
        for one in _with_peers()
        if one.epsilon == 1.0
    }
    return Dots("Total variation of pairs of columns at ε = 1 (smaller is better)", (OURS, *PEERS), rows)


def _title(table: Table) -> str:
    return table.title.split(",")[0]


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def render(page: str) -> str:
    """The page with what stands between its markers written anew."""
    texts = {
        "measured": measured(),
        "means": means(),
        "purposes": purposes(),
        "behind": behind(),
        "interactions": interactions(),
    }
    for name, text in texts.items():
        begin, end = BEGIN.format(name), END.format(name)
        if begin not in page or end not in page:
            raise ValueError(f"{PAGE.name} lacks the markers of {name}")
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.write_text(dots().svg(), encoding="utf-8")
