"""What exact noise costs: discrete Gaussians beside the normals of float64 that they replace, in turn, one thread.

    python -m bench.noise [--shared FOLDER] [--repeats 15] [--quick]

Measuring Adult's tables by the default order at ε = 1 and 10; the noise of a critic of 97,000 numbers; a whole private step of a
perceptron. Processor time, the least of all repeats of each. Rounded normals are what counts had until 2026-11-27, when a
loop in C made the normals; torch makes them now, which takes longer, so ratios are smaller than those of that day. Writes
bench/results/noise.md.
"""

from __future__ import annotations

import argparse
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from bench.orders import resolve_order
from bench.pages import keep
from bench.step import steps
from bench.step.steps import AUTOGRAD, PRIVATE, Setting, private_step
from bench.tables.sources import MAKERS
from bench.tables.tables import encode, read_table
from service.domain.grids import shape_of
from service.methods.marginals.order import MarginalsOrder
from service.methods.pricing import price_order
from service.privacy.filters import open_budget
from workers.encoding.table import TableDomain
from workers.mechanism import PrivateSum
from workers.mechanism.noise import allocate, release
from workers.mechanism.secure_random import SecureRandom
from workers.methods.marginals.measure import releases
from workers.methods.marginals.method import Marginals
from workers.plan import Plan

ROOT = Path(__file__).parents[1]
NUMBERS = 97_000


def rounded_normals(
    private: PrivateSum, *, noise_stds: Sequence[float], randomness: SecureRandom, **_: Any
) -> tuple[Tensor, ...]:
    """Counts as they were released before: normals of float64, rounded."""
    return tuple(
        value.long() + (std * randomness.normals(*value.shape)).add_(0.5).floor_().long()
        for value, std in zip(private.values, noise_stds, strict=True)
    )


def float_normals(private: PrivateSum, *, noise_multiplier: float, randomness: SecureRandom) -> tuple[Tensor, ...]:
    """Sums as they were released before."""
    sizes = [sum(private.values[tensor].numel() for tensor in group) for group in private.groups]
    stds = allocate(private.sensitivities, sizes, noise_multiplier=noise_multiplier, allocation="least_noise")
    std_of = {tensor: std for group, std in zip(private.groups, stds, strict=True) for tensor in group}
    counts = [value.numel() for value in private.values]
    noise = torch.split(randomness.normals(sum(counts)), counts)
    return tuple(
        torch.add(value.double(), own.view(value.shape), alpha=std_of[index])
        for index, (own, value) in enumerate(zip(noise, private.values, strict=True))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--quick", action="store_true", help="two repeats; writes nothing")
    asked = parser.parse_args()
    if asked.quick:
        asked.repeats = 2
    torch.set_num_threads(1)
    lines = ["| what | exact, ms | normals of float64, ms | ratio |", "|---|---|---|---|"]
    for what, exact, rounded in [*noise_cases(), *step_cases(), *adult_cases(asked.shared)]:
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(asked.repeats):
            for call, spent in zip((exact, rounded), times, strict=True):
                started = time.process_time()
                call()
                spent.append(time.process_time() - started)
        least = [min(spent) * 1e3 for spent in times]
        lines.append(f"| {what} | {least[0]:.2f} | {least[1]:.2f} | {least[0] / least[1]:.2f} |")
        print(lines[-1], flush=True)
    head = [
        f"`python -m bench.noise`; processor time of one thread ({platform.machine()}), the least of {asked.repeats} repeats in turn.",
        "",
    ]
    if not asked.quick:
        keep("noise", "\n".join([*head, *lines]))


Case = tuple[str, Callable[[], object], Callable[[], object]]


def noise_cases() -> Iterator[Case]:
    randomness = SecureRandom()
    sums = PrivateSum((torch.randn(NUMBERS, dtype=torch.float64),), ((0,),), (1.0,))
    yield (
        f"noise of a sum of {NUMBERS:,} numbers",
        lambda: release(sums, noise_multiplier=1.0, randomness=randomness),
        lambda: float_normals(sums, noise_multiplier=1.0, randomness=randomness),
    )


def step_cases() -> Iterator[Case]:
    device = torch.device("cpu")
    for rows in (256, 1_024):
        setting = Setting("perceptron", (rows,), 1, 1, (AUTOGRAD, PRIVATE))
        batch, step = (
            setting.make_batch(rows, device),
            private_step(setting.make_critic(device), vmap=False, noise=True),
        )
        step(batch)

        def before(own: Callable[..., None] = step, some: Any = batch) -> None:
            with replaced(steps, "release", float_normals):
                own(some)

        yield f"a private step of a perceptron, {rows:,} rows", lambda own=step, some=batch: own(some), before


def adult_cases(shared: Path) -> Iterator[Case]:
    with tempfile.TemporaryDirectory() as folder:
        source = MAKERS["adult"]("adult", Path(folder), shared)
        if source is None:
            print("no Adult there")
            return
        table = read_table(source.data, source.schema, None, None, None)
    for epsilon in (1.0, 10.0):
        budget = open_budget(epsilon, 2e-6)
        shape = shape_of(table.schema, numeric_bins=32)
        order = MarginalsOrder(method="marginals", epsilon=epsilon)
        resolved = resolve_order(order, units=len(table.train), shape=shape, budget=budget)
        assert isinstance(resolved, MarginalsOrder)
        events = price_order(resolved, budget).events
        domain = TableDomain.from_schema(table.schema, numeric_bins=resolved.numeric_bins)
        encoded = encode(table.train, domain, with_places=resolved.counts_values)

        def measure(order: Any = resolved, events: Any = events, domain: Any = domain, encoded: Any = encoded) -> None:
            Marginals(order, Plan(events), encoded, domain, SecureRandom(), torch.device("cpu")).measure()

        def before(own: Callable[[], None] = measure) -> None:
            with replaced(releases, "release_counts", rounded_normals):
                own()

        yield f"measuring Adult's tables, ε = {epsilon:g}", measure, before


@contextmanager
def replaced(module: Any, name: str, function: Callable[..., Any]) -> Iterator[None]:
    real = getattr(module, name)
    setattr(module, name, function)
    try:
        yield
    finally:
        setattr(module, name, real)


if __name__ == "__main__":
    main()
