"""The runs that docs/results/tables.md is written from: of every compared table, the newest of each method and ε.

They are bench/results/peers.csv, a run a line, as `python -m bench.tables --record` leaves them. Where no hardware stands, none was
kept with the run.
"""

from __future__ import annotations

import csv
from typing import Any

from bench.pages import RESULTS
from bench.tables.compared import GROUPS
from bench.tables.report import COLUMNS

RECORDS = RESULTS / "peers.csv"
RECORDED_DELTA = 1e-5
"""Of one release, in every run on record: methods are compared at one δ, whatever the service's default is."""
COMPARED = frozenset(table.name for tables in GROUPS.values() for table in tables)
COST = ("seconds", "cpu_seconds", "megabytes")
FIELDS = ("table", "method", "epsilon", "seed", "date", "hardware", *COLUMNS, *COST)

Run = dict[str, Any]


def runs_of(table: str) -> list[Run]:
    """What is on record of a table, by method, ε and seed."""
    return [_run(line) for line in _lines() if line["table"] == table]


def take(table: str, facts: dict[str, Any]) -> None:
    """Put the runs of a table that gave rows on record, instead of earlier ones of the same method and ε."""
    new = [_line(table, facts, run) for run in facts["runs"] if run["metrics"]]
    renewed = {(table, line["method"], line["epsilon"]) for line in new}
    kept = [line for line in _lines() if (line["table"], line["method"], line["epsilon"]) not in renewed]
    lines = sorted(
        [*kept, *new],
        key=lambda line: (line["table"], line["method"], float(line["epsilon"] or 0.0), int(line["seed"])),
    )
    with RECORDS.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def _lines() -> list[dict[str, str]]:
    if not RECORDS.exists():
        return []
    with RECORDS.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _line(table: str, facts: dict[str, Any], run: Run) -> dict[str, str]:
    names = {"table": table, "method": run["method"], "date": facts["date"], "hardware": facts["hardware"]}
    epsilon = "" if run["epsilon"] is None else f"{run['epsilon']:g}"
    numbers = {name: run["metrics"][name] for name in COLUMNS if name in run["metrics"]}
    numbers |= {name: run[name] for name in COST}
    digits = {name: f"{value:.8g}" for name, value in numbers.items()}
    return names | {"epsilon": epsilon, "seed": str(run["seed"])} | digits


def _run(line: dict[str, str]) -> Run:
    """As `_line` wrote it."""
    return {
        **{name: line[name] for name in ("method", "date", "hardware")},
        "epsilon": float(line["epsilon"]) if line["epsilon"] else None,
        "seed": int(line["seed"]),
        "metrics": {name: float(line[name]) for name in COLUMNS if line[name]},
        **{name: float(line[name]) for name in COST},
    }
