"""The service under load: Postgres (durable), the API and the clients on this one machine.

    python -m bench.load [--quick] [--seconds 30] [--clients 64] [--minutes 10] [--write]

  orders that fit        64 clients, one dataset, room for all of them
  orders that do not     the same dataset once its budget is spent
  budget reads           64 readers, while two clients upload tables
  mixed                  `--minutes`: orders, quotes, budgets, uploads, samples and nonsense; memory of the API over time

The clients run in a process of their own. Relay and worker stand still except in the mixed load: it is the API that is
measured. `--write` records the result in bench/results/load.md.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from bench.load.clients import SCHEMA, table
from bench.pages import keep
from bench.servers import machine
from imprimatur import Client
from service.local import EmbeddedStack

Found = dict[str, dict[str, Any]]
SMALL = {"method": "idpgan", "epsilon": 1e-4, "steps": 4}
TRAINED = {"method": "idpgan", "epsilon": 1.0, "steps": 4, "networks": {"generator_hidden": [8], "critic_hidden": [8], "noise_dimension": 4}}  # fmt: skip
WORKING = ("relay", "worker")

UNLIMITED = {"IMPRIMATUR_OPEN_ORDERS_PER_KEY": "10000000", "IMPRIMATUR_OPEN_ORDERS_PER_TENANT": "10000000"}
"""One key orders all there is to order, and nothing works it off."""


class Bench:
    def __init__(self, stack: EmbeddedStack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.client = Client(stack.url, stack.admin_key, timeout=120.0)
        self.api = psutil.Process(stack.pids["api"])

    def dataset(self, epsilon: float = 5.0) -> str:
        path = self.folder / "table.csv"
        path.write_bytes(table(2_000))
        return self.client.create_dataset(path, SCHEMA, epsilon=epsilon, name="load")["id"]

    def run(self, seconds: float, *clients: dict[str, Any], on_tick: Any = None) -> Found:
        plan = {
            "host": "127.0.0.1",
            "port": self.stack.port,
            "seconds": seconds,
            "clients": [{"key": self.stack.admin_key, **each} for each in clients],
        }
        child = subprocess.Popen(
            [sys.executable, "-m", "bench.load.clients"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        began = sum(self.api.cpu_times()[:2])
        assert child.stdin is not None
        child.stdin.write(json.dumps(plan))
        child.stdin.close()
        while on_tick is not None and child.poll() is None:
            on_tick()
            time.sleep(1.0)
        assert child.stdout is not None
        found: Found = json.loads(child.stdout.read())
        child.wait()
        requests = sum(count for each in found.values() for count in each["statuses"].values())
        for each in found.values():  # of all kinds together: a process does not know which of them it works for
            each["api_ms"] = 1e3 * (sum(self.api.cpu_times()[:2]) - began) / requests
        return found

    def still(self, *, resume: bool = False) -> None:
        """Stop relay and worker, or let them go on."""
        for name in WORKING:
            process = psutil.Process(self.stack.pids[name])
            for each in (process, *process.children(recursive=True)):
                each.resume() if resume else each.suspend()


def row(name: str, found: dict[str, Any]) -> str:
    statuses = ", ".join(f"{status}: {count:,}" for status, count in sorted(found["statuses"].items()))
    numbers = f"{found['per_second']:,.0f} | {found['p50_ms']:.0f} | {found['p99_ms']:.0f} | {found['api_ms']:.2f}"
    return f"| {name} | {numbers} | {statuses} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=10.0, help="of mixed load; 0 for none")
    parser.add_argument("--quick", action="store_true", help="five seconds, one round, half a minute of mixed load")
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    seconds, rounds = (5.0, 1) if options.quick else (options.seconds, options.rounds)
    minutes = min(0.5, options.minutes) if options.quick else options.minutes
    head = "| load | requests/s | p50 ms | p99 ms | API processor ms a request | replies |"
    lines = [f"{machine()}; {options.clients} clients.", "", head, "|---|---|---|---|---|---|"]
    with tempfile.TemporaryDirectory(prefix="imprimatur-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with EmbeddedStack(folder / "data", 0, on_part=print, extra_environment=UNLIMITED) as stack:
            bench = Bench(stack, folder)
            dataset, release = published(bench)  # before the queue is full of what the fixed loads order
            bench.still()
            for _ in range(rounds):
                lines += fixed_loads(bench, options.clients, seconds)
                print(*lines[-4:], sep="\n", flush=True)
            bench.still(resume=True)
            if minutes:
                lines += mixed_load(bench, minutes, dataset, release)
    text = "\n".join([*lines, "", LIMITS]) + "\n"
    print(text)
    if options.write:
        keep("load", text)


def fixed_loads(bench: Bench, clients: int, seconds: float) -> list[str]:
    open_, spent = bench.dataset(), bench.dataset()
    bench.client.create_release(spent, {"method": "idpgan", "epsilon": 5.0, "steps": 4})
    bench.client.quote(open_, SMALL)  # the first price of a process is not what is measured
    order = {"kind": "order", "order": SMALL, "count": clients}
    readers = {"kind": "budget", "dataset": spent, "count": clients}
    uploads = {"kind": "upload", "count": 2}
    reading = bench.run(seconds, readers, uploads)
    return [
        row("orders that fit", bench.run(seconds, {**order, "dataset": open_})["order"]),
        row("orders that do not", bench.run(seconds, {**order, "dataset": spent})["order"]),
        row("budget reads while uploads run", reading["budget"]),
        row("… and those uploads", reading["upload"]),
    ]


def published(bench: Bench) -> tuple[str, str]:
    """A dataset and a release of it that samples can be drawn from."""
    dataset = bench.dataset()
    release = bench.client.create_release(dataset, TRAINED)["id"]
    state = bench.client.wait(release, timeout=600.0)["state"]
    assert state == "published", state
    return dataset, release


def mixed_load(bench: Bench, minutes: float, dataset: str, release: str) -> list[str]:
    memory: list[tuple[float, float]] = []
    began = time.monotonic()

    def measure() -> None:
        memory.append((time.monotonic() - began, bench.api.memory_info().rss / 2**20))

    common = {"dataset": dataset, "release": release, "order": SMALL}
    counts = {"order": (16, 0.05), "quote": (8, 0.05), "budget": (16, 0.02), "upload": (1, 1.0), "sample": (4, 0.2), "error": (8, 0.05)}  # fmt: skip
    found = bench.run(
        60 * minutes,
        *({**common, "kind": kind, "count": count, "pause_seconds": pause} for kind, (count, pause) in counts.items()),
        on_tick=measure,
    )
    failed = sum(n for each in found.values() for status, n in each["statuses"].items() if not 200 <= int(status) < 500)
    marks = [memory[min(len(memory) - 1, round(len(memory) * part))] for part in (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)]
    flat = ", ".join(f"{rss:.0f} MiB at {at / 60:.1f} min" for at, rss in marks)
    return [
        *(row(f"mixed, {minutes:g} min: {kind}", each) for kind, each in found.items()),
        "",
        f"Mixed load: {failed} server errors or broken connections. Resident memory of the API: {flat}.",
    ]


LIMITS = """\
Goals: 400 orders/s admitted or refused, p99 < 250 ms; 1,000 budget reads/s while uploads run; no server errors and flat
memory. An order is three statements of the driver (whose key, what it stands on, one that decides and writes all down)
in one turn of one thread. The limit is the one core's worth of Python that an API process can use; the column of its
processor time says what a request takes of it. Orders that fit also take turns at the balance's row and at the disk
(see the bench of the ledger)."""

if __name__ == "__main__":
    main()
