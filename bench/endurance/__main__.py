"""A day of mixed load in a short time, and a fault every minute: nothing lost, doubled or overspent, and memory flat.

    python -m bench.endurance [--requests 1000000] [--minutes 60] [--fault-seconds 60] [--clients 48] [--write]

It ends with the number of requests or with the time, whichever comes first. The faults come in turn: SIGKILL of the API,
the relay, the worker and Valkey, Postgres killed, and Postgres restarted as an operator does. Postgres flushes (`fsync`).
The load: looks at budgets and releases, listings, quotes, orders that are cancelled at once, repeated orders, samples and
nonsense; a few clients order releases that are trained, until their dataset's budget is spent; one uploads and erases.
Afterwards the queue is worked off and everything is counted (`checks.py`). `--write` records it in
bench/results/endurance.md. Exit status 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil

from bench.endurance.checks import DATABASE, Verdict, judge
from bench.endurance.clients import BUDGET, TRAINED
from bench.faults.stack import BrokenPromise, FaultyStack
from bench.load.clients import SCHEMA as LOAD_SCHEMA
from bench.load.clients import table
from bench.pages import keep
from bench.servers import machine

FAULTS = (
    *((part, signal.SIGKILL) for part in ("api", "relay", "worker", "redis", "postgres")),
    ("postgres", signal.SIGINT),
)
LEASE_SECONDS = 20.0
DRAIN_SECONDS = 600.0
DATASETS = 4


@dataclass
class Run:
    """What was seen while it ran."""

    record: dict[str, Any]
    faults: Counter[str]
    memory: list[tuple[int, int, float, float]] = field(default_factory=list)
    """Requests answered, the API's process, its age in seconds and its memory in MiB."""
    seconds: float = 0.0
    drain_seconds: float = 0.0
    verdict: Verdict = field(default_factory=Verdict)

    @property
    def answered(self) -> int:
        return sum(n for each in self.record["statuses"].values() for status, n in each.items() if int(status))

    @property
    def errors(self) -> int:
        """Answers that are the service's fault; 503 says what to do and is none."""
        statuses = ((int(s), n) for each in self.record["statuses"].values() for s, n in each.items())
        return sum(n for status, n in statuses if status >= 500 and status != 503)


