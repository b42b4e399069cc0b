"""The fast engine against vmap in float64, with and without compiled loops, and both against plain autograd."""

from __future__ import annotations

import copy
import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.critic_batches import by_unit
from workers.engines.choosing import perceptron_gradients
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, Perceptron, PerUnitGradients
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.gradients import vmap_gradients
from workers.mechanism.outer_products import OuterProduct
from workers.networks.table import LEAKY_SLOPE, TableCritic
from workers.numerics.workspace import Workspace

pytestmark = pytest.mark.usefixtures("loops_or_torch")

WIDTH = 14
HIDDEN = (9, 8, 7)
GROUPS = ((0, 2), (4, 6), (1, 3, 5))
CLIP_NORMS = (0.3, 0.05, 0.2)
LOSSES = [CriticLoss(paired=p, gradient_penalty=g) for p in (True, False) for g in (10.0, 0.0)]


def make_critic(dtype: torch.dtype, hidden: tuple[int, ...] = HIDDEN) -> TableCritic:
    torch.manual_seed(7)
    return TableCritic(WIDTH, hidden).to(dtype)


def perceptron(critic: TableCritic) -> Perceptron:
    weights = [layer.weight.detach() for layer in (*critic.layers, critic.output)]
    return Perceptron(weights, [layer.bias.detach() for layer in critic.layers], LEAKY_SLOPE)


def make_batch(rows: int, dtype: torch.dtype, kind: str = "random") -> CriticBatch:
    generator = torch.Generator().manual_seed(11)
    real = torch.randn(rows, WIDTH, generator=generator, dtype=torch.float64)
    fake = torch.randn(rows, WIDTH, generator=generator, dtype=torch.float64)
    if kind == "identical records":
        real, fake = real[:1].repeat(rows, 1), fake[:1].repeat(rows, 1)
    if kind == "fake equals real":
        fake = real.clone()
    if kind == "fake near real":
        fake = real + 1e-7 * fake
    if kind == "fake like real":
        fake = real * (1.0 + 1.0 / 32.0)
    if kind == "outliers":
        real[:3] *= torch.tensor([[1e3], [1e6], [1e9]], dtype=torch.float64)
    if kind == "not finite":
        real[0, 0], real[1, 2], fake[2, 3], real[3] = math.nan, math.inf, -math.inf, 1e200
    if kind == "one hot":
        places = torch.randint(WIDTH, (rows,), generator=generator)
        moves = torch.randint(1, WIDTH, (rows,), generator=generator)
        real, fake = torch.eye(WIDTH, dtype=torch.float64)[torch.stack((places, (places + moves) % WIDTH))]
    present = torch.ones(rows, dtype=torch.bool)
    if kind == "null records":
        present[::3] = False
    return CriticBatch(
        real=real.to(dtype),
        fake=fake.to(dtype),
        mix=torch.rand(rows, 1, generator=generator, dtype=torch.float64).to(dtype),
        present=present,
    )


def both(critic: TableCritic, batch: CriticBatch, loss: CriticLoss) -> tuple[PerUnitGradients, PerUnitGradients]:
    return perceptron_gradients(perceptron(critic), batch, loss), vmap_gradients(critic, batch, loss)


def oracle_of(critic: TableCritic, batch: CriticBatch, loss: CriticLoss) -> PerUnitGradients:
    """By vmap in float64, on the same numbers: in float32 it would be as far off as what it judges."""
    exact = replace(batch, real=batch.real.double(), fake=batch.fake.double(), mix=batch.mix.double())
    return vmap_gradients(copy.deepcopy(critic).double(), exact, loss)


