"""How fast one API process streams samples, and what other requests notice of it; beside it SDV's sampling.

    python -m bench.sample [--rows 10000000] [--runs 3] [--method idpgan] [--quick]

A whole service on this machine; a generator of the default size is trained for a few steps on a table like Adult (fifteen
columns; how well it is trained changes no time), or a mixture is fitted (`--method marginals`), whose rows are balanced.
A client takes samples over loopback, as fast as it can and throws them away. Measured: rows a second by format, time to
the first byte, memory of the API process along a long sample, the time of budget reads alone and while two samples
stream, and how soon the API rests when both clients hang up.
Beside it, interleaved: SDV's Gaussian copula, fitted to the same rows, sampling and writing CSV in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import psutil

from bench.environments import interpreter_with
from bench.ingest import MiB, machine
from bench.ingest_tables import ADULT
from bench.pages import keep
from imprimatur import Client
from service.local import EmbeddedStack
from service.samples.formats import formats_of

FORMATS = formats_of("rows")
SDV = ["torch==2.13.0", "sdv==2.0.0"]
TRAINING_ROWS = 20_000
ORDERS: dict[str, dict[str, int]] = {"idpgan": {"steps": 20}, "marginals": {}}
SDV_SHARE = 20
"""SDV is asked for this many times fewer rows, so that the bench ends sooner."""
BUDGET_READS = 300


@dataclass
class Speed:
    """Runs of one way: rows a second, processor time a row of the process that draws, and its peak memory."""

    rows_per_second: list[float] = field(default_factory=list)
    cpu_microseconds: list[float] = field(default_factory=list)
    peak_mib: float = 0.0

    def line(self, name: str) -> str:
        speeds = self.rows_per_second
        span = f"{min(speeds):,.0f} - {max(speeds):,.0f}"
        cpu = statistics.median(self.cpu_microseconds)
        return f"| {name} | {statistics.median(speeds):,.0f} | {span} | {cpu:.2f} | {self.peak_mib:,.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the long sample; the others are a tenth")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--method", choices=list(ORDERS), default="idpgan")
    parser.add_argument("--quick", action="store_true", help="300,000 rows, one run, no file of results")
    arguments = parser.parse_args()
    rows, runs = (300_000, 1) if arguments.quick else (arguments.rows, arguments.runs)
    sdv = interpreter_with("sdv", SDV)
    with tempfile.TemporaryDirectory(prefix="imprimatur-bench-") as name:
        folder = Path(name)
        table = ADULT.write(folder, TRAINING_ROWS, parquet=False)
        with EmbeddedStack(folder / "service", 0) as stack:
            text = report(Service(stack, table, arguments.method), table, sdv, rows, runs)
    print(text)
    if not arguments.quick:
        keep("sample", text, arguments.method)


class Service:
    """A running service with one published release."""

    def __init__(self, stack: EmbeddedStack, table: Path, method: str) -> None:
        self.method = method
        self.process = psutil.Process(stack.pids["api"])
        self.http = httpx.Client(
            base_url=stack.url, headers={"Authorization": f"Bearer {stack.admin_key}"}, timeout=120, trust_env=False
        )
        with Client(stack.url, stack.admin_key) as client:
            self.dataset = client.create_dataset(table, ADULT.schema, epsilon=10.0)["id"]
            order = {"method": method, "epsilon": 5, "condition_on": "income"} | ORDERS[method]
            self.release = client.create_release(self.dataset, order)["id"]
            client.wait(self.release)

    def sample(self, rows: int, sample_format: str, speed: Speed) -> None:
        """Take a whole sample and throw it away."""
        began, cpu_began = time.perf_counter(), self.cpu_seconds
        for number, _ in enumerate(self.pieces(rows, sample_format)):
            if number % 200 == 0:
                speed.peak_mib = max(speed.peak_mib, self.memory_mib)
        speed.rows_per_second.append(rows / (time.perf_counter() - began))
        speed.cpu_microseconds.append((self.cpu_seconds - cpu_began) / rows * 1e6)

    def pieces(self, rows: int, sample_format: str = "csv") -> Iterator[bytes]:
        path = f"/v1/releases/{self.release}/sample"
        with self.http.stream("GET", path, params={"rows": rows, "format": sample_format}) as reply:
            reply.raise_for_status()
            yield from reply.iter_raw()

    def first_byte_seconds(self, sample_format: str) -> float:
        began = time.perf_counter()
        path = f"/v1/releases/{self.release}/sample"
        with self.http.stream("GET", path, params={"rows": 10**6, "format": sample_format}) as reply:
            next(reply.iter_raw())
            return time.perf_counter() - began

    def budget_read_seconds(self) -> list[float]:
        """One after the other, sorted."""
        times = []
        for _ in range(BUDGET_READS):
            began = time.perf_counter()
            self.http.get(f"/v1/datasets/{self.dataset}/budget").raise_for_status()
            times.append(time.perf_counter() - began)
        return sorted(times)

    @property
    def memory_mib(self) -> float:
        return float(self.process.memory_info().rss / MiB)

    @property
    def cpu_seconds(self) -> float:
        return float(sum(self.process.cpu_times()[:2]))

    @contextmanager
    def two_samples(self) -> Iterator[None]:
        """Two clients take endless samples; they hang up at the end of the block."""
        over = threading.Event()

        def take() -> None:
            for _ in self.pieces(10**8):
                if over.is_set():
                    return

        threads = [threading.Thread(target=take) for _ in range(2)]
        for thread in threads:
            thread.start()
        time.sleep(1.0)
        yield
        over.set()
        for thread in threads:
            thread.join()

    def seconds_until_rest(self) -> float:
        """Until the API has used less than a twentieth of a core for a tenth of a second."""
        began = time.perf_counter()
        while time.perf_counter() - began < 10:
            used = self.cpu_seconds
            time.sleep(0.1)
            if self.cpu_seconds - used <= 0.01:
                return time.perf_counter() - began - 0.1
        return float("inf")


def report(service: Service, table: Path, sdv: Path | None, rows: int, runs: int) -> str:
    """Measure everything; a page of results."""
    cold = service.first_byte_seconds("csv")
    before = service.memory_mib
    ways = {name: Speed() for name in FORMATS}
    others = Speed()
    for _ in range(runs):
        for name, speed in ways.items():
            service.sample(rows // 10, name, speed)
            print(name, f"{speed.rows_per_second[-1]:,.0f} rows/s", flush=True)
        if sdv is not None:
            _sample_with_sdv(sdv, table, max(1_000, rows // 10 // SDV_SHARE), others)
    long = Speed()
    service.sample(rows, "csv", long)
    print("long", f"{long.rows_per_second[-1]:,.0f} rows/s", flush=True)
    first = {name: statistics.median(service.first_byte_seconds(name) for _ in range(20)) for name in FORMATS}
    alone = service.budget_read_seconds()
    with service.two_samples():
        beside = service.budget_read_seconds()
    rest = service.seconds_until_rest()
    lines = [
        f"`python -m bench.sample --rows {rows} --runs {runs} --method {service.method}`; {machine()}. Fifteen columns, one API process, loopback.",
        "",
        "| way | rows/s, median | from - to | CPU µs a row | peak MiB |",
        "|---|---|---|---|---|",
        *(speed.line(f"{name}, {rows // 10:,} rows") for name, speed in ways.items()),
        long.line(f"csv, {rows:,} rows"),
    ]
    lines.append(
        others.line("SDV Gaussian copula, CSV") if others.rows_per_second else "| SDV Gaussian copula | skipped | | | |"
    )
    times = ", ".join(f"{name} {1e3 * seconds:.0f}" for name, seconds in first.items())
    lines += [
        "",
        f"- API process before the first long sample: {before:,.0f} MiB.",
        f"- First byte, ms, median of 20: {times}; the first sample after a start, which loads the libraries: {1e3 * cold:.0f}.",
        f"- Budget reads, ms, of {BUDGET_READS}: alone {_percentiles(alone)}; while two samples stream {_percentiles(beside)}.",
        f"- Both clients hang up: the API rests after {rest:.1f} s.",
    ]
    return "\n".join(lines) + "\n"


def _percentiles(times: list[float]) -> str:
    middle, late = times[len(times) // 2], times[int(0.99 * len(times))]
    return f"median {1e3 * middle:.1f}, p99 {1e3 * late:.1f}"


def _sample_with_sdv(python: Path, table: Path, rows: int, speed: Speed) -> None:
    script = Path(__file__).with_name("sample_sdv.py")
    found = subprocess.run([python, "-I", script, table, str(rows)], check=True, capture_output=True, text=True)
    answer = json.loads(found.stdout.splitlines()[-1])
    speed.rows_per_second.append(answer["rows"] / answer["seconds"])
    speed.cpu_microseconds.append(answer["cpu_seconds"] / answer["rows"] * 1e6)
    speed.peak_mib = max(speed.peak_mib, answer["memory_bytes"] / MiB)
    print("SDV", f"{speed.rows_per_second[-1]:,.0f} rows/s", flush=True)


if __name__ == "__main__":
    main()