def endure(folder: Path, requests: int, seconds: float, fault_seconds: float, clients: int) -> Run:
    with FaultyStack(folder, lease_seconds=LEASE_SECONDS, durable=True) as stack:
        plan = {
            "host": "127.0.0.1",
            "port": stack.port,
            "key": stack.admin_key,
            "requests": requests,
            "seconds": seconds,
            "clients": clients,
            "keepers": 2,
            **_prepare(stack, folder),
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "bench.endurance.clients"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        run, over = Run({}, Counter()), threading.Event()
        breaking = threading.Thread(target=_break, args=(stack, run.faults, fault_seconds, over))
        try:
            assert child.stdin is not None
            child.stdin.write(json.dumps(plan))
            child.stdin.close()
            began = time.monotonic()
            breaking.start()
            for line in _lines(child):
                if "statuses" in line:
                    run.record = line
                else:
                    _measure(stack, run, line["answered"])
            run.seconds = time.monotonic() - began
        finally:
            over.set()
            breaking.join()
            child.kill()
            child.wait()
        if not run.record:
            raise BrokenPromise("the clients ended without a record")
        run.drain_seconds = _drain(stack)
        run.verdict = judge(stack, run.record)
        return run


def _prepare(stack: FaultyStack, folder: Path) -> dict[str, Any]:
    """Datasets for everybody, and a release to draw samples from."""
    path = folder / "table.csv"
    with stack.client() as client:
        datasets = []
        for _ in range(DATASETS):
            path.write_bytes(table(300))
            datasets.append(client.create_dataset(path, LOAD_SCHEMA, epsilon=BUDGET, name="endurance")["id"])
        release = client.create_release(datasets[0], {**TRAINED, "epsilon": 1.0})["id"]
        if client.wait(release, timeout=300.0)["state"] != "published":
            raise BrokenPromise("the first release was not published")
    return {"datasets": datasets, "release": release}


def _lines(child: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert child.stdout is not None
    for line in child.stdout:
        yield json.loads(line)


def _break(stack: FaultyStack, faults: Counter[str], every_seconds: float, over: threading.Event) -> None:
    """The next fault, as long as the load runs."""
    for part, number in cycle(FAULTS):
        if over.wait(every_seconds):
            return
        with suppress(ProcessLookupError):
            os.kill(stack.pids[part], number)
            faults[f"{part} {number.name}"] += 1
            print(f"{number.name} of {part}", flush=True)


def _measure(stack: FaultyStack, run: Run, answered: int) -> None:
    with suppress(psutil.NoSuchProcess):
        api = psutil.Process(stack.pids["api"])
        rss = api.memory_info().rss / 2**20
        if rss:  # none is left of one that has just been killed
            run.memory.append((answered, api.pid, time.time() - api.create_time(), rss))
        if len(run.memory) % 30 == 0:
            print(f"{answered:,} requests, API {rss:.0f} MiB", flush=True)


def _drain(stack: FaultyStack) -> float:
    """Seconds until no release is open."""
    began = time.monotonic()
    stack.wait_until_ready()
    while time.monotonic() < began + DRAIN_SECONDS:
        with stack.postgres.connect(DATABASE) as connection:
            found = connection.execute(
                "SELECT count(*) FROM releases WHERE state IN ('reserved', 'charged')"
            ).fetchone()
        if found == (0,):
            stack.wait_until_idle()
            break
        time.sleep(1.0)
    return time.monotonic() - began


def page(run: Run, fault_seconds: float) -> str:
    every = 100_000 if run.answered > 200_000 else 10_000
    waits = sorted((int(step), count) for step, count in run.record["waits"].items())
    lines = [
        f"{machine()}; other work ran on the same machine. {run.answered:,} requests were answered in {run.seconds / 60:.1f} min"
        f" ({run.answered / run.seconds:,.0f}/s), with {sum(run.faults.values())} faults, one every {fault_seconds:g} s: "
        + ", ".join(f"{name} × {count}" for name, count in run.faults.items())
        + f". Then the queue was worked off in {run.drain_seconds:.0f} s.",
        "",
        f"Broken promises: {'; '.join(run.verdict.broken) or 'none'}. Answers of 500 and the like (not 503): {run.errors}.",
        f"Half of the answers took less than {10 * (_quantile(waits, 0.5) + 1)} ms, 99 % less than {10 * (_quantile(waits, 0.99) + 1)} ms.",
        "",
        ", ".join(f"{name}: {count:,}" for name, count in run.verdict.counts.items()) + ".",
        "",
        "| requests | replies (0: no answer, the connection broke) |",
        "|---|---|",
        *(f"| {kind} | {_counts(each)} |" for kind, each in run.record["statuses"].items()),
        "",
        f"Memory of the API, every {every:,} requests and before each of its ends (it is a new process after its fault):",
        "",
        "| requests so far | its age, s | MiB |",
        "|---|---|---|",
        *(f"| {answered:,} | {age:.0f} | {rss:.0f} |" for answered, _, age, rss in _marks(run.memory, every)),
    ]
    return "\n".join(lines)


def _counts(statuses: dict[str, int]) -> str:
    return ", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items()))


def _quantile(waits: list[tuple[int, int]], share: float) -> int:
    left = share * sum(count for _, count in waits)
    for step, count in waits:
        left -= count
        if left <= 0:
            return step
    return waits[-1][0]


def _marks(memory: list[tuple[int, int, float, float]], every: int) -> list[tuple[int, int, float, float]]:
    marks, following = [], 0
    for now, after in zip(memory, [*memory[1:], None], strict=True):
        if now[0] >= following or after is None or after[1] != now[1]:
            marks.append(now)
            following = max(following, (now[0] // every + 1) * every)
    return marks


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--fault-seconds", type=float, default=60.0)
    parser.add_argument("--clients", type=int, default=48)
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="imprimatur-endurance-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        run = endure(folder, options.requests, 60 * options.minutes, options.fault_seconds, options.clients)
    text = page(run, options.fault_seconds)
    print(text)
    if options.write:
        keep("endurance", text, "mixed load with faults")
    return 1 if run.verdict.broken or run.errors else 0


if __name__ == "__main__":
    sys.exit(main())
