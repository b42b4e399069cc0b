"""What a training costs beside its private steps, and what it costs when the table grows.

    python -m bench.loop [--quick] [--threads N]

Tables of 20 columns with 10 cells each are made as encoded codes in a scratch file, as `encode_table` leaves them, and
trained on as the worker does (512 units a step expected). Per table: milliseconds of a critic step by the clock and of
the processor, the share of generator steps, averages and checkpoints, and the peak of anonymous memory above what the
libraries take (mapped codes are the kernel's to drop). Test seeds: nothing made here may be published.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from service.privacy.events import SampledStepEvent
from service.privacy.orders import IdpganOrder
from workers.encoding.table import ColumnDomain, EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.methods.table_idpgan import TableIdpgan
from workers.plan import Plan
from workers.training import CHECKPOINT_EVERY_STEPS

RESULTS = Path(__file__).parent / "results"
ROWS = (10_000, 1_000_000, 10_000_000)
COLUMNS, CELLS = 20, 10
DRAW = 512


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a fifth of the steps; writes no file")
    parser.add_argument("--threads", type=int, default=max(1, (os.cpu_count() or 1) - 1))
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    head = (
        f"`python -m bench.loop --threads {arguments.threads}`, {dt.datetime.now(dt.UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"load {os.getloadavg()[0]:.1f} at the start; medians, {COLUMNS} columns, {DRAW} units a step expected."
    )
    columns = (
        "| rows | critic step, ms | of the processor | generator step, processor ms | checkpoint, processor ms | "
        "everything but critic steps / critic steps | memory above libraries, MB |"
    )
    lines = [
        "# The training loop on tables of three sizes",
        "",
        head,
        "",
        columns,
        "|---|---|---|---|---|---|---|",
    ]
    lines += [measure(rows, 40 if arguments.quick else 200) for rows in ROWS]
    print("\n".join(lines))
    if not arguments.quick:
        (RESULTS / f"loop-{dt.datetime.now(dt.UTC):%Y-%m-%d}.md").write_text("\n".join(lines) + "\n")


def measure(rows: int, steps: int) -> str:
    """One line of the table."""
    values = tuple(str(cell) for cell in range(CELLS))
    columns = (ColumnDomain(f"c{i}", "string", "categories", CELLS, values, None, False) for i in range(COLUMNS))
    domain = TableDomain(tuple(columns))
    before = anonymous_memory()
    table = EncodedTable(make_codes(rows), rows, None, 1)
    q = min(0.25, DRAW / rows)
    order = IdpganOrder.model_validate({"method": "idpgan", "epsilon": 1.0, "sampling_probability": q, "steps": steps})
    plan = Plan((SampledStepEvent(q, 1.0, 8.0, steps + 3),))
    method = TableIdpgan(order, plan, table, domain, SecureRandom.from_test_seed(1), torch.device("cpu"))
    for _ in range(3):
        method.critic_step()
        method.generator_step()
    critic, generator = [], []
    for step in range(steps):
        critic.append(timed(method.critic_step))
        if step % order.critic_steps_per_generator_step == 0:
            generator.append(timed(method.generator_step))
    saved = timed(lambda: method.checkpoint().to_bytes())
    grown = (anonymous_memory() - before) / 2**20
    clock, processor = (statistics.median(times[kind] for times in critic) for kind in range(2))
    follows = statistics.median(times[1] for times in generator)
    share = (follows / order.critic_steps_per_generator_step + saved[1] / CHECKPOINT_EVERY_STEPS) / processor
    return f"| {rows:,} | {clock:.2f} | {processor:.2f} | {follows:.2f} | {saved[1]:.2f} | {share:.0%} | {grown:.0f} |"


def make_codes(rows: int) -> np.ndarray:
    """Random codes (rows, COLUMNS) in a mapped file without a name."""
    generator = np.random.default_rng(rows)
    with tempfile.TemporaryFile() as file:
        os.posix_fallocate(file.fileno(), 0, rows * COLUMNS)
        codes = np.memmap(file, dtype=np.uint8, mode="r+", shape=(rows, COLUMNS))
    for start in range(0, rows, 1_000_000):
        part = codes[start : start + 1_000_000]
        part[:] = generator.integers(CELLS, size=part.shape, dtype=np.uint8)
    return codes


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
