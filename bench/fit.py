"""A step of fitting a mixture to noisy tables, beside the two matrix products that it cannot do without.

    python -m bench.fit [--components 2048] [--steps 50] [--repeats 5] [--device cpu|cuda] [--quick]

On the CPU the processor's time of one thread; on a GPU the clock's, whatever the processor waits for included.

Tables are made up: columns of 2 to 32 cells as in `bench.wide`, of one value of a condition, all pairs, grouped and not. Both are
measured in turn, and the least of all repeats counts. Writes the section cpu or cuda of bench/results/fit.md.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from bench.pages import keep
from bench.tables.made_up import chain_widths
from workers.methods.marginals.fit.mixture_fit import MixtureFit, NoisyTables
from workers.numerics.workspace import keep_freed_memory

ROOT = Path(__file__).parents[1]
CASES = {"15 columns": (15, 32), "15 columns, groups": (15, 8), "70 columns": (70, 32), "70 columns, groups": (70, 8)}
"""Columns, and the most groups of one in two-way tables."""

ROWS = 20_000.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--components", type=int, default=2_048)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--quick", action="store_true", help="few components and steps; writes nothing")
    asked = parser.parse_args()
    if asked.quick:
        asked.components, asked.steps, asked.repeats = 64, 5, 1
    device = torch.device(asked.device)
    torch.set_num_threads(1)
    keep_freed_memory()  # as a training does
    lines = [
        "| tables | cells, as pairs group them | a step, ms | its two products, ms | ratio |",
        "|---|---|---|---|---|",
    ]
    for name, (columns, groups) in CASES.items():
        tables = make_tables(columns, groups)
        wide, grouped = sum(tables.widths), len(tables.two_way_precision)
        step, products = least_times(tables, asked.components, asked.steps, asked.repeats, device)
        ratio = f"{step / products:.2f}"
        lines.append(f"| {name} | {wide:,}, {grouped:,} | {1e3 * step:.2f} | {1e3 * products:.2f} | {ratio} |")
        print(lines[-1], flush=True)
    on_gpu = device.type == "cuda"
    where = torch.cuda.get_device_name() if on_gpu else f"processor time of one thread ({platform.machine()})"
    head = [
        f"`python -m bench.fit{' --device cuda' if on_gpu else ''}`; {asked.components:,} components, {asked.steps} steps, the least of {asked.repeats} repeats, {where}.",
        "",
    ]
    if not asked.quick:
        keep("fit", "\n".join([*head, *lines]), device.type)


def make_tables(columns: int, groups: int) -> NoisyTables:
    """Independent columns without noise: a step costs the same whatever the counts are."""
    widths = chain_widths(columns)
    shares = torch.cat([torch.full((width,), 1.0 / width) for width in widths])
    grouped = [torch.arange(width) * min(groups, width) // width for width in widths]
    sizes = [int(group.max()) + 1 for group in grouped]
    of_groups = torch.cat([torch.bincount(group).float() / width for group, width in zip(grouped, widths, strict=True)])
    column = torch.arange(columns).repeat_interleave(torch.tensor(sizes))
    return NoisyTables(
        one_way=ROWS * shares[None],
        one_way_precision=torch.ones(sum(widths)),
        two_way=ROWS * torch.outer(of_groups, of_groups)[None],
        two_way_precision=(column[:, None] != column).float(),
        totals=torch.tensor([ROWS]),
        widths=tuple(widths),
        groups=tuple(grouped),
    )


def least_times(
    tables: NoisyTables, components: int, steps: int, repeats: int, device: torch.device
) -> tuple[float, float]:
    """Seconds of a step, and of the products of all cells' shares with each other and with a residual."""
    groups = len(tables.two_way_precision)
    shares, residual = torch.rand(groups, components, device=device), torch.rand(groups, groups, device=device)

    def products() -> tuple[Tensor, Tensor]:
        return torch.addmm(residual, shares, shares.T), residual @ shares

    step_times, product_times = [], []
    for repeat in range(repeats):
        fit = MixtureFit(
            tables,
            components=components,
            steps=steps,
            learning_rate=0.2,
            randomness=torch.Generator().manual_seed(repeat),
            device=device,
        )
        step_times.append(_seconds(partial(fit.run, lambda _step: None), device) / steps)
        product_times.append(_seconds(lambda: [products() for _ in range(steps)], device) / steps)
    return min(step_times), min(product_times)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    if device.type == "cpu":
        started = time.process_time()
        work()
        return time.process_time() - started
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
