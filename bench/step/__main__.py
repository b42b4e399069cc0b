"""What a private step costs: interleaved runs, medians, and ratios to the same step without privacy.

    python -m bench.step [--device cpu|cuda] [--quick] [--threads N]

Perceptron 120-256-256-1, batches 64, 256, 1024; noise and Adam included. One round runs every variant once, so that
whatever else the machine does falls on all of them. Time is the clock's; on the CPU the processor's own time is given
beside it, which a busy machine moves less. Opacus is not in the table: it refuses this critic (hooks and functorch:
IndexError; expanded weights: RuntimeError; ghost clipping: NotImplementedError), because it cannot differentiate twice.
On a GPU nothing has been measured yet.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import statistics
import time
from pathlib import Path

import torch

from bench.step.steps import Step, all_steps, make_batch
from workers.mechanism import CriticBatch

RESULTS = Path(__file__).parent.parent / "results"
BATCHES = (64, 256, 1024)
SLOW = "vmap(grad)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds; writes no file")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    rounds = 20 if arguments.quick else 200
    head = (
        f"`python -m bench.step --device {device.type}`, {dt.datetime.now(dt.UTC):%Y-%m-%d}, {os.cpu_count()} cores, "
        f"{arguments.threads} threads, {platform.machine()}, torch {torch.__version__}; load {os.getloadavg()[0]:.1f} at "
        f"the start; medians of {rounds} interleaved rounds, quartiles in brackets."
    )
    lines = [
        "# A private step beside the same step without privacy",
        "",
        head,
        "",
        "| batch | step | ms | / by hand | / autograd | processor ms | / by hand | / autograd |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for size in BATCHES:
        lines += measure(size, device, rounds)
    print("\n".join(lines))
    if not arguments.quick:
        (RESULTS / f"step-{device.type}-{dt.datetime.now(dt.UTC):%Y-%m-%d}.md").write_text("\n".join(lines) + "\n")


def measure(size: int, device: torch.device, rounds: int) -> list[str]:
    """Table lines of one batch size."""
    batch, steps = make_batch(size, device), all_steps(device)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for round_ in range(rounds + 3):
        for name, step in steps.items():
            if name == SLOW and round_ % 10 != 3:
                continue  # a tenth of the rounds tells a factor of ten
            elapsed = timed(step, batch, device)
            if round_ >= 3:
                seen[name].append(elapsed)
    names = list(steps)
    lines = []
    for name, times in seen.items():
        cells = []
        for kind in range(2):
            own = sorted(both[kind] for both in times)
            floors = [statistics.median(both[kind] for both in seen[other]) for other in names[:2]]
            median = statistics.median(own)
            cells.append(f"{median:.2f} ({own[len(own) // 4]:.2f}–{own[3 * len(own) // 4]:.2f})")
            cells += [f"{median / floor:.2f}" for floor in floors]
        lines.append(f"| {size} | {name} | {' | '.join(cells)} |")
    return lines


def timed(step: Step, batch: CriticBatch, device: torch.device) -> tuple[float, float]:
    """Milliseconds by the clock and of the processor."""
    if device.type == "cuda":
        torch.cuda.synchronize()
    clock, processor = time.perf_counter(), time.process_time()
    step(batch)
    if device.type == "cuda":
        torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - clock), 1e3 * (time.process_time() - processor)


if __name__ == "__main__":
    main()