def plain_sum(critic: TableCritic, batch: CriticBatch, loss: CriticLoss) -> list[Tensor]:
    """Sum of the losses of all rows, differentiated twice by plain autograd."""
    between = (batch.mix * batch.real + (1.0 - batch.mix) * batch.fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    total = (loss.gradient_penalty * (slope.norm(dim=1) - 1.0) ** 2).sum() - critic(batch.real).sum()
    if loss.paired:
        total = total + critic(batch.fake).sum()
    return list(torch.autograd.grad(total, list(critic.parameters()), materialize_grads=True))


def shapes(critic: TableCritic) -> list[torch.Size]:
    return [tensor.shape for tensor in critic.parameters()]


def clipped(gradients: PerUnitGradients, critic: TableCritic) -> tuple[Tensor, ...]:
    bounds = DrawBounds(most_units=100, units_per_block=100, rows_per_unit=10)
    result = clip_and_sum([gradients], groups=GROUPS, clip_norms=CLIP_NORMS, shapes=shapes(critic), bounds=bounds)
    return result.sum.values


def assert_close(got: tuple[Tensor, ...] | list[Tensor], wanted: tuple[Tensor, ...] | list[Tensor], tol: float) -> None:
    scale = max(float(w.norm()) for w in wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.shape == b.shape
        assert float((a - b).norm()) <= tol * scale


KINDS = ["random", "identical records", "one hot", "null records", "outliers", "not finite"]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
def test_fast_engine_agrees_with_oracle(loss: CriticLoss, kind: str, dtype: torch.dtype, tolerance: float) -> None:
    critic = make_critic(dtype)
    batch = make_batch(32, dtype, kind)
    fast, oracle = perceptron_gradients(perceptron(critic), batch, loss), oracle_of(critic, batch, loss)
    assert torch.equal(fast.contributes, oracle.contributes)
    assert_close(clipped(fast, critic), clipped(oracle, critic), tolerance)
    if kind != "not finite":
        # Rounding is relative to the terms of a gradient, which may cancel: D(x)'s own gradient is one of them.
        terms = vmap_gradients(critic, batch, CriticLoss(paired=False, gradient_penalty=0.0)).tensor_norms
        scale = torch.maximum(terms, oracle.tensor_norms).max(dim=1)[0]
        difference = (fast.tensor_norms - oracle.tensor_norms).abs().max(dim=1)[0]
        assert bool((difference <= tolerance * scale)[oracle.contributes].all())


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("hidden", [(5,), (6, 5), HIDDEN])
def test_unclipped_sum_is_plain_autograd(loss: CriticLoss, hidden: tuple[int, ...]) -> None:
    critic = make_critic(torch.float64, hidden)
    batch = make_batch(32, torch.float64)
    wanted = plain_sum(critic, batch, loss)
    for engine in both(critic, batch, loss):
        ones = torch.ones(batch.units, len(wanted), dtype=torch.float64)
        assert_close(engine.weighted_sum(ones), wanted, 1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("kind", ["fake equals real", "fake near real", "fake like real"])
def test_cancelling_products_never_pass_too_much(dtype: torch.dtype, kind: str) -> None:
    """With λ = 0 and G(z) ≈ x the Grams cancel: float32 Gram norms came out up to 100 % too low.

    Thirty-fold ("fake like real") some units just do not, and are added up in float32, which rounds; with all of them in
    float32 the slack would have to be 5e-7.
    """
    critic = make_critic(dtype)
    slack = 1.0 + (2e-7 if kind == "fake like real" and dtype == torch.float32 else 0.0)
    batch = make_batch(64, dtype, kind)
    fast, oracle = both(critic, batch, CriticLoss(paired=True, gradient_penalty=0.0))
    for unit in range(batch.units):
        weights = torch.zeros(batch.units, 7, dtype=torch.float64)
        weights[unit] = 1.0
        realised = torch.stack([part.double().norm() for part in fast.weighted_sum(weights)])
        assert bool((realised <= fast.tensor_norms[unit] * slack).all())
    if dtype == torch.float64:
        assert bool((fast.tensor_norms >= oracle.tensor_norms * (1 - 1e-12)).all())


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("engine", [0, 1], ids=["fast", "vmap"])
def test_empty_draw_and_one_record(loss: CriticLoss, engine: int) -> None:
    critic = make_critic(torch.float32)
    empty = both(critic, make_batch(0, torch.float32), loss)[engine]
    assert empty.tensor_norms.shape == (0, 7)
    assert all(not part.any() for part in clipped(empty, critic))
    batch = make_batch(1, torch.float32)
    one = both(critic, batch, loss)[engine]
    assert_close(one.weighted_sum(torch.ones(1, 7, dtype=torch.float64)), plain_sum(critic, batch, loss), 1e-5)


def test_zero_input_gradient_has_zero_penalty_gradient() -> None:
    critic = make_critic(torch.float64)
    with torch.no_grad():
        critic.output.weight.zero_()
    for engine in both(critic, make_batch(4, torch.float64), CriticLoss(paired=True, gradient_penalty=10.0)):
        assert bool(engine.contributes.all())
        assert bool(torch.isfinite(engine.tensor_norms).all())


def test_rows_of_a_unit_are_summed_before_clipping() -> None:
    critic = make_critic(torch.float64)
    batch = make_batch(6, torch.float64)
    loss = LOSSES[0]
    rows = vmap_gradients(critic, batch, loss)
    units = vmap_gradients(critic, by_unit(batch, (3, 2, 0, 1)), loss)
    for row, unit in zip(rows.gradients, units.gradients, strict=True):
        torch.testing.assert_close(unit[0], row[:3].sum(0))
        torch.testing.assert_close(unit[1], row[3:5].sum(0))
        torch.testing.assert_close(unit[3], row[5])
    assert units.contributes.tolist() == [True, True, False, True]


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("kind", ["random", "null records", "not finite", "outliers"])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-6)])
@pytest.mark.parametrize("counts", [(5, 1, 0, 2, 8, 4, 1, 3, 7, 1), (1,) * 31 + (0, 1)])
def test_units_of_several_rows_agree_too(
    loss: CriticLoss, kind: str, dtype: torch.dtype, tolerance: float, counts: tuple[int, ...]
) -> None:
    critic = make_critic(dtype)
    batch = by_unit(make_batch(32, dtype, kind), counts)
    fast, oracle = perceptron_gradients(perceptron(critic), batch, loss), oracle_of(critic, batch, loss)
    assert torch.equal(fast.contributes, oracle.contributes)
    assert_close(clipped(fast, critic), clipped(oracle, critic), tolerance)


