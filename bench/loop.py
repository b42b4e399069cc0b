"""What a training costs beside its private steps, and what it costs when the table grows.

    python -m bench.loop [--quick] [--threads N]

Tables of 20 columns with 10 cells each are stored as an upload leaves them (canonical Parquet, encrypted), read and
encoded as the worker does it, and trained on (512 units a step expected, conditional on the first column), once from nothing and
once near tables that are measured first, as by default: then generator steps hold on to these. Per table: milliseconds of a
critic step by the clock and of the processor; of generator steps with their averages, and of checkpoints, by the processor, all
threads of the process together; their part of the critic steps' time by the order's defaults; seconds of reading; and the peak of
anonymous memory above what the libraries take (mapped codes are the kernel's to drop), seen every few milliseconds.
Test seeds: nothing made here may be published. About two minutes; --quick leaves the largest table out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from bench.pages import keep
from service.intake.sealed import SealedFile
from service.intake.table.canonical_file import RowUnits
from service.methods.idpgan.order import NEAR_TABLES, IdpganOrder
from service.methods.label_counts import LABEL_COUNTS
from service.methods.marginals.price import MARGINALS
from service.platform.crypto import encrypt, open_decrypted
from service.privacy.events import GaussianEvent, SampledStepEvent
from workers.encoding.table import ColumnDomain, EncodedTable, TableDomain, encode_table
from workers.hooks import CHECKPOINT_EVERY_STEPS
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.tables import TableIdpgan
from workers.plan import Plan

ROWS = (10_000, 1_000_000, 10_000_000)
COLUMNS, CELLS = 20, 10
DRAW = 512
GENERATOR_EVERY = 2
"""Critic steps between two timed generator steps; what these cost in a run follows from the order's own number."""
STARTS: dict[str, dict[str, Any]] = {
    "from nothing": {"kind": "none"},
    "near tables": {"kind": "tables", "pairs": "all", "generator_steps": 1, "critic_steps": 1},
}
KNOBS: dict[str, dict[str, Any]] = {"from nothing": {}, "near tables": NEAR_TABLES}
"""What a run that begins so has by default; steps are the bench's own."""
KEY = bytes(32)
VALUES = tuple(str(cell) for cell in range(CELLS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer steps, no ten million rows; writes no file")
    parser.add_argument("--rows", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--store", nargs=2, metavar=("FILE", "ROWS"), help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) - 1))
    arguments = parser.parse_args()
    if arguments.store:
        store(Path(arguments.store[0]), int(arguments.store[1]))
        return
    if arguments.rows:
        torch.set_num_threads(arguments.threads)
        print("\n".join(measure(arguments.rows, 40 if arguments.quick else 100)))
        return
    head = (
        f"`python -m bench.loop --threads {arguments.threads}`, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} at the start; medians, {COLUMNS} columns, {DRAW} units a step expected."
    )
    columns = (
        "| rows | begins | critic step, ms | of the processor | generator step, processor ms | checkpoint, processor ms | "
        "everything but critic steps / critic steps | reading, s | peak memory above libraries, MB |"
    )
    lines = [
        head,
        "",
        columns,
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for rows in ROWS[:2] if arguments.quick else ROWS:
        # In a process of its own: memory that a smaller table left behind would not grow again.
        again = [sys.executable, "-m", "bench.loop", *sys.argv[1:], "--rows", str(rows)]
        lines.append(subprocess.run(again, check=True, capture_output=True, text=True).stdout.rstrip())
    print("\n".join(lines))
    if not arguments.quick:
        keep("loop", "\n".join(lines))


def measure(rows: int, steps: int) -> list[str]:
    """Two lines of the table."""
    columns = (ColumnDomain(f"c{i}", "string", "categories", CELLS, VALUES, None, False) for i in range(COLUMNS))
    domain = TableDomain(tuple(columns))
    with tempfile.TemporaryDirectory(prefix="imprimatur-loop-") as folder:
        stored = Path(folder) / "rows"
        # In a process of its own: what it takes must not count as the libraries'.
        subprocess.run([sys.executable, "-m", "bench.loop", "--store", stored, str(rows)], check=True)
        warm_libraries()
        with peak_memory() as grown:
            started = time.monotonic()
            table = read(stored, rows, domain)
            reading = time.monotonic() - started
            lines = [train(table, domain, rows, steps, start) for start in STARTS]
    return [f"{line} {reading:.1f} | {grown[0] / 2**20:.0f} |" for line in lines]


def train(table: EncodedTable, domain: TableDomain, rows: int, steps: int, start: str) -> str:
    """The first cells of the line."""
    q = min(0.25, DRAW / rows)
    order = IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            **KNOBS[start],
            "sampling_probability": q,
            "steps": steps,
            "condition_on": domain.columns[0].name,
            "warm_start": STARTS[start],
        }
    )
    measurement = GaussianEvent(LABEL_COUNTS if start == "from nothing" else MARGINALS, 1.0)
    plan = Plan((measurement, SampledStepEvent(q, 1.0, 8.0, steps + 3)))
    method = TableIdpgan(order, plan, table, domain, SecureRandom.from_test_seed(1), torch.device("cpu"))
    method.measure()
    if method.tables is not None:
        # How near the networks begin changes no time, so the mixture is not fitted to its end.
        method.tables.order = method.tables.order.model_copy(update={"steps": 1})
    method.warm_up(lambda _share: None)
    for _ in range(3):
        method.critic_step()
        method.generator_step()
    critic, generator = [], []
    for step in range(steps):
        critic.append(timed(method.critic_step))
        if step % GENERATOR_EVERY == 0:
            generator.append(timed(method.generator_step))
    saved = timed(lambda: method.checkpoint().to_bytes())
    clock, processor = (statistics.median(times[kind] for times in critic) for kind in range(2))
    follows = statistics.median(times[1] for times in generator)
    share = (follows / order.critic_steps_per_generator_step + saved[1] / CHECKPOINT_EVERY_STEPS) / processor
    return f"| {rows:,} | {start} | {clock:.2f} | {processor:.2f} | {follows:.2f} | {saved[1]:.2f} | {share:.0%} |"


def store(path: Path, rows: int) -> None:
    """Random rows as an upload leaves them: canonical Parquet, encrypted."""
    generator = np.random.default_rng(rows)
    canonical = SealedFile.create(path.parent)
    writer = RowUnits(canonical)
    kind = pl.Enum(VALUES)
    for start in range(0, rows, 131_072):
        codes = generator.integers(CELLS, size=(COLUMNS, min(131_072, rows - start)), dtype=np.uint8)
        columns = [pl.Series(f"c{i}", VALUES, dtype=kind).gather(column) for i, column in enumerate(codes)]
        writer.add(pl.DataFrame(columns), None)
    writer.finish()
    with path.open("wb") as file:
        file.writelines(encrypt(canonical.pieces(), KEY))
    canonical.close()


def read(path: Path, rows: int, domain: TableDomain) -> EncodedTable:
    """The table, read as the worker reads it."""
    with path.open("rb") as file:

        def read_range(start: int, stop: int) -> bytes:
            file.seek(start)
            return file.read(stop - start)

        return encode_table(open_decrypted(read_range, path.stat().st_size, KEY), domain, units=rows)


def warm_libraries() -> None:
    """Libraries take what they take at their first use."""
    pl.DataFrame({"a": ["x", "y"]}).write_parquet(tempfile.TemporaryFile())  # noqa: SIM115
    layer = torch.nn.Linear(4, 4)
    layer(torch.randn(2, 4)).sum().backward()


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """A list whose one entry ends as the largest growth of anonymous memory seen inside."""
    before, done, largest = anonymous_memory(), threading.Event(), [0]

    def watch() -> None:
        while not done.wait(0.005):
            largest[0] = max(largest[0], anonymous_memory() - before)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield largest
    finally:
        done.set()
        thread.join()


def timed(act: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds by the clock and of the processor."""
    clock, processor = time.perf_counter(), time.process_time()
    act()
    return 1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - processor)


def anonymous_memory() -> int:
    """Bytes of this process that belong to no file."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
