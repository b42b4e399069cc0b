"""A wide table through `method: marginals`: 100 columns and 1,000,000 rows by default. Seconds and peak memory of each part.

    python -m bench.wide [--rows 1000000] [--columns 100] [--epsilon 1] [--pairs auto|all|few_or_all|chosen] [--steps 800] [--components 2048]
                         [--device cpu|cuda] [--quick]

Rows are made up: columns hang on each other in a chain, so that 99 pairs depend on each other strongly and others ever less.
Writes the section cpu or cuda of bench/results/wide.md, with the part of the chain that was found (for `chosen`) and the error of its pairs.
"""

from __future__ import annotations

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from bench.orders import resolve_order
from bench.pages import keep
from bench.tables.made_up import chain_codes, chain_widths
from service.domain.grids import shape_of
from service.domain.table_schema import TableSchema
from service.methods.marginals.order import MarginalsOrder
from service.methods.pricing import price_order
from service.privacy.filters import open_budget
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.method import Marginals
from workers.plan import Plan

ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--pairs", default="auto", choices=["auto", "all", "few_or_all", "chosen"])
    parser.add_argument("--steps", type=int, default=800, help="of the fit, at most; as an order has it")
    parser.add_argument("--components", type=int, default=2_048, help="at most; as an order has it")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--quick", action="store_true", help="50,000 rows, 30 columns, 50 steps")
    asked = parser.parse_args()
    if asked.quick:
        asked.rows, asked.columns, asked.steps = 50_000, 30, 50

    widths = chain_widths(asked.columns)
    fields = [
        {"name": f"c{i}", "type": "integer", "constraints": {"minimum": 0, "maximum": w - 1, "required": True}}
        for i, w in enumerate(widths)
    ]
    schema = TableSchema.model_validate({"fields": fields})
    domain = TableDomain.from_schema(schema, numeric_bins=32)
    document = {"method": "marginals", "epsilon": asked.epsilon, "pairs": asked.pairs}
    order = MarginalsOrder.model_validate({**document, "steps": asked.steps, "components": asked.components})
    budget = open_budget(asked.epsilon, 2e-5)
    resolved = resolve_order(order, units=asked.rows, shape=shape_of(schema, numeric_bins=32), budget=budget)
    assert isinstance(resolved, MarginalsOrder)
    price = price_order(resolved, budget)
    lines = []

    def note(what: str, started: float) -> None:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        lines.append(f"| {what} | {time.monotonic() - started:.1f} | {peak:.0f} |")
        print(lines[-1], flush=True)

    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        codes = make_codes(Path(folder) / "codes", asked.rows, widths)
        note("made the rows (not part of the method), in a mapped file", started)
        table = EncodedTable(codes, asked.rows, None, 1)
        method = Marginals(resolved, Plan(price.events), table, domain, SecureRandom(), torch.device(asked.device))
        started = time.monotonic()
        method.measure()
        note(f"measured {len(method.measured)} tables (`pairs: {resolved.pairs}`)", started)
        started = time.monotonic()
        generator = method.fit(lambda _step: None)
        note(f"fitted, at most {asked.steps} steps, {method.components} components", started)
        measured_pairs = {m.columns for m in method.measured if len(m.columns) == 2}
        chain = [(i, i + 1) for i in range(asked.columns - 1)]
        found = sum(pair in measured_pairs for pair in chain)
        error = np.mean([pair_error(generator.logits, codes, widths, pair) for pair in chain[:20]])
    facts = [
        f"{found} of the {len(chain)} strongest pairs are among the {len(measured_pairs)} measured; TV of the fitted from the real",
        f"tables of the first 20 of them: {error:.4f}.",
    ]
    gpu = f", fitted on {torch.cuda.get_device_name()}" if asked.device == "cuda" else ""
    head = [
        f"{asked.rows:,} rows, {asked.columns} columns, ε = {asked.epsilon:g}, {os.cpu_count()} cores{gpu}; `python -m bench.wide`.",
        "",
        "| part | seconds | peak MB so far |",
        "|---|---|---|",
    ]
    print("\n".join(facts))
    if not asked.quick:
        keep("wide", "\n".join([*head, *lines, "", *facts]), asked.device)


def make_codes(file: Path, rows: int, widths: list[int]) -> np.ndarray:
    rng = np.random.default_rng(0)
    codes = np.memmap(file, dtype=np.uint16, mode="w+", shape=(rows, len(widths)))
    for start in range(0, rows, 50_000):
        block = min(50_000, rows - start)
        codes[start : start + block] = chain_codes(rng, block, widths)
    return codes


def pair_error(logits: torch.Tensor, codes: np.ndarray, widths: list[int], pair: tuple[int, int]) -> float:
    i, j = pair
    parts = torch.split(logits, widths, dim=1)
    fitted = (parts[i].softmax(dim=1).T @ parts[j].softmax(dim=1)).numpy() / len(logits)
    places = codes[:, i].astype(np.int64) * widths[j] + codes[:, j]
    real = np.bincount(places, minlength=widths[i] * widths[j]).reshape(widths[i], widths[j]) / len(codes)
    return float(0.5 * np.abs(fitted - real).sum())


if __name__ == "__main__":
    main()
