"""Ours beside dpmm's MST and AIM on every table of the bench, from the newest committed run of each.

    python -m bench.tables.beside

Writes what stands between markers in docs/results/peers.md, from bench/results/tables-*.json with one synthetic row for each real one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench.tables.report import FOLDER, ROOT

PAGE = ROOT / "docs" / "results" / "peers.md"
BEGIN, END = "<!-- {}: by python -m bench.tables.beside -->", "<!-- end of {} -->"

OURS, PEERS = "marginals", ("dpmm MST", "dpmm AIM")
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


class Table(NamedTuple):
    name: str
    title: str
    rows: int
    """To train on."""
    columns: int


GROUPS: dict[str, tuple[Table, ...]] = {
    "first": (
        Table("adult", "Adult, income", 32_561, 15),
        Table("poker", "Poker Hand, class", 25_010, 11),
        Table("elderly_visits", "elderly visits, who is privately insured", 3_525, 19),
        Table("doctor_visits", "doctor visits, who is out of work", 15_688, 16),
        Table("household_food", "household food", 19_177, 6),
        Table("vietnam_health", "Vietnamese households", 22_212, 12),
        Table("health_insurance", "health insurance, whose own it is", 17_818, 13),
        Table("flchain", "free light chains, who died", 6_300, 10),
        Table("unemployment_benefits", "unemployment benefits", 3_902, 17),
        Table("diamonds", "diamonds, how well cut", 43_152, 10),
        Table("movies", "films", 47_031, 23),
        Table("baseball", "baseball", 17_308, 20),
        Table("computers", "computers, premium", 5_008, 10),
        Table("star", "star, free lunch", 4_599, 8),
        Table("bfi", "personality, gender", 2_240, 28),
        Table("vietnamh", "Vietnamese homes, urban", 4_800, 11),
        Table("epi", "57 yes or no", 2_620, 57),
        Table("msq", "moods", 3_104, 92),
    ),
    "second": (
        Table("tuna", "tuna, which brand", 10_964, 6),
        Table("doctor_australia", "visits in Australia, how insured", 4_152, 15),
        Table("medical_expenses", "medical expenses, how healthy", 4_460, 15),
        Table("verbal_aggression", "verbal aggression, yes or no", 6_068, 8),
        Table("young_men", "young men, in a union", 3_488, 11),
        Table("schooling", "schooling, who is black", 4_180, 16),
        Table("working_hours", "working hours, which occupation", 2_706, 12),
        Table("cars", "cars, which choice", 3_724, 70),
    ),
    "third": (
        Table("catsup", "catsup, which brand", 2_239, 13),
        Table("job_training", "job training, who was treated", 2_140, 10),
        Table("aids", "AIDS in Australia, who died", 2_275, 7),
        Table("chile", "Chile, which vote", 2_026, 8),
        Table("yogurt", "yogurt, which brand", 1_930, 9),
        Table("colon_cancer", "colon cancer, who died or fell ill again", 1_487, 14),
        Table("unemployment_spells", "spells without work, who was insured", 2_675, 11),
        Table("kakadu", "Kakadu, what was answered", 1_462, 22),
        Table("train_choice", "trains, which of two", 2_344, 9),
        Table("wilms_tumour", "Wilms' tumour, who fell ill again", 3_223, 8),
        Table("ketchup", "ketchup, which brand", 3_965, 5),
        Table("patents", "patents, which firms are of science", 1_384, 16),
        Table("ability", "ability, one of sixteen questions", 1_168, 16),
        Table("labour_supply", "labour supply, who is disabled", 4_256, 6),
        Table("pneumonia", "pneumonia, whose mother smoked", 2_776, 15),
    ),
    "fourth": (
        Table("default", "credit cards, who defaults", 8_000, 4),
        Table("affairs", "marriages, how happy", 5_093, 9),
        Table("orange_juice", "orange juice, which brand", 856, 18),
        Table("crop_insurance", "crop insurance, who takes it", 1_128, 11),
        Table("wages", "wages, who is insured", 2_400, 11),
        Table("arrests", "arrests, who is black", 2_180, 16),
        Table("grades", "grades, who is a woman", 3_310, 12),
        Table("pensions", "pensions, who is eligible", 7_420, 11),
        Table("hiv_trial", "HIV trial, who was censored", 1_712, 26),
        Table("rand_health", "doctor visits of RAND, which plan", 16_152, 10),
        Table("fertility", "fertility, who uses a method", 3_432, 27),
        Table("bikeshare", "bicycles hired, on which days", 6_916, 15),
        Table("wives", "wives, who works", 4_508, 24),
        Table("injuries", "injuries, who earns much", 5_720, 30),
        Table("mothers", "mothers of a third child", 25_486, 20),
        Table("veterans", "veterans, who owns a home", 171_316, 6),
    ),
    "made_up": (
        Table("chain", "chain", 16_000, 20),
        Table("survey", "survey, arrears", 16_000, 15),
    ),
    "few": (
        Table("breast_cancer", "breast cancer", 456, 31),
        Table("wine", "wine", 143, 14),
        Table("digits", "digits", 1_438, 65),
        Table("diabetes", "diabetes", 354, 11),
    ),
}
"""As docs/results/peers.md tells them apart."""


@dataclass(frozen=True)
class Score:
    """Means over seeds, rounded as they are shown."""

    values: tuple[float, ...]
    cpu_seconds: float

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


def newest(table: Table) -> dict[tuple[str, float | None], Score]:
    """What the last run of each method and ε gave, by the date in the name of its file, and then by its tag."""
    found: dict[tuple[str, float | None], Score] = {}
    for file in sorted(_files().get(table.name, ()), key=lambda file: (file.stem[-10:], file.stem)):
        facts = json.loads(file.read_text(encoding="utf-8"))
        if facts["times"] != 1:
            continue
        runs: dict[tuple[str, float | None], list[dict[str, Any]]] = {}
        for run in facts["runs"]:
            if all(measure.name in run["metrics"] for measure in MEASURES[:SHOWN]):
                runs.setdefault((run["method"], run["epsilon"]), []).append(run)
        found |= {key: Score.of(of_key) for key, of_key in runs.items()}
    return found


@cache
def _files() -> dict[str, list[Path]]:
    """Result files of each table; a tag may follow its name."""
    names = sorted((table.name for tables in GROUPS.values() for table in tables), key=len, reverse=True)
    files: dict[str, list[Path]] = {}
    for file in FOLDER.glob("tables-*.json"):
        rest = file.stem.removeprefix("tables-")
        name = next((name for name in names if rest.startswith(f"{name}-")), None)
        if name is not None:
            files.setdefault(name, []).append(file)
    return files


def beside(group: str) -> Iterator[tuple[Table, Score | None, list[Beside]]]:
    """Of every table: what classifiers have from real rows, and ours beside the peers' at every ε."""
    for table in GROUPS[group]:
        scores = newest(table)
        lines = [
            Beside(table, e, scores[OURS, e], {peer: scores[peer, e] for peer in PEERS if (peer, e) in scores})
            for e in EPSILONS
            if (OURS, e) in scores
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
    every = [one for group in GROUPS for _, _, lines in beside(group) for one in lines if one.peers]
    lines = [f"| | {' | '.join(f'ε = {epsilon:g}' for epsilon in EPSILONS)} |", "|---|" + "---|" * len(EPSILONS)]
    behind = []
    for place, measure in enumerate(MEASURES):
        cells = []
        for epsilon in EPSILONS:
            ran = [one for one in every if one.epsilon == epsilon and one.has_peers_in(place)]
            lost = [one for one in ran if any(one.is_ahead(peer, place) for peer in one.peers)]
            cells.append(_part(len(ran) - len(lost), len(ran)))
            if lost and measure.name != "TV1":
                behind.append(f"- {measure.name}, ε = {epsilon:g}: {'; '.join(_behind(one, place) for one in lost)}")
        lines.append(f"| {measure.name} | {' | '.join(cells)} |")
    faster = (
        _part(sum(one.is_faster for one in every if one.epsilon == e), sum(one.epsilon == e for one in every))
        for e in EPSILONS
    )
    lines.append(f"| CPU seconds | {' | '.join(faster)} |")
    return "\n".join([*lines, "", "Where a peer is ahead (ours, and theirs), but for single columns:", "", *behind])


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
    texts = {"counts": counts(), "values": values(), **{group: table_of(group) for group in GROUPS}}
    for name, text in texts.items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = page.partition(begin)
        _, _, after = rest.partition(end)
        page = f"{before}{begin}\n\n{text}\n\n{end}{after}"
    return page


if __name__ == "__main__":
    PAGE.write_text(render(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
