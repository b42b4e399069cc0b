"""Anonymeter (Giomi, Boenisch, Wehmeyer, Tasnádi 2023; Clear BSD licence) on Adult: an outside check beside the attacks of this folder.

Its risks are shares of attacks that succeed on rows that were used, over those on rows held out. They are no bounds of ε. It needs an
older numpy, so it runs in an environment of its own.
"""

from __future__ import annotations

import json
import platform
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import polars as pl

from bench.audit.bounds import scaled
from bench.audit.releases.making import ALMOST_NONE, DELTA, NoNoise
from bench.environments import interpreter_with
from bench.orders import budget_of_one_release
from bench.pages import keep
from bench.tables.sources import source
from bench.tables.tables import Table, encode, frame_of, read_table
from service.domain.grids import shape_of
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares
from service.samples.table.sampler import TableSampler
from workers.encoding.table import TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenTable
from workers.training import make_release

PACKAGES = ["anonymeter==1.1.0"]
SECTION = "anonymeter"
ROWS = 4_000
"""Of Adult, used, and as many held out."""
ATTACKS = 300
SECRET = "income"
NUMBER_COLUMNS = "| made by | risk | of attacks on used rows | on rows held out | random guesses | risk, 95 % |"


def run(shared: Path) -> bool:
    """Whether it ran; writes the section of the page."""
    python = interpreter_with("anonymeter", PACKAGES)
    with tempfile.TemporaryDirectory(prefix="imprimatur-bench-") as name:
        folder = Path(name)
        files = source("adult", folder, shared)
        if python is None or files is None:
            print("SKIPPED: needs Anonymeter and Adult", flush=True)
            return False
        table = read_table(files.data, files.schema, SECRET, None, None)
        used, held_out = table.train[:ROWS], table.test[:ROWS]
        used.write_csv(folder / "real.csv")
        held_out.write_csv(folder / "held_out.csv")
        made = {
            "marginals, ε = 1": lambda: synthetic(table, used, is_control=False),
            "marginals without noise": lambda: synthetic(table, used, is_control=True),
            "the used rows themselves": lambda: used,
        }
        head = (
            f"`python -m bench.audit --anonymeter SHARED`: Anonymeter {PACKAGES[0].split('==')[1]} on {ROWS:,} rows of Adult, "
            f"{len(held_out):,} held out, {ATTACKS} attacks of each kind ({platform.machine()}, one thread). How to read it: docs/audits.md."
        )
        lines = [
            head,
            "",
            NUMBER_COLUMNS,
            "|---|---|---:|---:|---:|---:|",
        ]
        for maker, rows in made.items():
            rows().write_csv(folder / "synthetic.csv")
            for kind, found in risks(python, folder).items():
                lines.append(line(maker, kind, found))
                print(lines[-1], flush=True)
    keep("audit", "\n".join(lines) + "\n", SECTION)
    return True


def risks(python: Path, folder: Path) -> dict[str, dict[str, Any]]:
    """What Anonymeter says of real.csv, synthetic.csv and held_out.csv of a folder."""
    script = Path(__file__).with_name("anonymeter_risks.py")
    files = [folder / f"{name}.csv" for name in ("real", "synthetic", "held_out")]
    command = [python, "-I", script, *files, SECRET, str(ATTACKS)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=1_800)
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


def synthetic(table: Table, rows: pl.DataFrame, *, is_control: bool, epsilon: float = 1.0) -> pl.DataFrame:
    """As many synthetic rows as there are real ones, drawn by the service's sampler; of a control, from a release without noise."""
    schema, budget = table.schema, budget_of_one_release(100.0, DELTA)
    facts = Facts(len(rows), budget, lambda numeric_bins: shape_of(schema, numeric_bins=numeric_bins))
    order = parse_order(
        {"method": "marginals", "epsilon": epsilon, "device": "cpu", "tree_precision_share": 0.0, "components": 256}
    )
    order = resolve_order(order, facts, Shares(NANO, NANO), schema)
    events = price_order(order, budget).events
    domain = TableDomain.from_schema(schema, numeric_bins=order.numeric_bins)  # type: ignore[attr-defined]
    kind, plan = (NoNoise, Plan(scaled(events, ALMOST_NONE))) if is_control else (SecureRandom, Plan(events))
    made = make_release(order, plan, GivenTable(encode(rows, domain), domain), kind.from_test_seed(0))
    files = made.files(schema=schema, certificate={}, order=order.model_dump(mode="json"))
    sampler = TableSampler.from_files(json.loads(files["config.json"]), files["generator.onnx"])
    columns: dict[str, list[Any]] = {name: [] for name in sampler.names}
    for chunk in sampler.chunks(len(rows), seed=0):
        for name, values in chunk.items():
            columns[name] += values
    return frame_of(columns, schema)


def line(maker: str, kind: str, found: dict[str, Any]) -> str:
    """One line of the table on the page."""
    if "failed" in found:
        return f"| {maker} | {kind} | | | | {found['failed']} |"
    low, high = found["interval"]
    return (
        f"| {maker} | {kind} | {found['attack']:.3f} | {found['control']:.3f} | {found['baseline']:.3f} "
        f"| {found['risk']:.3f} ({low:.3f} - {high:.3f}) |"
    )
