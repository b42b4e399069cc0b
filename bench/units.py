"""A table in which one person has many rows: CDNOW through `imprimatur publish`, both methods, priced per customer.

    python -m bench.units [--shared FOLDER] [--epsilon 3] [--max-rows-per-unit 4] [--methods marginals,idpgan] [--quick]

69,659 purchases of 23,570 customers. Distances of one-, two- and three-way tables are from all purchases, and from what can be had at
best: the purchases that are left when every customer keeps at most that many, chosen at random. Writes bench/results/units.md.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.pages import keep
from bench.tables.metrics import breaking_share, total_variation
from bench.tables.tables import codes_of, read_table

ROOT = Path(__file__).parents[1]
SCHEMA = {
    "fields": [
        {
            "name": "date",
            "type": "date",
            "bins": 18,
            "constraints": {"required": True, "minimum": "1997-01-01", "maximum": "1998-06-30"},
        },
        {
            "name": "cds",
            "type": "integer",
            "edges": [1, 2, 3, 4, 5, 6, 8, 11, 21, 99],
            "constraints": {"required": True, "minimum": 1, "maximum": 99},
        },
        {
            "name": "dollars",
            "type": "number",
            "decimals": 2,
            "edges": [0, 0.01, 10, 12, 14, 16, 20, 25, 30, 35, 40, 50, 60, 80, 120, 200, 1300],
            "constraints": {"required": True, "minimum": 0, "maximum": 1300},
        },
    ]
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--max-rows-per-unit", type=int, default=4)
    parser.add_argument("--methods", default="marginals,idpgan")
    parser.add_argument("--quick", action="store_true", help="marginals alone; writes nothing")
    asked = parser.parse_args()
    if asked.quick:
        asked.methods = "marginals"
    with tempfile.TemporaryDirectory() as folder:
        lines = _measure(asked, Path(folder))
    text = "\n".join(_head(asked) + lines) + "\n"
    print(text)
    if not asked.quick:
        keep("units", text)


def _head(asked: argparse.Namespace) -> list[str]:
    return [
        (
            f"`python -m bench.units`: `imprimatur publish --privacy-unit customer --max-rows-per-unit {asked.max_rows_per_unit} "
            f"--epsilon {asked.epsilon:g}`, one release of each method, {os.cpu_count()} cores. Seconds are of the whole command, the "
            "start and stop of the service included."
        ),
        "",
        "| rows | TV1 | TV2 | TV3 | rows breaking the schema | mean rows of a unit | seconds |",
        "|---|---|---|---|---|---|---|",
    ]


def _measure(asked: argparse.Namespace, folder: Path) -> list[str]:
    customers, rows = _read(asked.shared / "cdnow" / "CDNOW_master.txt")
    table, schema = folder / "cdnow.csv", folder / "cdnow.schema.json"
    schema.write_text(json.dumps(SCHEMA))
    _write(table, ["customer", *_names()], [[c, *row] for c, row in zip(customers, rows, strict=True)])
    _write(folder / "rows.csv", _names(), rows)
    real = read_table(folder / "rows.csv", schema, None, folder / "rows.csv", None)
    codes, widths = codes_of(real.test, real.domain), real.domain.widths

    def line(name: str, frame: pl.DataFrame, mean: str, seconds: str) -> str:
        made = codes_of(frame, real.domain)
        distances = " | ".join(f"{total_variation(made, codes, widths, ways):.4f}" for ways in (1, 2, 3))
        return f"| {name} | {distances} | {breaking_share(frame, real.schema):.4f} | {mean} | {seconds} |"

    kept = _at_most(customers, asked.max_rows_per_unit)
    mean = len(kept) / len(set(customers))
    lines = [line(f"real, at most {asked.max_rows_per_unit} of a customer", real.test[kept], f"{mean:.3f}", "–")]
    rng = np.random.default_rng(0)
    fresh = real.test[rng.integers(len(codes), size=len(codes))]
    lines.append(line("real, drawn with replacement", fresh, f"{len(codes) / len(set(customers)):.3f}", "–"))
    said: dict[str, Any] = {}
    for method in asked.methods.split(","):
        started = time.monotonic()
        said[method] = _publish(asked, method, table, schema, len(codes), folder)
        seconds = time.monotonic() - started
        frame = read_table(folder / f"{method}.csv", schema, None, folder / f"{method}.csv", None).test
        rows_per_unit = said[method]["rows_per_unit"]["mean"]
        lines.append(
            line(method, frame, "not measured" if rows_per_unit is None else f"{rows_per_unit:.3f}", f"{seconds:.0f}")
        )
    units = "; ".join(f"{method}: {certificate['unit']}" for method, certificate in said.items())
    return [*lines, "", f"The certificates say, as the unit: {units}."]


def _publish(
    asked: argparse.Namespace, method: str, table: Path, schema: Path, rows: int, folder: Path
) -> dict[str, Any]:
    """The rows lie in METHOD.csv afterwards; returns the certificate."""
    certificate = folder / f"{method}.certificate.json"
    command = [sys.executable, "-m", "imprimatur.cli", "publish", table, "--schema", schema, "--method", method]
    command += [
        "--epsilon",
        asked.epsilon,
        "--budget-epsilon",
        asked.epsilon,
        "--rows",
        rows,
        "--certificate",
        certificate,
    ]
    command += ["--privacy-unit", "customer", "--max-rows-per-unit", asked.max_rows_per_unit]
    command += ["-o", folder / f"{method}.csv", "--data", folder / method]
    subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
    document: dict[str, Any] = json.loads(certificate.read_text())
    return document


def _read(file: Path) -> tuple[list[str], list[list[str]]]:
    cells = [line.split() for line in file.read_text().splitlines()[1:] if line.strip()]
    return [c[0] for c in cells], [[f"{c[1][:4]}-{c[1][4:6]}-{c[1][6:]}", c[2], c[3]] for c in cells]


def _at_most(customers: list[str], most: int) -> np.ndarray:
    """Places of at most that many rows of every customer, chosen at random."""
    seen: dict[str, int] = {}
    kept = []
    for place in np.random.default_rng(0).permutation(len(customers)):
        seen[customers[place]] = seen.get(customers[place], 0) + 1
        if seen[customers[place]] <= most:
            kept.append(place)
    return np.sort(np.array(kept))


def _names() -> list[str]:
    return [str(field["name"]) for field in SCHEMA["fields"]]


def _write(file: Path, names: list[str], rows: list[list[str]]) -> None:
    with file.open("w", newline="") as opened:
        writer = csv.writer(opened)
        writer.writerow(names)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
