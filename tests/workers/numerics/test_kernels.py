"""The compiled loops against torch's operations, and what a machine without a compiler does."""

from __future__ import annotations

import logging
import math
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import wait
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.without_kernels import without_kernels
from workers.mechanism import FLOAT32_CANCELLATION, CriticBatch, CriticLoss, Perceptron
from workers.mechanism.clipping import SHRINK, SMALLEST_FACTOR, clip_weights
from workers.mechanism.compiled_products import LIMITS, CompiledGradients, compiled_gradients
from workers.mechanism.outer_products import outer_product_gradients
from workers.numerics import kernels as module
from workers.numerics.block_sums import block_sum_rounding
from workers.numerics.compiling import DEEPEST, HANDED_OVER, ROWS_AT_ONCE, SharedLibrary
from workers.numerics.kernels import (
    ClippingRule,
    Kernels,
    Rows,
    _compiled,
    compile_kernels,
    kernels,
)
from workers.numerics.workspace import Workspace

CPU = torch.device("cpu")
SIZES = [(1, 1), (7, 17), (16, 6, 33), (120, 64, 65), (33, 40, 12, 7)]
"""Inputs and hidden layers: below, at and beyond the tiles of the loops."""
PAIRED, SEPARATE = (CriticLoss(paired=paired, gradient_penalty=10.0) for paired in (True, False))


@cache
def narrow_kernels() -> Kernels | None:
    """Compiled once for all tests: a second each."""
    return compile_kernels("-mno-avx512f")


