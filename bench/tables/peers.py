"""Other people's methods. Each lives in a virtual environment that the bench makes; none is a dependency of ours.

A peer is one script (`peer_*.py` beside this file) that reads a request (JSON: cells and widths as .npy, ε, δ, seed, rows)
and writes codes. It sees the same public cells as the metrics, so that no method gains by binning.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from bench.environments import interpreter_with
from workers.encoding.table import ColumnDomain

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.tables.methods import Ask

HERE = Path(__file__).parent
MBI = ("mbi", ["mbi==2.0.0", "jax==0.10.2", "jaxlib==0.10.2"])
SMARTNOISE = (
    "smartnoise",
    ["smartnoise-synth==1.0.8", "torch==2.13.0", "packaging==26.3"],
)  # held where the project holds it


class DidNotRun(Exception):
    """A method gave no rows; says why, in the words of the program that refused."""


def peer(script: str, environment: tuple[str, list[str]], method: str) -> Callable[[Ask], tuple[pl.DataFrame, float]]:
    def make(ask: Ask) -> tuple[pl.DataFrame, float]:
        python = interpreter_with(*environment)
        if python is None:
            raise DidNotRun(f"did not run: {' '.join(environment[1])} cannot be installed here")
        with tempfile.TemporaryDirectory() as folder:
            request, codes, reply = (Path(folder) / name for name in ("request.json", "codes.npy", "rows.npy"))
            np.save(codes, ask.table.train_codes)
            document = {
                "method": method,
                "codes": str(codes),
                "reply": str(reply),
                "names": ask.table.domain.names,
                "widths": ask.table.domain.widths,
                "epsilon": ask.epsilon,
                "delta": ask.delta,
                "rows": ask.rows,
                "seed": ask.seed,
            }
            request.write_text(json.dumps(document))
            started = time.monotonic()
            done = subprocess.run(
                [python, HERE / script, request],
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            seconds = time.monotonic() - started
            if done.returncode != 0:
                last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
                raise DidNotRun(f"failed: {last[:200]}")
            # Some write their rows sorted, and the metrics look at the first n as a sample of all.
            codes_made = np.random.default_rng(ask.seed).permutation(np.load(reply))
            return decode(codes_made, ask.table.domain.columns), seconds

    return make


def decode(codes: np.ndarray, columns: tuple[ColumnDomain, ...]) -> pl.DataFrame:
    """One value of each cell: its category, or any one inside it, as ours are drawn."""
    found, inside = [], np.random.default_rng(0)
    for column, cells in zip(columns, codes.T, strict=True):
        if column.values is not None:
            values = [column.values[cell] for cell in cells]
        else:
            edges = np.asarray(column.edges)
            cell = np.minimum(cells, len(edges) - 2)
            drawn = edges[cell] + (edges[cell + 1] - edges[cell]) * inside.random(len(cells))
            drawn = np.minimum(drawn, np.nextafter(edges[cell + 1], -np.inf))  # rounding never leaves the cell
            whole = np.floor(drawn) if column.type != "number" else drawn
            values = [
                None if code == column.missing_code else value
                for code, value in zip(cells, whole.tolist(), strict=True)
            ]
            if column.type in {"date", "datetime"}:
                moments = np.array([0 if v is None else int(v) for v in values])
                there = moments.astype("datetime64[D]" if column.type == "date" else "datetime64[s]").tolist()
                values = [None if v is None else moment for v, moment in zip(values, there, strict=True)]
            elif column.type == "integer":
                values = [None if v is None else int(v) for v in values]
        found.append(pl.Series(column.name, values, strict=False))
    return pl.DataFrame(found)


PEERS = {
    "AIM": peer("peer_aim.py", MBI, "aim"),
    "AIM-GDP": peer("peer_aim.py", MBI, "aim-gdp"),
    "smartnoise AIM": peer("peer_smartnoise.py", SMARTNOISE, "aim"),
    "smartnoise MST": peer("peer_smartnoise.py", SMARTNOISE, "mst"),
    "smartnoise PATE-CTGAN": peer("peer_smartnoise.py", SMARTNOISE, "patectgan"),
    "smartnoise DP-CTGAN": peer("peer_smartnoise.py", SMARTNOISE, "dpctgan"),
}
