"""SDMetrics beside our distances, on the same rows: column shapes and pair trends, computed by the library.

    python -m bench.tables.outside [--tables adult] [--shared FOLDER] [--methods real,independent,marginals] [--epsilon 1]

Of categories a column shape is 1 less our total variation, to the last digit; of ranges it is 1 less the Kolmogorov-Smirnov distance of values. The library has an
environment of its own, made at the first run: it needs an earlier pandas than ours. Writes the section NAME-sdmetrics of bench/results/tables.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from bench.environments import interpreter_with
from bench.pages import keep
from bench.tables import metrics
from bench.tables.methods import METHODS, Ask
from bench.tables.report import ROOT
from bench.tables.sources import source
from bench.tables.tables import codes_of, read_table
from service.privacy.statements import default_delta

if TYPE_CHECKING:
    from bench.tables.tables import Table

PACKAGES = ["sdmetrics==0.32.0", "pyarrow"]
SCRIPT = Path(__file__).with_name("outside_sdmetrics.py")


def main() -> None:
    asked = _arguments()
    python = interpreter_with("sdmetrics", PACKAGES)
    if python is None:
        return
    for name in asked.tables.split(","):
        with tempfile.TemporaryDirectory() as folder:
            files = source(name, Path(folder), asked.shared)
            if files is None:
                print(f"{name}: SKIPPED, its data is not in {asked.shared}", flush=True)
                continue
            table = read_table(files.data, files.schema, None, files.test, None)
            lines = [_line(python, Path(folder), table, method, asked.epsilon) for method in asked.methods.split(",")]
        keep("tables", f"{_head(asked.epsilon)}\n" + "\n".join(lines) + "\n", f"{name}-sdmetrics")


def sdmetrics_scores(python: Path, folder: Path, table: Table, made: pl.DataFrame) -> dict[str, Any]:
    """What the library says of these rows."""
    fields = table.schema.fields
    columns = {field.name: {"sdtype": "categorical" if field.is_categorical else "numerical"} for field in fields}
    ask = {"columns": columns, "reply": str(folder / "reply.json")}
    for which, frame in (("real", table.train), ("made", made)):
        ask[which] = str(folder / f"{which}.parquet")
        _plain(frame, table).write_parquet(str(ask[which]))
    (folder / "request.json").write_text(json.dumps(ask))
    subprocess.run([python, "-I", SCRIPT, folder / "request.json"], check=True, timeout=1_800)
    found: dict[str, Any] = json.loads((folder / "reply.json").read_text())
    return found


def categories_apart(table: Table, made: pl.DataFrame) -> dict[str, float]:
    """Total variation of each column of categories."""
    real, own = codes_of(table.train, table.domain), codes_of(made, table.domain)
    return {
        column.name: metrics.total_variation(real[:, [place]], own[:, [place]], (column.size,), 1)
        for place, column in enumerate(table.domain.columns)
        if column.values is not None
    }


def _plain(frame: pl.DataFrame, table: Table) -> pl.DataFrame:
    """Texts and numbers, as the library takes them."""
    columns = [
        pl.col(field.name).cast(pl.String)
        if field.is_categorical
        else pl.col(field.name).to_physical().cast(pl.Float64)
        for field in table.schema.fields
    ]
    return frame.select(columns)


def _line(python: Path, folder: Path, table: Table, method: str, epsilon: float) -> str:
    made, _ = METHODS[method](Ask(table, epsilon, default_delta(len(table.train)) / 2, len(table.train), 1, {}))
    found, apart = sdmetrics_scores(python, folder, table, made), categories_apart(table, made)
    worst = max((abs(1.0 - found["columns"][name] - own) for name, own in apart.items()), default=0.0)
    real, own = codes_of(table.train, table.domain), codes_of(made, table.domain)
    ours = [metrics.total_variation(own, real, table.domain.widths, ways) for ways in (1, 2)]
    print(f"{table.name}, {method}: {found['Column Shapes']:.4f}, {found['Column Pair Trends']:.4f}", flush=True)
    return (
        f"| {method} | {found['Column Shapes']:.4f} | {found['Column Pair Trends']:.4f} | {ours[0]:.4f} | {ours[1]:.4f} | "
        f"{np.mean(list(apart.values())) if apart else 0.0:.4f} | {worst:.1e} |"
    )


def _head(epsilon: float) -> str:
    return (
        f"{platform.machine()}; ε = {epsilon:g} where a budget is read, one seed, as many synthetic rows as real ones. {PACKAGES[0]}, scores from 0 to 1; "
        "TV1 and TV2 are ours, smaller is better. The last column is the largest difference between 1 - TV of a column of categories and the library's score of it.\n\n"
        "| method | Column Shapes | Column Pair Trends | TV1 | TV2 | TV1 of categories | difference |\n|---|---|---|---|---|---|---|"
    )


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", default="adult")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data", help="where UCI's files are")
    parser.add_argument("--methods", default="real,independent,marginals")
    parser.add_argument("--epsilon", type=float, default=1.0)
    return parser.parse_args()


if __name__ == "__main__":
    main()
