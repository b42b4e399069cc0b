"""What a private step costs: interleaved runs, medians, and ratios to the same step without privacy; and its memory.

    python -m bench.step [--device cpu|cuda] [--quick] [--threads N] [--critic perceptron|convolutions]

Perceptron 120-256-256-1, batches 64, 256, 1024; convolutions 64-128-256 on 28x28, batches 64, 256, 512; noise and Adam
included. One round runs every variant once, so that whatever else the machine does falls on all of them. Time is the
clock's; on the CPU the processor's own time is given beside it, which a busy machine moves less. Memory is the peak above
what the process holds before its first step, each in a process of its own, with the critic and Adam's state inside.
Opacus is asked for the same step in every mode it has. About five minutes; --quick under one. With --critic only that one, and
without Opacus.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time

import torch

from bench.pages import keep
from bench.step.memory import SETTINGS, memory_lines
from bench.step.opacus import opacus_lines
from bench.step.steps import VMAP, WITH_LOOPS, Setting, Step
from workers.mechanism import CriticBatch
from workers.numerics.kernels import kernels
from workers.numerics.workspace import keep_freed_memory


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds, two batches; writes no file")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--critic", choices=sorted(SETTINGS))
    arguments = parser.parse_args()
    settings = [SETTINGS[arguments.critic]] if arguments.critic else list(SETTINGS.values())
    compiled = "with" if kernels(torch.device(arguments.device)) is not None else "without"
    torch.set_num_threads(arguments.threads)
    keep_freed_memory()  # as a training does
    device = torch.device(arguments.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    head = (
        f"`python -m bench.step --device {device.type}`, {os.cpu_count()} cores, "
        f"{arguments.threads} threads, {name}, torch {torch.__version__}, {compiled} compiled loops; load {os.getloadavg()[0]:.1f} at "
        f"the start; medians of interleaved rounds, quartiles in brackets."
    )
    lines: list[str] = []

    def say(*more: str) -> None:
        lines.extend(more)
        print("\n".join(more), flush=True)

    say(head, "")
    for setting in settings:
        rounds = max(3, setting.rounds // 10) if arguments.quick else setting.rounds
        say(
            f"{setting.name}, {rounds} rounds:",
            "",
            "| batch | step | ms | / by hand | / autograd | processor ms | / by hand | / autograd |",
            "|---|---|---|---|---|---|---|---|",
        )
        for size in setting.batches[1:2] if arguments.quick else setting.batches:
            say(*measure(setting, size, device, quick=arguments.quick))
        say("")
    say(*memory_lines(settings, device, quick=arguments.quick))
    if not arguments.critic:
        say("", *opacus_lines())
    if not arguments.quick:
        only = f"-{arguments.critic}-{arguments.threads}" if arguments.critic else ""
        keep("step", "\n".join(lines), f"{device.type}{only}")


def measure(setting: Setting, size: int, device: torch.device, *, quick: bool) -> list[str]:
    """Table lines of one batch size."""
    batch = setting.make_batch(size, device)
    kinds = [kind for kind in setting.kinds if kind != WITH_LOOPS or device.type == "cpu"]
    steps = {kind: setting.make_step(kind, device) for kind in kinds}
    rounds, warm = (max(3, setting.rounds // 10), 1) if quick else (setting.rounds, 3)
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in steps}
    for round_ in range(rounds + warm):
        for name, step in steps.items():
            if name == VMAP and (round_ - warm) % setting.slow_every:
                continue  # a few rounds tell a factor of ten
            elapsed = timed(step, batch, device)
            if round_ >= warm:
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
