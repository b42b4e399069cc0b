"""One method, one ε, one seed, in a process of its own, so that its memory and its failures are its own."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from bench.tables import metrics
from bench.tables.methods import METHODS, Ask, DidNotRun
from bench.tables.subgroups import subgroup_scores
from bench.tables.tables import codes_of, read_table
from bench.tables.values import value_scores


@dataclass(frozen=True)
class Settings:
    """What all methods are given alike."""

    data: Path
    schema: Path
    test: Path | None
    target: str | None
    rows: int | None
    times: int
    delta: float


@dataclass(frozen=True)
class Run:
    """One method at one ε with one seed: what came out, or why nothing did."""

    method: str
    epsilon: float | None
    seed: int
    seconds: float
    megabytes: float
    metrics: dict[str, float] = field(default_factory=dict)
    why: str = ""
    cpu_seconds: float = 0.0
    """Of the method and its children, rows drawn; zero in files older than this figure."""


def in_a_process(
    settings: Settings, method: str, epsilon: float | None, seed: int, knobs: Mapping[str, Any], limit: float
) -> Run:
    """Never raises for what the method does; past `limit` seconds the process and its children are ended."""
    context = multiprocessing.get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(sending, settings, method, epsilon, seed, dict(knobs)))
    started = time.monotonic()
    process.start()
    sending.close()
    try:
        if receiving.poll(limit):
            run: Run = receiving.recv()
            process.join()
            return run
        why = f"ended at the limit of {limit:.0f} s"
    except EOFError:
        why = "its process died"
    if process.pid is not None:
        with suppress(ProcessLookupError):  # ended, or not yet the head of a group
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()
    return Run(method, epsilon, seed, time.monotonic() - started, 0.0, why=why)


def _run(
    sending: Connection, settings: Settings, method: str, epsilon: float | None, seed: int, knobs: dict[str, Any]
) -> None:
    os.setsid()  # so that the limit ends the method's own processes with it
    started = time.monotonic()
    try:
        sending.send(_made_and_scored(settings, method, epsilon, seed, knobs))
    except DidNotRun as error:
        sending.send(Run(method, epsilon, seed, time.monotonic() - started, 0.0, why=str(error)))


def _made_and_scored(settings: Settings, method: str, epsilon: float | None, seed: int, knobs: dict[str, Any]) -> Run:
    table = read_table(settings.data, settings.schema, settings.target, settings.test, settings.rows)
    rows = len(table.train) * settings.times
    before = _cpu_seconds()
    frame, seconds = METHODS[method](Ask(table, epsilon or 1.0, settings.delta, rows, seed, knobs))
    cpu_seconds = _cpu_seconds() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    synthetic, train, widths = codes_of(frame, table.domain), table.train_codes, table.domain.widths
    same = synthetic[: len(train)]  # distances of tables shrink with more rows: as many as there are real ones
    found = metrics.classifier_scores(synthetic, table)
    measured = {
        **{name: value for name, value in found.items() if "recall" not in name},
        **{f"TV{ways}": metrics.total_variation(same, train, widths, ways) for ways in (1, 2, 3)},
        **value_scores(frame, table),
        "TV2 of all rows": metrics.total_variation(synthetic, train, widths, 2),
        "correlation error": metrics.correlation_error(same, train),
        "rows breaking the schema": metrics.breaking_share(frame, table.schema),
        "neighbour ratio": metrics.nearest_neighbour_ratio(synthetic, table),
        **found,
        **subgroup_scores(synthetic, table),
    }
    return Run(method, epsilon, seed, seconds, peak / 1024, measured, cpu_seconds=cpu_seconds)


def _cpu_seconds() -> float:
    """Of this process and of its ended children; a machine shared with others makes `seconds` longer, not this."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system
