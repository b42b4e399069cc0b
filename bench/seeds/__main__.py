"""All generators of the documents that the project began from, at the same small size (docs/results/seeds.md).

    python -m bench.seeds [--data adult,mnist] [--seeds 1] [--epsilons 1,4,10] [--methods dpgm,...] [--page] [--quick]

Adult: classifiers trained on synthetic rows and tested on its test file. MNIST at 14×14: a small network trained on synthetic images and
tested on real ones. Every method at every ε, and in its non-private form. Each run is a line of bench/runs/seeds.jsonl; a run whose order
is there already is left out, so that a stopped bench goes on, also with more seeds. At the end, or with --page alone, the sections of
bench/results/seeds.md are written. Quick: tiny orders, one ε; writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.image_data import DATA, Digits, load
from bench.pages import keep, run_file
from bench.seeds.methods import METHODS, REFERENCES, SIZES, SMALLEST, Sizes, order_of
from bench.seeds.report import markdown
from bench.seeds.runs import Made, judge_of, made_images, made_rows
from bench.tables.sources import source
from bench.tables.tables import read_table

Cell = tuple[str, float | None, int]
"""Method, ε (none: without noise), seed."""
Runner = Callable[[dict[str, Any] | str, float | None, int], Made]

LONGEST = ("idpgan", "rdpcgan", "dpacgan")
"""A quarter of a processor's minute or more for a run: after all others."""


def main() -> None:
    asked = _arguments()
    torch.set_num_threads(1)
    for data in asked.data:
        if not asked.page:
            run_all(data, asked)
        if not asked.quick:
            hardware = f"{platform.machine()}, {os.cpu_count()} cores"
            keep("seeds", markdown(data, SIZES[data], stored(), hardware), data)


def run_all(data: str, asked: argparse.Namespace) -> None:
    sizes = (SMALLEST if asked.quick else SIZES)[data]
    done = [] if asked.quick else [_named(run) for run in stored()]
    run_one: Runner | None = None
    for name, epsilon, seed in cells(data, asked):
        order = None if name in REFERENCES[data] else order_of(data, name, sizes, smallest=asked.quick)
        if (data, name, epsilon, seed, [order, asdict(sizes)]) in done:
            continue
        run_one = run_one or runner(data, sizes, asked.shared)
        made = run_one(order or name, epsilon, seed)
        run = {"data": data, "method": name, "epsilon": epsilon, "seed": seed, **asdict(made)}
        run["order"] = [order, asdict(sizes)]
        print(data, name, epsilon, seed, json.dumps(made.scores), f"{made.cpu_seconds:.1f} s", flush=True)
        if not asked.quick:
            with run_file("seeds.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(run) + "\n")


def cells(data: str, asked: argparse.Namespace) -> Iterator[Cell]:
    """Short methods at every ε, then long ones, then the next seed: what a stopped bench has can be compared."""
    yield from ((name, None, 1) for name in REFERENCES[data])
    names = [name for name in METHODS[data] if asked.methods is None or name in asked.methods]
    for seed in range(1, asked.seeds + 1):
        for wanted in ([name for name in names if name not in LONGEST], [name for name in names if name in LONGEST]):
            for epsilon in (*asked.epsilons[:2], None, *asked.epsilons[2:]):
                yield from ((name, epsilon, seed) for name in wanted)


def stored() -> list[dict[str, Any]]:
    """The newest run of each cell; of an order that has changed since, that one alone."""
    kept = run_file("seeds.jsonl")
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    runs = [json.loads(line) for line in lines]
    orders = {(run["data"], run["method"]): run["order"] for run in runs}
    newest = {_named(run)[:4]: run for run in runs if run["order"] == orders[run["data"], run["method"]]}
    return list(newest.values())


def _named(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["data"], run["method"], run["epsilon"], run["seed"], run["order"]


def runner(data: str, sizes: Sizes, shared: Path) -> Runner:
    """Real records are read once."""
    if data == "mnist":
        whole = load(shared / "mnist", 14)
        chosen = np.random.default_rng(0).permutation(len(whole.train))[: sizes.train]
        digits = Digits(whole.train[chosen], whole.labels[chosen], whole.test, whole.test_labels)
        judge = judge_of(digits, sizes)
        return lambda order, epsilon, seed: made_images(order, epsilon, digits, judge, sizes.made, seed)
    with tempfile.TemporaryDirectory() as folder:
        files = source(data, Path(folder), shared)
        if files is None:
            raise SystemExit(f"{data} is not in {shared}")
        table = read_table(files.data, files.schema, None, files.test, sizes.train)
    return lambda order, epsilon, seed: made_rows(order, epsilon, table, sizes.made, seed)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=lambda text: text.split(","), default=list(METHODS))
    parser.add_argument("--shared", type=Path, default=DATA, help="folder with a folder of files per data set")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--epsilons", type=lambda text: [float(each) for each in text.split(",")], default=[10.0, 1.0, 4.0]
    )
    parser.add_argument("--methods", type=lambda text: text.split(";"), help="names with ; between; default: all")
    parser.add_argument("--page", action="store_true", help="run nothing: write the page of what was run")
    parser.add_argument("--quick", action="store_true")
    asked = parser.parse_args()
    if asked.quick:
        asked.seeds, asked.epsilons = 1, [4.0]
    return asked


if __name__ == "__main__":
    main()
