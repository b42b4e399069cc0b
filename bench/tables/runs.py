"""One method, one ε, one seed, in a process of its own, so that its memory is its own."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from dataclasses import dataclass
from typing import Any

from bench.tables import metrics
from bench.tables.methods import METHODS, Ask
from bench.tables.tables import codes_of, read_table


@dataclass(frozen=True)
class Run:
    """One method at one ε with one seed: what was asked, what came out."""

    method: str
    epsilon: float | None
    seed: int
    metrics: dict[str, float]
    seconds: float
    megabytes: float


def in_a_process(arguments: argparse.Namespace, method: str, epsilon: float | None, seed: int) -> Run:
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sending, arguments, method, epsilon, seed))
    process.start()
    sending.close()
    try:
        run: Run = receiving.recv()
    except EOFError:
        raise SystemExit(f"{method} at ε = {epsilon} failed; see above") from None
    process.join()
    return run


def _run(sending: Any, arguments: argparse.Namespace, method: str, epsilon: float | None, seed: int) -> None:
    table = read_table(arguments.data, arguments.schema, arguments.target, arguments.test, arguments.rows)
    knobs = json.loads(arguments.knobs) if method in {"marginals", "idpgan"} else {}
    rows = len(table.train) * arguments.times
    ask = Ask(table, epsilon or 1.0, arguments.delta, rows, seed, knobs)
    frame, seconds = METHODS[method](ask)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    started = time.monotonic()
    synthetic, train, widths = codes_of(frame, table.domain), table.train_codes, table.domain.widths
    same = synthetic[: len(train)]  # distances of tables shrink with more rows: as many as there are real ones
    found = metrics.classifier_scores(synthetic, table)
    heads = {name: value for name, value in found.items() if "recall" not in name}
    measured = {
        **heads,
        **{f"TV{ways}": metrics.total_variation(same, train, widths, ways) for ways in (1, 2, 3)},
        "correlation error": metrics.correlation_error(same, train),
        "rows breaking the schema": metrics.breaking_share(frame, table.schema),
        "neighbour ratio": metrics.nearest_neighbour_ratio(synthetic, table),
        **found,
    }
    print(f"scored in {time.monotonic() - started:.0f} s", flush=True)
    sending.send(Run(method, epsilon, seed, measured, seconds, peak / 1024))
