"""Ours beside dpmm's MST and AIM on every table of the bench, from the runs on record (bench/tables/records.py).

    python -m bench.tables.beside

Writes what stands between markers in docs/results/peers.md.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from bench.tables.compared import GROUPS, Table
from bench.tables.records import runs_of
from bench.tables.report import ROOT

PAGE = ROOT / "docs" / "results" / "peers.md"
BEGIN, END = "<!-- {}: by python -m bench.tables.beside -->", "<!-- end of {} -->"

OURS, FOR_TABLES, PEERS = "marginals", "marginals for tables", ("dpmm MST", "dpmm AIM")
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
VALUES = SHOWN = len(MEASURES) - 1
"""Place of the last, which has a table of its own (the first runs of some peers do not have it); so many stand in the tables of groups."""
CPU = Measure("CPU seconds", 0, is_better_higher=False)
DISTANCES = slice(2, None)
"""Places of those that compare tables."""


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

    def has_peers_in(self, place: int) -> bool:
        """Whether a measure was taken of ours and of a peer's."""
        return np.isfinite(self.ours.values[place]) and any(np.isfinite(p.values[place]) for p in self.peers.values())

    @property
    def is_faster(self) -> bool:
        return all(self.ours.cpu_seconds < score.cpu_seconds for score in self.peers.values())


@cache
def newest(table: Table) -> dict[tuple[str, float | None], Score]:
    """What the last run of each method and ε gave, if it has all measures."""
    runs: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
    for run in runs_of(table.name):
        if all(measure.name in run["metrics"] for measure in MEASURES[:SHOWN]):
            runs.setdefault((run["method"], run["epsilon"]), []).append(run)
    return {key: Score.of(of_key) for key, of_key in runs.items()}


def beside(group: str, ours: str = OURS) -> Iterator[tuple[Table, Score | None, list[Beside]]]:
    """Of every table: what classifiers have from real rows, and ours, by this method, beside the peers' at every ε."""
    for table in GROUPS[group]:
        scores = newest(table)
        lines = [
            Beside(table, e, scores[ours, e], {peer: scores[peer, e] for peer in PEERS if (peer, e) in scores})
            for e in EPSILONS
            if (ours, e) in scores
        ]
        yield table, scores.get(("real", None)), lines


def table_of(group: str) -> str:
    lines = [
        "| table (LR / GB of real rows) | rows, columns | ε | marginals | MST | AIM | CPU s |",
        "|---|---|---|---|---|---|---|",
    ]
    for table, real, each in beside(group):
        title = table.title if real is None else f"{table.title} ({_shown(real.values[:2])})"
        first = f"{title} | {table.rows:,}, {table.columns}"
        for one in each:
            cells = [_cell(one, peer) for peer in PEERS]
            seconds = [one.ours, *(one.peers.get(peer) for peer in PEERS)]
            cost = " / ".join("–" if score is None else f"{max(1, round(score.cpu_seconds))}" for score in seconds)
            lines.append(f"| {first} | {one.epsilon:g} | {_shown(one.ours.values)} | {' | '.join(cells)} | {cost} |")
            first = " | "
    return "\n".join(lines)


def counts() -> str:
    """Of how many tables ours is the best of those that ran beside a peer, and where it is not."""
    lines, behind = _counted(_with_peers(OURS), MEASURES, but_for=("TV1",))
    return "\n".join([*lines, "", "Where a peer is ahead (ours, and theirs), but for single columns:", "", *behind])


def for_tables() -> str:
    """The same of rows that were ordered for tables, in distances; and what they are beside rows for classifiers."""
    lines, behind = _counted(_with_peers(FOR_TABLES), MEASURES[DISTANCES], but_for=())
    for place, measure in enumerate(MEASURES):
        changes = [_change(epsilon, place) for epsilon in EPSILONS]
        lines.append(f"| {measure.name} beside that for classifiers | {' | '.join(changes)} |")
    return "\n".join([*lines, "", "Where a peer is ahead (ours, and theirs):", "", *behind])


def _with_peers(ours: str) -> list[Beside]:
    return [one for group in GROUPS for _, _, lines in beside(group, ours) for one in lines if one.peers]


def _counted(
    every: list[Beside], measures: Sequence[Measure], *, but_for: Container[str]
) -> tuple[list[str], list[str]]:
    """The lines of a table by measure and ε, and those that say where a peer is ahead, but for some measures."""
    lines = [f"| | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |", "|---|" + "---|" * len(EPSILONS)]
    behind = []
    for measure in measures:
        place, cells = MEASURES.index(measure), []
        for epsilon in EPSILONS:
            ran = [one for one in every if one.epsilon == epsilon and one.has_peers_in(place)]
            lost = [one for one in ran if any(one.is_ahead(peer, place) for peer in one.peers)]
            cells.append(_part(len(ran) - len(lost), len(ran)))
            if lost and measure.name not in but_for:
                behind.append(f"- {measure.name}, ε = {epsilon:g}: {'; '.join(_behind(one, place) for one in lost)}")
        lines.append(f"| {measure.name} | {' | '.join(cells)} |")
    faster = (
        _part(sum(one.is_faster for one in every if one.epsilon == e), sum(one.epsilon == e for one in every))
        for e in EPSILONS
    )
    lines.append(f"| CPU seconds | {' | '.join(faster)} |")
    return lines, behind


