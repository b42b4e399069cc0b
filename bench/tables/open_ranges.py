"""How far numbers of open ranges are from the real ones, beside the same table given its quantile bins for free.

    python -m bench.tables.open_ranges --shared FOLDER [--tables payments,adult,...] [--seeds 2] [--page]

Both forms get the same rows (at most 12,000, after a shuffle) and 400 steps of fit, at δ = 1e-5 of one release. Distances are value
distances (bench/tables/values.py): in bins that real rows fill equally, sixteen to a column, which are just the bins that the second
form is given. Each run is a line of bench/runs/open_ranges.jsonl; a stopped bench goes on. Writes the section `open-ranges` of
bench/results/tables.md. The goal is a ratio of at most 1.5.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.pages import keep, run_file
from bench.tables.methods import METHODS, Ask
from bench.tables.report import ROOT
from bench.tables.sources import source
from bench.tables.tables import Table, read_table
from bench.tables.values import value_scores
from service.domain.table_schema import parse_table_schema

TABLES = (
    *("payments", "shop", "accounts", "claims", "ledger"),
    *("adult", "flchain", "medical_expenses", "elderly_visits", "doctor_visits", "diamonds", "computers"),
    *(
        "unemployment_benefits",
        "health_insurance",
        "household_food",
        "vietnam_health",
        "star",
        "ketchup",
        "tuna",
        "schooling",
    ),
)
"""Made-up money, then real tables that have numbers without declared cells; Adult loses those that its schema has."""
GIVEN, OPEN = "marginals given quantile bins", "marginals"
EPSILONS = (1.0, 10.0)
MEASURES = ("value TV1", "value TV2")
ROWS, STEPS, DELTA = 12_000, 400, 1e-5
GOAL = 1.5

Figures = dict[tuple[str, str, float], dict[str, float]]
"""Means over seeds, by table, method and ε."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument(
        "--shared", type=Path, default=ROOT.parent / "shared" / "data", help="where files of others are"
    )
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--page", action="store_true", help="run nothing: write the section of what was run")
    asked = parser.parse_args()
    if not asked.page:
        for seed in range(1, asked.seeds + 1):
            for name in asked.tables.split(","):
                _run_table(name, seed, asked.shared)
    keep("tables", markdown(_stored()), "open-ranges")


def _run_table(name: str, seed: int, shared: Path) -> None:
    done = {(run["table"], run["method"], run["epsilon"], run["seed"]) for run in _stored()}
    wanted = [(method, epsilon) for epsilon in EPSILONS for method in (GIVEN, OPEN)]
    wanted = [(method, epsilon) for method, epsilon in wanted if (name, method, epsilon, seed) not in done]
    if not wanted:
        return
    with tempfile.TemporaryDirectory() as folder:
        found = source(name, Path(folder), shared)
        if found is None:
            print(f"{name}: SKIPPED, its data is not in {shared}", flush=True)
            return
        table = without_cells(read_table(found.data, found.schema, None, found.test, ROWS))
    for method, epsilon in wanted:
        run = {
            "table": name,
            "method": method,
            "epsilon": epsilon,
            "seed": seed,
            **scores(table, method, epsilon, seed),
        }
        print(json.dumps(run), flush=True)
        with run_file("open_ranges.jsonl").open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(run) + "\n")


def without_cells(table: Table) -> Table:
    """The table as an owner would declare who knows bounds alone."""
    document = table.schema.model_dump(mode="json", exclude_unset=True)
    for field in document["fields"]:
        field.pop("edges", None)
    return replace(table, schema=parse_table_schema(document))


def scores(table: Table, method: str, epsilon: float, seed: int) -> dict[str, float]:
    rows = len(table.train)
    before = os.times()
    frame, _ = METHODS[method](Ask(table, epsilon, DELTA, rows, seed, {"steps": STEPS}))
    after = os.times()
    found = value_scores(frame, replace(table, target=None))  # distances alone: no classifier
    return {"rows": rows, "cpu_seconds": sum(after[:4]) - sum(before[:4]), **{name: found[name] for name in MEASURES}}


def _stored() -> list[dict[str, Any]]:
    path = run_file("open_ranges.jsonl")
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def markdown(runs: list[dict[str, Any]]) -> str:
    figures: Figures = {}
    for key in {(run["table"], run["method"], run["epsilon"]) for run in runs}:
        of_key = [run for run in runs if (run["table"], run["method"], run["epsilon"]) == key]
        figures[key] = {name: float(np.mean([run[name] for run in of_key])) for name in MEASURES}
    tables = [name for name in TABLES if any(run["table"] == name for run in runs)]
    return "\n".join(
        [
            (
                f"{platform.machine()}, {os.cpu_count()} cores, busy with other work; `python -m bench.tables.open_ranges`; at most {ROWS:,} rows, "
                f"{STEPS} steps, δ = {DELTA:g} of one release, {_seeds(runs)}. Value distances: in bins that real rows fill equally, sixteen to "
                f"a column. Each cell: given these bins for free / from bounds alone. The goal is a ratio of at most {GOAL:g}."
            ),
            "",
            "| table | rows | ε = 1: TV1 | ratio | TV2 | ratio | ε = 10: TV1 | ratio | TV2 | ratio |",
            "|---|---|---|---|---|---|---|---|---|---|",
            *(_line(name, next(run["rows"] for run in runs if run["table"] == name), figures) for name in tables),
            _means(tables, figures),
        ]
    )


def _seeds(runs: list[dict[str, Any]]) -> str:
    counts = {
        sum(run["table"] == name for run in runs) // len(EPSILONS) // 2 for name in {run["table"] for run in runs}
    }
    return f"{min(counts)} to {max(counts)} seeds" if len(counts) > 1 else f"{counts.pop()} seed(s)"


def _pairs(name: str, figures: Figures) -> Iterator[tuple[float, float] | None]:
    """Given and open, by ε and measure; None where either was not run."""
    for epsilon in EPSILONS:
        given, opened = (figures.get((name, method, epsilon)) for method in (GIVEN, OPEN))
        yield from ((given[m], opened[m]) if given and opened else None for m in MEASURES)


def _line(name: str, rows: int, figures: Figures) -> str:
    cells = [
        f"{pair[0]:.4f} / {pair[1]:.4f} | {pair[1] / pair[0]:.2f}" if pair else " | " for pair in _pairs(name, figures)
    ]
    return f"| {name} | {rows:,} | {' | '.join(cells)} |"


def _means(tables: list[str], figures: Figures) -> str:
    """Geometric means with the standard error over tables; in brackets how many, and how many within the goal."""
    cells = []
    for pairs in zip(*(tuple(_pairs(name, figures)) for name in tables), strict=True):
        logs = np.log([pair[1] / pair[0] for pair in pairs if pair])
        mean = float(np.exp(logs.mean()))
        spread = f" ± {mean * float(logs.std(ddof=1)) / np.sqrt(len(logs)):.2f}" if len(logs) > 1 else ""
        cells.append(f" | **{mean:.2f}{spread}** ({len(logs)}, {int((logs <= np.log(GOAL)).sum())} within)")
    return f"| geometric mean | | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
