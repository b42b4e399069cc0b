"""What each part of IDPGAN is worth on a table: variants of one order side by side, several seeds each, with intervals.

    python -m bench.ablation [--epsilon 1] [--seeds 5] [--steps 600] [--variants default,cold,...] [--resume] [--quick]
    python -m bench.ablation --device cuda --jobs 15 --steps 10000 --batch 4096
    python -m bench.ablation --data FILE.csv --schema FILE.json

A fifth of the *training* rows is held out to test on, so that what is seen here may choose defaults. Every variant goes the way of a real
order and costs the same (ε, δ). One thread a run; --jobs runs at once. Writes the section NAME-EPSILON-ROWSxSTEPS[-TAG] of
bench/results/ablation.md after every run, and bench/runs/ablation-….json, of which --resume keeps what today's has already.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from bench.pages import keep, run_file, today
from bench.tables.methods import STRATEGIES_OFF, Ask, ours
from bench.tables.metrics import classifier_scores, total_variation
from bench.tables.report import ROOT
from bench.tables.sources import Source, source
from bench.tables.tables import Table, codes_of, read_table

COLD: dict[str, Any] = {"warm_start": {"kind": "none"}}
EVERY = "critic_steps_per_generator_step"
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "default": ("the default: tables first", {}),
    "default off": ("tables first; no decay, thresholds, groups", STRATEGIES_OFF),
    "loose": ("tables first, not held on to afterwards", {"warm_start": {"kind": "tables", "hold": 0.0}}),
    "one step": ("tables first and a single private step", {"steps": 1}),
    "cold": ("from nothing", COLD),
    "cold unbounded": ("from nothing; no bound on the critic's weights", COLD | {"critic_weight_bound": None}),
    "cold off": ("from nothing; no decay, thresholds, groups", COLD | STRATEGIES_OFF),
    "cold no decay": ("from nothing; no decay", COLD | {"noise_decay": {"kind": "constant"}}),
    "cold no thresholds": ("from nothing; fixed thresholds", COLD | {"thresholds": {"kind": "fixed"}}),
    "cold no groups": ("from nothing; one group", COLD | {"clusters": {"kind": "none"}}),
    "cold pairs": ("from nothing; the critic sees 256 pair products", COLD | {"networks": {"pair_products": 256}}),
    **{
        f"{name} bound {bound}": (
            f"{words}; the critic's weights within {bound}",
            knobs | {"critic_weight_bound": bound},
        )
        for name, words, knobs in (("tables", "tables first", {}), ("cold", "from nothing", COLD))
        for bound in (0.05, 0.1, 0.2)
    },
    "cold adaptive steps": ("from nothing; adaptive critic steps", COLD | {"adaptive_critic_steps": {}}),
    **{
        f"{name} {steps}": (f"{words}; {steps} critic steps per generator step", knobs | {EVERY: steps})
        for name, words, knobs in (("tables", "tables first", {}), ("cold", "from nothing", COLD))
        for steps in (2, 5, 8)
    },
}
SHOWN = ("LR AUROC", "GB AUROC", "TV2", "TV1")


def main() -> None:
    asked = _arguments()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        files = Source(asked.data, asked.schema) if asked.data else source(asked.table, Path(folder), asked.shared)
        if files is None:
            print(f"{asked.table}: SKIPPED, its data is not in {asked.shared}")
            return
        table = read_table(files.data, files.schema, None, None, asked.rows)
    _run_all(asked, table)


def _run_all(asked: argparse.Namespace, table: Table) -> None:
    size, tag = f"{len(table.train)}x{asked.steps}", f"-{asked.tag}" if asked.tag else ""
    section = f"{asked.table}-{asked.epsilon:g}-{size}{tag}"
    earlier = run_file(f"ablation-{section}-{today()}.json")
    runs = json.loads(earlier.read_text())["runs"] if asked.resume and earlier.exists() else []
    done = {(run["variant"], run["seed"]) for run in runs}
    # Seeds outside, so that a run that is broken off has all variants.
    every = [(variant, seed) for seed in range(1, asked.seeds + 1) for variant in asked.variants.split(",")]
    for run in _ran(asked, table, [one for one in every if one not in done]):
        runs.append(run)
        print(json.dumps(run), flush=True)
        if not asked.quick:
            facts = {"table": asked.table, "date": today(), "epsilon": asked.epsilon, "rows": len(table.train)}
            facts |= {"steps": asked.steps, "batch": asked.batch, "times": asked.times, "delta": asked.delta}
            facts |= {"where": _where(asked), "runs": runs}
            earlier.write_text(json.dumps(facts, indent=1) + "\n")
            keep("ablation", markdown(facts), section)


def _ran(asked: argparse.Namespace, table: Table, wanted: list[tuple[str, int]]) -> Iterator[dict[str, Any]]:
    """Each run as it ends."""
    if asked.jobs == 1:
        yield from (_run(asked, table, *one) for one in wanted)
        return
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(asked.jobs, spawned, initializer=torch.set_num_threads, initargs=(1,)) as executor:
        for future in as_completed([executor.submit(_run, asked, table, *one) for one in wanted]):
            yield future.result()


def _where(asked: argparse.Namespace) -> str:
    if asked.device == "cuda":
        return f"{asked.jobs} runs at once on {torch.cuda.get_device_name()}"
    return f"One thread of {os.cpu_count()} cores ({platform.machine()})"


def _run(asked: argparse.Namespace, table: Table, variant: str, seed: int) -> dict[str, Any]:
    knobs: dict[str, Any] = {"steps": asked.steps, "device": asked.device, **VARIANTS[variant][1]}
    if asked.batch is not None:
        knobs["sampling_probability"] = asked.batch / len(table.train)
    clock = time.process_time if asked.device == "cpu" else time.perf_counter
    started = clock()
    ask = Ask(table, asked.epsilon, asked.delta, len(table.train) * asked.times, seed, knobs)
    frame, _ = ours("idpgan")(ask)
    seconds = clock() - started
    made, train, widths = codes_of(frame, table.domain), table.train_codes, table.domain.widths
    found = classifier_scores(made, table)
    metrics = {name: found[name] for name in ("LR AUROC", "GB AUROC") if name in found}
    metrics |= {f"TV{ways}": total_variation(made, train, widths, ways) for ways in (2, 1)}
    return {"variant": variant, "seed": seed, "seconds": round(seconds, 1), **metrics}


def markdown(facts: dict[str, Any]) -> str:
    """Means with half of 95 % intervals (Student's t over seeds)."""
    shown = [name for name in SHOWN if name in facts["runs"][0]]
    batch = f" --batch {facts['batch']}" if facts["batch"] else ""
    lines = [
        (
            f"`python -m bench.ablation --epsilon {facts['epsilon']:g} --rows {facts['rows']} --steps {facts['steps']}{batch}`; ε = {facts['epsilon']:g}, "
            f"δ = {facts['delta']:g} of one release; {facts['rows']} training rows, {facts['steps']} private steps unless said; "
            f"{facts['times']} synthetic row(s) for each training row; tested on a fifth of the training file that was held out. "
            f"{facts['where']}. Mean ± half the 95 % interval (t) over seeds."
        ),
        "",
        f"| variant | | seeds | {' | '.join(shown)} | seconds |",
        f"|---|---|---|{'---|' * len(shown)}---|",
    ]
    for variant, (words, _) in VARIANTS.items():
        runs = [run for run in facts["runs"] if run["variant"] == variant]
        if runs:
            cells = [_cell([run[name] for run in runs]) for name in shown]
            seconds = np.mean([run["seconds"] for run in runs])
            lines.append(f"| {variant} | {words} | {len(runs)} | {' | '.join(cells)} | {seconds:.0f} |")
    return "\n".join(lines) + "\n"


def _cell(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.4f} ± {half:.4f}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", default="adult")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data", help="where UCI's files are")
    parser.add_argument("--data", type=Path, help="a table of your own instead")
    parser.add_argument("--schema", type=Path)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=600, help="private steps, where the variant does not say")
    parser.add_argument("--rows", type=int, help="train on the first N rows only")
    parser.add_argument("--times", type=int, default=2, help="synthetic rows for each training row")
    parser.add_argument("--variants", default=",".join(VARIANTS), help=f"of {', '.join(VARIANTS)}")
    parser.add_argument("--batch", type=int, help="expected rows of a draw; default: the order's")
    parser.add_argument(
        "--device", choices=["cpu", "cuda"], default="cpu", help="seconds are the processor's, or the clock's on a GPU"
    )
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, each a process")
    parser.add_argument("--tag", default="", help="added to the name of the section")
    parser.add_argument("--resume", action="store_true", help="keep what today's file has")
    parser.add_argument("--quick", action="store_true", help="a small table, two variants, one seed; writes nothing")
    asked = parser.parse_args()
    if asked.data is not None:
        asked.table = asked.data.stem
    if asked.quick:
        asked.table, asked.seeds, asked.steps, asked.variants = "breast_cancer", 1, 5, "default,cold off"
    return asked


if __name__ == "__main__":
    main()
