"""Sensitivity of the clipped sum, and that no clipped unit is longer than its clip norm."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.critic_batches import by_unit, without_unit
from workers.engines.choosing import perceptron_gradients
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, Perceptron, PerUnitGradients
from workers.mechanism.clipping import clip_and_sum, clip_weights
from workers.mechanism.gradients import vmap_gradients
from workers.networks.table import LEAKY_SLOPE, TableCritic

WIDTH = 6
GROUPS = ((0, 2), (1, 3), (4,))
UNITS = 5
BOUNDS = DrawBounds(most_units=100, units_per_block=50, rows_per_unit=30)


def gradients_of(
    batch: CriticBatch, engine: str, dtype: torch.dtype, loss: CriticLoss, size: float = 1.0
) -> PerUnitGradients:
    torch.manual_seed(3)
    critic = TableCritic(WIDTH, (5, 4)).to(dtype)
    with torch.no_grad():
        for tensor in critic.parameters():
            tensor.mul_(size)
    if engine == "vmap":
        return vmap_gradients(critic, batch, loss)
    weights = [layer.weight.detach() for layer in (*critic.layers, critic.output)]
    return perceptron_gradients(
        Perceptron(weights, [layer.bias.detach() for layer in critic.layers], LEAKY_SLOPE), batch, loss
    )


def clipped(gradients: PerUnitGradients, clip_norms: tuple[float, ...]) -> tuple[Tensor, ...]:
    shapes = [part.shape for part in TableCritic(WIDTH, (5, 4)).parameters()]
    return clip_and_sum([gradients], groups=GROUPS, clip_norms=clip_norms, shapes=shapes, bounds=BOUNDS).sum.values


def group_norms(values: tuple[Tensor, ...]) -> list[float]:
    return [math.sqrt(sum(float(values[t].double().square().sum()) for t in group)) for group in GROUPS]


ENTRIES = st.one_of(
    st.floats(-2, 2, width=32),
    st.sampled_from([0.0, 1e-30, 1e4, -1e8, 1e18, -1e30, 3e38, math.inf, -math.inf, math.nan]),
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("engine", ["vmap", "outer_products"])
@settings(max_examples=30, deadline=None, derandomize=True)
@given(data=st.data())
def test_one_unit_moves_a_group_by_at_most_its_clip_norm(engine: str, dtype: torch.dtype, data: st.DataObject) -> None:
    rows = st.lists(st.lists(ENTRIES, min_size=WIDTH, max_size=WIDTH), min_size=UNITS, max_size=UNITS)
    real, fake = (torch.tensor(data.draw(rows), dtype=dtype) for _ in range(2))
    near = data.draw(st.booleans())
    loss = CriticLoss(data.draw(st.booleans()), data.draw(st.sampled_from([0.0, 10.0])))
    size = data.draw(st.sampled_from([1e-6, 1.0, 30.0]))
    clip_norms = tuple(data.draw(st.sampled_from([1e-6, 0.1, 1.0, 1e3])) for _ in GROUPS)
    mix = torch.linspace(0, 1, UNITS, dtype=dtype).unsqueeze(1)
    batch = CriticBatch(real, real + 1e-7 if near else fake, mix, torch.ones(UNITS, dtype=torch.bool))
    gradients = gradients_of(batch, engine, dtype, loss, size)
    full = clipped(gradients, clip_norms)
    assert all(bool(value.isfinite().all()) for value in full)
    for unit in range(UNITS):
        others = torch.arange(UNITS) != unit
        alone = gradients_of(replace(batch, present=~others), engine, dtype, loss, size)
        without = gradients_of(replace(batch, present=others), engine, dtype, loss, size)
        realised = group_norms(clipped(alone, clip_norms))
        assert all(norm <= c for norm, c in zip(realised, clip_norms, strict=True))
        # The sum's own rounding is relative to all units in it.
        neighbour = clipped(without, clip_norms)
        change = group_norms(tuple(a.double() - b.double() for a, b in zip(full, neighbour, strict=True)))
        slack = 1.0 + 8 * UNITS * torch.finfo(dtype).eps
        assert all(moved <= c * slack for moved, c in zip(change, clip_norms, strict=True))


def test_removing_a_unit_of_many_rows_is_bounded_like_any_other() -> None:
    generator = torch.Generator().manual_seed(5)
    rows = 40
    batch = CriticBatch(
        torch.randn(rows, WIDTH, generator=generator),
        torch.randn(rows, WIDTH, generator=generator),
        torch.rand(rows, 1, generator=generator),
        torch.ones(rows, dtype=torch.bool),
    )
    batch = by_unit(batch, (30, 5, 5))
    clip_norms = (0.1, 0.2, 0.3)
    loss = CriticLoss(paired=True, gradient_penalty=10.0)
    full = clipped(gradients_of(batch, "vmap", torch.float32, loss), clip_norms)
    neighbour = clipped(gradients_of(without_unit(batch, 0), "vmap", torch.float32, loss), clip_norms)
    change = group_norms(tuple(a - b for a, b in zip(full, neighbour, strict=True)))
    assert all(0.5 * c < moved <= c * (1 + 1e-6) for moved, c in zip(change, clip_norms, strict=True))


def test_sum_carries_its_sensitivity_and_blocks_add_up() -> None:
    generator = torch.Generator().manual_seed(5)
    batch = CriticBatch(
        torch.randn(UNITS, WIDTH, generator=generator, dtype=torch.float64),
        torch.randn(UNITS, WIDTH, generator=generator, dtype=torch.float64),
        torch.rand(UNITS, 1, generator=generator, dtype=torch.float64),
        torch.ones(UNITS, dtype=torch.bool),
    )
    loss = CriticLoss(paired=True, gradient_penalty=10.0)
    whole = gradients_of(batch, "vmap", torch.float64, loss)
    parts = [
        gradients_of(replace(batch, present=torch.arange(UNITS) % 2 == k), "vmap", torch.float64, loss) for k in (0, 1)
    ]
    shapes = [gradient.shape[1:] for gradient in whole.gradients]
    together = clip_and_sum(parts, groups=GROUPS, clip_norms=(0.1, 0.2, 0.3), shapes=shapes, bounds=BOUNDS)
    assert together.sum.sensitivities == (0.1, 0.2, 0.3)
    assert together.sum.groups == GROUPS
    assert together.tensor_norms.shape == (UNITS, 5)
    for a, b in zip(together.sum.values, clipped(whole, (0.1, 0.2, 0.3)), strict=True):
        torch.testing.assert_close(a, b)


def test_nothing_drawn_sums_to_zeros() -> None:
    shapes = [torch.Size((2, 3)), torch.Size((2,))]
    result = clip_and_sum([], groups=((0, 1),), clip_norms=(1.0,), shapes=shapes, bounds=BOUNDS)
    assert [value.shape for value in result.sum.values] == [(2, 3), (2,)]
    assert not any(bool(value.any()) for value in result.sum.values)
    assert result.tensor_norms.shape == (0, 2)


def test_weights() -> None:
    norms = torch.tensor([[3.0, 4.0, 0.1], [0.0, 0.0, 0.0], [math.nan, 1.0, math.inf]], dtype=torch.float64)
    weights = clip_weights(norms, torch.tensor([True, True, False]), groups=((0, 1), (2,)), clip_norms=(1.0, 1.0))
    expected = torch.tensor([[0.2, 0.2, 1.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, rtol=2e-6, atol=0.0)
    assert bool((weights <= expected).all())