def _change(epsilon: float, place: int) -> str:
    """From rows for classifiers to rows for tables, in the mean of all tables: added, or what distances are multiplied by."""
    pairs = [
        (scores[OURS, epsilon].values[place], scores[FOR_TABLES, epsilon].values[place])
        for scores in (newest(table) for tables in GROUPS.values() for table in tables)
        if (OURS, epsilon) in scores and (FOR_TABLES, epsilon) in scores
    ]
    mean = _mean_change(pairs, MEASURES[place])
    return "" if mean is None else mean.text


class _Mean(NamedTuple):
    text: str
    """What is added in the mean of tables, or what distances are multiplied by in their geometric mean."""
    error: str
    """Its standard error over tables."""
    tables: int


def _mean_change(pairs: Sequence[tuple[float, float]], measure: Measure) -> _Mean | None:
    """From the first of each pair to the second, over tables where both are known, and no distance is nought."""
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
    return _Mean(f"× {factor:.2f}", _number(factor * error, 2), len(changes))


def means() -> str:
    """Ours beside each peer in the mean of all tables on which both ran: says less of any table, and is moved less by luck."""
    lines = [
        f"| ours beside | | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |",
        "|---|---|" + "---|" * len(EPSILONS),
    ]
    for peer in PEERS:
        ran = [one for one in _with_peers(OURS) if peer in one.peers]
        for place, measure in enumerate((*MEASURES, CPU)):
            cells = []
            for epsilon in EPSILONS:
                scores = [(one.peers[peer], one.ours) for one in ran if one.epsilon == epsilon]
                mean = _mean_change([(before.all[place], after.all[place]) for before, after in scores], measure)
                cells.append("" if mean is None else f"{mean.text} ± {mean.error} ({mean.tables})")
            lines.append(f"| {peer.removeprefix('dpmm ')} | {measure.name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def values() -> str:
    """Two-way distances in cells that real values fill equally, of every table that has a peer there."""
    epsilons = (0.1, 1.0, 10.0)
    lines = [f"| | {' | '.join(f'ε = {epsilon:g}' for epsilon in epsilons)} |", "|---|" + "---|" * len(epsilons)]
    for group in GROUPS:
        for table, _, each in beside(group):
            cells = {one.epsilon: _in_values(one) for one in each if one.has_peers_in(VALUES)}
            if cells.keys() & set(epsilons):
                lines.append(f"| {table.title.split(',')[0]} | {' | '.join(cells.get(e, '') for e in epsilons)} |")
    return "\n".join(lines)


def _in_values(one: Beside) -> str:
    """Ours / MST / AIM."""
    scores = [one.ours, *(one.peers.get(peer) for peer in PEERS)]
    known = [score.values[VALUES] if score is not None else np.nan for score in scores]
    return " / ".join("–" if np.isnan(value) else _number(value, 3) for value in known)


def _part(some: int, of: int) -> str:
    return f"{some} of {of}"


def _behind(one: Beside, place: int) -> str:
    digits = MEASURES[place].digits
    peers = (
        f"{peer.removeprefix('dpmm ')} {_number(score.values[place], digits)}"
        for peer, score in one.peers.items()
        if one.is_ahead(peer, place)
    )
    title = one.table.title.split(",")[0]
    return f"{title} {_number(one.ours.values[place], digits)} ({', '.join(peers)})"


def _cell(one: Beside, peer: str) -> str:
    score = one.peers.get(peer)
    if score is None:
        return ""
    return _shown(score.values, bold=[one.is_ahead(peer, place) for place in range(SHOWN)])


def _shown(values: tuple[float, ...], *, bold: list[bool] | None = None) -> str:
    """LR / GB, TV1 / TV2 / TV3, or the first of them."""
    texts = [_number(value, measure.digits) for value, measure in zip(values, MEASURES[:SHOWN], strict=False)]
    if bold is not None:
        texts = [f"**{text}**" if is_bold else text for text, is_bold in zip(texts, bold, strict=True)]
    return ", ".join(" / ".join(part) for part in (texts[:2], texts[2:]) if part)


def _number(value: float, digits: int) -> str:
    text = f"{value:.{digits}f}"
    return text.removeprefix("0") if text.startswith("0.") else text


def render(page: str) -> str:
    """The page with what stands between its markers written anew."""
    texts = {
        "counts": counts(),
        "means": means(),
        "tables": for_tables(),
        "values": values(),
        **{group: table_of(group) for group in GROUPS},
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
