"""The compiled loops against torch's operations, and what a machine without a compiler does."""

from __future__ import annotations

import logging
import math
import shutil

import pytest
import torch

from workers.mechanism.outer_products import OuterProduct
from workers.numerics.block_sums import BLOCK_ROWS, block_sum_rounding
from workers.numerics.kernels import Kernels, PackedMatrix, _compiled, kernels, without_kernels
from workers.numerics.workspace import Workspace

SIZES = [(1, 1), (7, 17), (16, 6), (120, 256), (33, 40)]


@pytest.fixture
def compiled() -> Kernels:
    found = kernels(torch.device("cpu"))
    if found is None:
        pytest.skip("no C compiler here")
    return found


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here")
def test_a_machine_with_a_compiler_has_them() -> None:
    assert kernels(torch.device("cpu")) is not None
    assert kernels(torch.device("cpu"), torch.float64) is None


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("inner", "width"), SIZES)
@pytest.mark.parametrize("count", [1, 100, 193])
def test_rows_times_a_matrix_and_what_follows(
    compiled: Kernels, count: int, inner: int, width: int, transposed: bool
) -> None:
    rows, matrix, bias, state = numbers(count, inner), numbers(inner, width), numbers(width), numbers(count, width)
    stored = matrix.T.contiguous() if transposed else matrix
    packed = compiled.pack(stored, transposed=transposed, space=torch.empty(PackedMatrix.size(stored)))
    product = rows.double() @ matrix.double()
    slope_there = torch.where(state > 0, 1.0, 0.2).double()
    wanted = [product, torch.nn.functional.leaky_relu(product + bias, 0.2), product * slope_there]
    got = [
        compiled.rows_times(rows, packed, out=torch.empty(count, width)),
        compiled.rows_times(rows, packed, out=torch.empty(count, width), bias=bias, leaky=True, slope=0.2),
        compiled.rows_times(rows, packed, out=state, state=state, slope=0.2),  # in the place of the state
    ]
    for mine, right in zip(got, wanted, strict=True):
        torch.testing.assert_close(mine.double(), right, rtol=0, atol=1e-5 * math.sqrt(inner))


def test_a_rows_result_depends_on_nothing_else(compiled: Kernels) -> None:
    rows, matrix = numbers(200, 50), numbers(50, 37)
    packed = compiled.pack(matrix, transposed=False, space=torch.empty(PackedMatrix.size(matrix)))
    together = compiled.rows_times(rows, packed, out=torch.empty(200, 37))
    rows[:77] = math.nan
    beside_nan = compiled.rows_times(rows, packed, out=torch.empty(200, 37))
    assert torch.equal(together[77:], beside_nan[77:])
    alone = compiled.rows_times(rows[150:151], packed, out=torch.empty(1, 37))
    assert torch.equal(together[150:151], alone)


@pytest.mark.parametrize(("height", "width"), SIZES)
def test_sums_of_products(compiled: Kernels, height: int, width: int) -> None:
    left, right, weights = numbers(3, 128, height), numbers(3, 128, width, seed=1), numbers(128, seed=2)
    exact = (left.double() * weights.double().unsqueeze(1)).flatten(0, 1).T @ right.double().flatten(0, 1)
    summed = compiled.weighted_block_sum(left, right, weights, Workspace())
    lengths = (weights.abs() * (left.norm(dim=2) * right.norm(dim=2)).sum(dim=0)).max()
    bound = block_sum_rounding(rows=128, kinds=3, rows_per_unit=1) + 4.0 * torch.finfo(torch.float32).eps * 128
    assert float((summed - exact).norm()) <= float(lengths) * bound


def test_a_row_of_weight_0_adds_nothing_and_a_block_only_its_own_rounding(compiled: Kernels) -> None:
    left, right, weights = numbers(3, 4 * BLOCK_ROWS, 20), numbers(3, 4 * BLOCK_ROWS, 30, seed=1), torch.ones(256)
    weights[5] = 0.0
    without = compiled.weighted_block_sum(left, right, weights, Workspace())
    left[:, 5], right[:, 5] = math.nan, math.inf
    assert torch.equal(without, compiled.weighted_block_sum(left, right, weights, Workspace()))
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(threads + 2)
        assert torch.equal(without, compiled.weighted_block_sum(left, right, weights, Workspace()))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.parametrize(("kinds", "rows_per_unit"), [(3, 1), (2, 1), (3, 2), (2, 4)])
