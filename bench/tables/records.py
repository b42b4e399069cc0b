"""The runs that docs/results/peers.md is written from: of every compared table, the newest of each method and ε.

    python -m bench.tables.records bench/results/tables-NAME-DATE.json...

takes in what `python -m bench.tables --delta 1e-5` wrote with one synthetic row for each real one, and removes those files.
A record is bench/results/peers/TABLE.json: a run a line, as bench.tables has them, each with its date.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.tables.compared import GROUPS
from bench.tables.report import FOLDER

RECORDS = FOLDER / "peers"
RECORDED_DELTA = 1e-5
"""Of one release, in every run on record: methods are compared at one δ, whatever the service's default is."""

Run = dict[str, Any]


def runs_of(table: str) -> list[Run]:
    """What is on record of a table, by method, ε and seed."""
    record = RECORDS / f"{table}.json"
    return json.loads(record.read_text(encoding="utf-8")) if record.exists() else []


def take(file: Path) -> None:
    """Put the runs of a result that gave rows on record, instead of earlier ones of the same method and ε."""
    facts = json.loads(file.read_text(encoding="utf-8"))
    if facts["times"] != 1:
        raise ValueError(f"{file.name}: {facts['times']} synthetic rows for each real one are not compared with one")
    if facts["delta"] != RECORDED_DELTA:
        raise ValueError(
            f"{file.name}: runs at δ = {facts['delta']:g} are not compared with those at {RECORDED_DELTA:g}"
        )
    table = _table_of(file)
    new = [{**run, "date": facts["date"]} for run in facts["runs"] if run["metrics"]]
    renewed = {(run["method"], run["epsilon"]) for run in new}
    kept = [run for run in runs_of(table) if (run["method"], run["epsilon"]) not in renewed]
    runs = sorted([*kept, *new], key=lambda run: (run["method"], run["epsilon"] or 0.0, run["seed"]))
    RECORDS.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(run) for run in runs)
    (RECORDS / f"{table}.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def _table_of(file: Path) -> str:
    """The compared table whose name the file's begins with; a tag may follow it."""
    names = sorted((table.name for tables in GROUPS.values() for table in tables), key=len, reverse=True)
    rest = file.stem.removeprefix("tables-")
    for name in names:
        if rest.startswith(f"{name}-"):
            return name
    raise ValueError(f"{file.name}: not one of the tables of bench/tables/compared.py")


if __name__ == "__main__":
    for given in map(Path, sys.argv[1:]):
        take(given)
        for ending in (".json", ".md", ".svg"):
            given.with_suffix(ending).unlink(missing_ok=True)