@pytest.fixture(params=["widest registers", "AVX2"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Kernels:
    found = kernels(CPU) if request.param == "widest registers" else narrow_kernels()
    if found is None:
        pytest.skip("no compiler here that makes these")
    monkeypatch.setattr(module, "_compiled", lambda: found)
    return found


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_critic(sizes: tuple[int, ...]) -> Perceptron:
    pairs = list(pairwise(sizes))
    weights = [numbers(out, into, seed=into) / math.sqrt(into) for into, out in pairs]
    return Perceptron([*weights, numbers(1, sizes[-1], seed=5)], [numbers(out, seed=6) for _, out in pairs], 0.2)


def make_batch(width: int, units: int, rows_per_unit: int = 1) -> CriticBatch:
    rows = units * rows_per_unit
    return CriticBatch(
        real=numbers(rows, width, seed=1),
        fake=numbers(rows, width, seed=2),
        mix=torch.rand(rows, 1, generator=torch.Generator().manual_seed(3)),
        present=torch.ones(rows, dtype=torch.bool),
        rows_per_unit=rows_per_unit,
    )


def loops(critic: Perceptron, batch: CriticBatch, loss: CriticLoss = PAIRED) -> CompiledGradients:
    found = compiled_gradients(critic, batch, loss)
    assert found is not None
    return found


def flat(parts: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([part.double().flatten() for part in parts])


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_a_machine_with_a_compiler_has_them() -> None:
    assert kernels(CPU) is not None
    assert kernels(CPU, torch.float64) is None


@pytest.mark.parametrize("size", [0, 1, 31, 32, 1_000])
def test_lengths_of_rows(compiled: Kernels, size: int) -> None:
    rows = 1e15 * numbers(5, size)
    torch.testing.assert_close(compiled.squared_lengths(rows), rows.double().square().sum(dim=1), rtol=1e-14, atol=0.0)
    with pytest.raises(ValueError, match="float32"):
        compiled.squared_lengths(rows.double())


@pytest.mark.parametrize(("rank", "height", "width"), [(1, 1, 1), (3, 8, 255), (4, 256, 257), (27, 33, 700)])
def test_norms_by_gram_matrices(compiled: Kernels, rank: int, height: int, width: int) -> None:
    left, right = numbers(9, rank, height, seed=1), 1e15 * numbers(9, rank, width, seed=2)
    left[1, 0, 0], right[2, -1, -1], left[3] = math.inf, math.nan, 0.0
    squared, lengths = compiled.gram_norms(left, right, Workspace())
    truth = (left.double().mT @ right.double()).square().sum(dim=(1, 2))
    known = truth.isfinite()
    assert torch.equal(known, torch.tensor([True, False, False] + 6 * [True]))
    scale = (left.double().square().sum(dim=(1, 2)) * right.double().square().sum(dim=(1, 2)))[known]
    assert bool(((squared - truth)[known].abs() <= 1e-13 * scale).all())
    wanted = torch.stack([part.double().square().sum(dim=2).flatten() for part in (left, right)])
    torch.testing.assert_close(lengths.flatten(1), wanted, rtol=1e-14, atol=0.0, equal_nan=True)
    alone, _ = compiled.gram_norms(left[5:6], right[5:6], Workspace())
    assert torch.equal(alone, squared[5:6]), "other units change a unit's norm"
    with pytest.raises(ValueError, match="rows of both"):
        compiled.gram_norms(left, right[:8], Workspace())


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("together", [1, 4, 100])
@pytest.mark.parametrize(("rank", "height", "width"), [(1, 1, 1), (3, 13, 255), (27, 24, 600)])
def test_sums_of_products(compiled: Kernels, rank: int, height: int, width: int, together: int, threads: int) -> None:
    left, right, scale = numbers(9, rank, height, seed=1), numbers(9, rank, width, seed=2), numbers(9, seed=3)
    scale[4] = 0.0
    totals = numbers(height, width, seed=4).double()
    wanted = totals + torch.einsum("u,urh,urw->hw", scale.double(), left.double(), right.double())
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        compiled.add_products(left, right, scale, totals, together=together, workspace=Workspace())
    finally:
        torch.set_num_threads(before)
    largest = torch.einsum("u,urh,urw->hw", scale.abs(), left.abs(), right.abs()).double()
    terms = rank * min(together, 9) + 2
    assert bool(((totals - wanted).abs() <= terms * torch.finfo(torch.float32).eps * largest + 1e-15).all())
    with pytest.raises(ValueError, match="scale"):
        compiled.add_products(left, right, scale[:8], totals, together=together, workspace=Workspace())


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("loss", [PAIRED, SEPARATE], ids=["paired", "separate"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize(("units", "rows_per_unit"), [(1, 1), (33, 1), (700, 1), (5, 3), (40, 5), (2, ROWS_AT_ONCE)])
def test_norms_and_sums_are_those_of_torchs_operations(
    units: int, rows_per_unit: int, sizes: tuple[int, ...], loss: CriticLoss
) -> None:
    critic, batch = make_critic(sizes), make_batch(sizes[0], units, rows_per_unit)
    batch.present[::4] = False
    fast, slow = loops(critic, batch, loss), outer_product_gradients(critic, batch, loss)
    assert torch.equal(fast.contributes, slow.contributes)
    counted = slow.contributes
    torch.testing.assert_close(fast.tensor_norms[counted], slow.tensor_norms[counted], rtol=1e-5, atol=1e-5)
    weights = torch.rand(units, 2 * len(sizes) - 1, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    wanted = flat(slow.weighted_sum(weights))
    assert float((flat(fast.weighted_sum(weights)) - wanted).norm()) <= 3e-6 * float(wanted.norm())


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("clip_norms", [(0.3, 0.05), (1e6, 1e-3), (0.0, 1.0)])
def test_clipping_on_the_way_is_clipping_by_weights(clip_norms: tuple[float, float]) -> None:
    critic, batch = make_critic((20, 16, 9)), make_batch(20, 100)
    batch.real[3], batch.fake[4, 0], batch.present[5] = math.nan, math.inf, False
    gradients, group_of = loops(critic, batch), (0, 1, 0, 1, 0)
    together = torch.full((sum(part.numel() for part in (*critic.weights, *critic.biases)),), 2.0, dtype=torch.float64)
    gradients.add_clipped(
        together, group_of=group_of, clip_norms=[c * SHRINK for c in clip_norms], smallest_factor=SMALLEST_FACTOR
    )
    assert gradients.contributes.tolist() == [i not in {3, 4, 5} for i in range(100)]
    groups = [[m for m in range(5) if group_of[m] == k] for k in range(2)]
    weights = clip_weights(gradients.tensor_norms, gradients.contributes, groups=groups, clip_norms=clip_norms)
    wanted = flat(gradients.weighted_sum(weights))
    torch.testing.assert_close(together - 2.0, wanted, rtol=1e-9, atol=1e-9 * float(wanted.abs().max()))


@pytest.mark.usefixtures("compiled")
def test_who_does_not_count_leaves_not_a_bit_behind() -> None:
    critic, batch = make_critic((20, 16, 9)), make_batch(20, 100)
    ones = torch.ones(100, 5, dtype=torch.float64)
    batch.present[7] = False
    without = flat(loops(critic, batch).weighted_sum(ones))
    for real, fake in ((math.nan, 0.0), (0.0, math.inf), (1e30, -1e30)):
        spoilt = replace(batch, real=batch.real.clone(), fake=batch.fake.clone())
        spoilt.real[7], spoilt.fake[7] = real, fake
        assert torch.equal(flat(loops(critic, spoilt).weighted_sum(ones)), without)
        spoilt.present[7] = True  # it is there, and its gradient is not finite, or too long
        gradients = loops(critic, spoilt)
        assert gradients.contributes.tolist() == [i != 7 for i in range(100)]
        assert torch.equal(flat(gradients.weighted_sum(ones)), without)


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_move_a_sum_by_its_bound_on_rounding_at_most(threads: int) -> None:
    critic, batch = make_critic((20, 16, 9)), make_batch(20, 300)
    before = torch.get_num_threads()
    sums, norms = [], []
    try:
        for count in (1, threads):
            torch.set_num_threads(count)
            gradients = loops(critic, batch)
            norms.append(gradients.tensor_norms)
            sums.append(gradients.weighted_sum(1.0 / norms[0].clamp(min=1e-3)))  # no tensor is longer than 1
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*norms)
    bound = FLOAT32_CANCELLATION * block_sum_rounding(units=300, kinds=3, rows_per_unit=1)
    for one, several in zip(*sums, strict=True):
        assert float((one - several).norm()) <= bound


@pytest.mark.usefixtures("compiled")
def test_what_the_loops_do_not_know_is_left_to_torch() -> None:
    critic = make_critic((6, 5, 4))
    assert compiled_gradients(critic, make_batch(6, 2, ROWS_AT_ONCE + 1), PAIRED) is None
    batch = make_batch(6, 2)
    for hidden in (0, DEEPEST + 1):
        assert compiled_gradients(make_critic((6,) + (4,) * hidden), batch, PAIRED) is None
    exact = replace(batch, real=batch.real.double(), fake=batch.fake.double(), mix=batch.mix.double())
    assert compiled_gradients(critic, exact, PAIRED) is None
    with without_kernels():
        assert compiled_gradients(critic, batch, PAIRED) is None


def test_what_does_not_fit_is_refused(compiled: Kernels) -> None:
    critic, batch = make_critic((6, 5, 4)), make_batch(6, 3)

    def ask(
        rows: Rows, weighting: ClippingRule | Tensor | None = None, sums: Tensor | None = None, units: int = 3
    ) -> None:
        compiled.perceptron_gradients(
            critic,
            replace(rows, units=units),
            paired=True,
            gradient_penalty=1.0,
            limits=LIMITS,
            workspace=Workspace(),
            weighting=weighting,
            sums=sums,
        )

    rows = Rows(batch.fake, batch.real, batch.mix.view(-1), batch.present, 3, 1)
    numbers_of_critic = 6 * 5 + 5 + 5 * 4 + 4 + 4
    sums = torch.zeros(numbers_of_critic, dtype=torch.float64)
    ask(rows, ClippingRule((0, 0, 0, 1, 1), (1.0, 1.0), 0.0), sums)
    assert bool(sums.any())
    for bad in (
        replace(rows, fake=batch.fake[:, :5].contiguous()),
        replace(rows, real=batch.real.double()),
        replace(rows, mix=batch.mix[:2].view(-1)),
        replace(rows, present=batch.present.float()),
        replace(rows, rows_per_unit=0),
    ):
        with pytest.raises(ValueError, match="a perceptron and rows"):
            ask(bad)
    with pytest.raises(ValueError, match="a perceptron and rows"):
        ask(rows, units=4)
    with pytest.raises(ValueError, match="contiguous"):
        ask(replace(rows, real=numbers(3, 12)[:, ::2]))
    with pytest.raises(ValueError, match="one group"):
        ask(rows, ClippingRule((0, 0, 0, 1, 2), (1.0, 1.0), 0.0), sums)
    with pytest.raises(ValueError, match="one weight"):
        ask(rows, torch.ones(3, 4, dtype=torch.float64), sums)
    with pytest.raises(ValueError, match="a place for every number"):
        ask(rows, torch.ones(3, 5, dtype=torch.float64), sums[:-1])
    with pytest.raises(ValueError, match="a place for every number"):
        ask(rows, None, sums)


def test_without_a_compiler_there_is_a_warning_and_no_kernel(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for compiler, said in (("no-such-compiler", "no C compiler"), ("false", "compiler failed")):
        monkeypatch.setenv("CC", compiler)
        with caplog.at_level(logging.WARNING):
            assert _compiled.__wrapped__() is None
        assert said in caplog.text


LENGTHS_WITHOUT_A_COMPILER = """
import torch
from workers.numerics.kernels import kernels
loops = kernels(torch.device("cpu"))
print(loops and loops.squared_lengths(torch.tensor([[3.0, 4.0]])).tolist())
"""


def in_a_process(handed_over: dict[str, Any]) -> str:
    options = {**handed_over, "env": handed_over.get("env", os.environ) | {"CC": "no-such-compiler"}}
    command = [sys.executable, "-c", LENGTHS_WITHOUT_A_COMPILER]
    return subprocess.run(command, **options, capture_output=True, text=True, check=True).stdout


@pytest.mark.slow
def test_a_training_uses_the_library_that_its_worker_compiled() -> None:
    library = SharedLibrary()
    assert library.for_a_child() == {}
    library.compile()
    descriptor = library._descriptor.result()
    assert descriptor is not None
    assert os.fstat(descriptor).st_nlink == 0
    without = in_a_process({})
    assert without == "None\n"
    assert in_a_process(library.for_a_child()) == "[25.0]\n"
    os.close(descriptor)
    for gone in (str(descriptor), "nothing"):
        assert in_a_process({"env": os.environ | {HANDED_OVER: gone}}) == without


def test_a_worker_that_cannot_compile_hands_nothing_over(monkeypatch: pytest.MonkeyPatch) -> None:
    for compiler, folder in (("no-such-compiler", "/tmp"), ("cc", "/no-such-folder")):
        monkeypatch.setenv("CC", compiler)
        monkeypatch.setattr(tempfile, "tempdir", folder)
        library = SharedLibrary()
        library.compile()
        wait([library._descriptor])
        assert library.for_a_child() == {}
