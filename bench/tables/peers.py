"""Other people's methods. Each lives in a virtual environment that the bench makes; none is a dependency of ours.

A peer is one script (`peer_*.py` beside this file) that reads a request (JSON: cells and widths as .npy, ε, δ, seed, rows)
and writes codes. It sees the same public cells as the metrics, so that nobody gains by binning.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from workers.encoding.table import ColumnDomain

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.tables.methods import Ask

HERE = Path(__file__).parent
ENVIRONMENTS = HERE.parents[1] / ".bench-environments"
MOST_SECONDS = 3_600


def peer(script: str, requirement: str, method: str) -> Callable[[Ask], tuple[pl.DataFrame, float]]:
    def make(ask: Ask) -> tuple[pl.DataFrame, float]:
        python = _python_with(requirement)
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
            subprocess.run([python, HERE / script, request], check=True, timeout=MOST_SECONDS)
            seconds = time.monotonic() - started
            return decode(np.load(reply), ask.table.domain.columns), seconds

    return make


def decode(codes: np.ndarray, columns: tuple[ColumnDomain, ...]) -> pl.DataFrame:
    """One value of each cell: its category, or its lower edge. Metrics see cells, so the value within does not matter."""
    found = []
    for column, cells in zip(columns, codes.T, strict=True):
        if column.values is not None:
            values = [column.values[cell] for cell in cells]
        else:
            edges = column.edges or ()
            values = [None if cell == column.missing_code else edges[cell] for cell in cells]
            if column.type in {"date", "datetime"}:
                moments = np.array([0 if v is None else int(v) for v in values])
                values = list(moments.astype("datetime64[D]" if column.type == "date" else "datetime64[s]").tolist())
            elif column.type == "integer":
                values = [None if v is None else int(v) for v in values]
        found.append(pl.Series(column.name, values, strict=False))
    return pl.DataFrame(found)


def _python_with(requirement: str) -> Path:
    """The interpreter of the environment of one requirement; made on first use, by pip."""
    folder = ENVIRONMENTS / requirement.replace("=", "").replace(".", "_")
    python = folder / "bin" / "python"
    if not (folder / "ready").exists():
        print(f"making an environment for {requirement}", file=sys.stderr)
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", requirement], check=True)
        (folder / "ready").touch()
    return python


PEERS = {
    "dpmm aim": peer("peer_dpmm.py", "dpmm==0.1.9", "aim"),
    "dpmm mst": peer("peer_dpmm.py", "dpmm==0.1.9", "mst"),
}