def test_a_null_row_adds_nothing_to_its_unit() -> None:
    critic = make_critic(torch.float64)
    batch = make_batch(6, torch.float64)
    present = torch.tensor([True, True, False, False, False, False])
    units = vmap_gradients(critic, replace(batch, present=present, rows_per_unit=3), LOSSES[0])
    rows = vmap_gradients(critic, batch, LOSSES[0])
    for row, unit in zip(rows.gradients, units.gradients, strict=True):
        torch.testing.assert_close(unit[0], row[:2].sum(0))
        assert not unit[1].any()
    assert units.contributes.tolist() == [True, False]


def test_one_bad_row_silences_its_unit_only() -> None:
    critic = make_critic(torch.float64)
    batch = make_batch(6, torch.float64)
    real = batch.real.clone()
    real[1, 0] = math.nan
    bad = vmap_gradients(critic, replace(batch, real=real, rows_per_unit=3), LOSSES[0])
    assert bad.contributes.tolist() == [False, True]
    assert all(bool(torch.isfinite(part).all()) for part in clipped(bad, critic))


def test_terms_that_cancel_are_added_up_in_float64() -> None:
    """Thirty-fold cancellation: float32 products would round by more than the sum's bound allows such a unit."""
    random = torch.Generator().manual_seed(3)
    left, right = torch.randn(64, 40, generator=random), torch.randn(64, 30, generator=random)
    opposite = -left * (1.0 - 1.0 / 32.0)
    part = OuterProduct(
        left=torch.stack((left, opposite)),
        right=torch.stack((right, right)),
        units=8,
        rows_per_unit=1,
        workspace=Workspace(),
    )
    exact = left[:8].double().T @ right[:8].double() + opposite[:8].double().T @ right[:8].double()
    summed = part.weighted_sum(torch.ones(8, dtype=torch.float64))
    assert float((summed - exact).abs().max()) < 1e-12