def test_norms_of_products(compiled: Kernels, kinds: int, rows_per_unit: int) -> None:
    rows = 16 * rows_per_unit
    left, right = numbers(kinds, rows, 21), numbers(kinds, rows, 34, seed=1)
    left[0, 0, 3], right[0, rows_per_unit, 0] = math.nan, math.inf
    part = OuterProduct(left, right, units=15, rows_per_unit=rows_per_unit, workspace=Workspace())
    found = compiled.product_norms(left, right, 15, rows_per_unit)
    with without_kernels():
        wanted = part.measure()
    torch.testing.assert_close(found, wanted, rtol=1e-13, atol=1e-13, equal_nan=True)


def test_kinds_add_up(compiled: Kernels) -> None:
    terms = numbers(3, 10, 33)
    out = torch.empty(10, 33)
    lengths = compiled.add_kinds(terms, minus=(1,), out=out)
    torch.testing.assert_close(out, terms[0] - terms[1] + terms[2])
    torch.testing.assert_close(lengths, out.double().norm(dim=1), rtol=1e-14, atol=0)
    weights = torch.linspace(0, 1, 10, dtype=torch.float64)
    out[0] = math.nan
    wanted = out[1:].double().T @ weights[1:]
    torch.testing.assert_close(compiled.weighted_row_sum(out, weights), wanted, rtol=1e-13, atol=1e-13)


def test_normals_are_box_and_mullers_to_the_last_digits(compiled: Kernels) -> None:
    pairs = 100_003
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(-(2**63), 2**63 - 1, (2 * pairs,), generator=generator)
    words[: 4 * 8] = torch.tensor([0, 1, 2**52 - 1, 2**52, 2**53 - 1, -1, 2**51, -(2**63)]).repeat(4)
    words[pairs : pairs + 8] = torch.tensor([0, 2**50, 2**51, 2**52, 2**53 - 1, -1, 3 * 2**51, 7 * 2**50])
    cosines, sines = torch.empty(2, pairs, dtype=torch.float64)
    compiled.box_muller(words, cosines, sines)
    uniforms = ((words & (2**53 - 1)).double() + 0.5) * 2.0**-53
    radius, angle = (-2.0 * uniforms[:pairs].log()).sqrt(), 2.0 * math.pi * uniforms[pairs:]
    torch.testing.assert_close(cosines, radius * angle.cos(), rtol=0, atol=2e-14)
    torch.testing.assert_close(sines, radius * angle.sin(), rtol=0, atol=2e-14)
    torch.testing.assert_close(torch.hypot(cosines, sines), radius, rtol=1e-15, atol=0)


def test_shapes_that_do_not_fit_are_refused(compiled: Kernels) -> None:
    with pytest.raises(ValueError, match="whole blocks"):
        compiled.weighted_block_sum(numbers(1, 63, 4), numbers(1, 63, 4), torch.ones(63), Workspace())
    with pytest.raises(ValueError, match="contiguous"):
        compiled.weighted_row_sum(numbers(4, 6)[:, ::2], torch.ones(4))
    packed = compiled.pack(numbers(4, 6), transposed=False, space=torch.empty(200))
    with pytest.raises(ValueError, match="fit the matrix"):
        compiled.rows_times(numbers(3, 5), packed, out=torch.empty(3, 6))


def test_without_a_compiler_there_is_a_warning_and_no_kernel(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for compiler, said in (("no-such-compiler", "no C compiler"), ("false", "compiler failed")):
        monkeypatch.setenv("CC", compiler)
        with caplog.at_level(logging.WARNING):
            assert _compiled.__wrapped__() is None
        assert said in caplog.text
