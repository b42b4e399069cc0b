"""The engine for image critics against vmap in float64, and against plain autograd."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workers.engines.choosing import choose_engine, image_critic_tensors
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, PerUnitGradients
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.convolutions import convolution_gradients
from workers.mechanism.convolutions.unit_gradients import StackedGradient
from workers.mechanism.gradients import vmap_gradients
from workers.networks.image import ImageCritic
from workers.numerics.workspace import Workspace

CRITICS = {
    "held": ((7, 6, 2), (4, 5), 4, 0),
    "labels": ((6, 6, 1), (3, 4), 5, 3),
    "stacked": ((8, 8, 1), (8, 16, 24), 4, 3),
}
LOSSES = [CriticLoss(paired=p, gradient_penalty=g) for p in (True, False) for g in (10.0, 0.0)]
ROWS = 12

pytestmark = pytest.mark.usefixtures("loops_or_torch", "one_thread")


def make_critic(name: str) -> ImageCritic:
    torch.manual_seed(7)
    shape, channels, kernel, classes = CRITICS[name]
    return ImageCritic(shape, channels, kernel=kernel, classes=classes)


def in_float64(critic: ImageCritic) -> ImageCritic:
    copy = ImageCritic(
        critic.shape,
        [len(layer.weight) for layer in critic.layers],
        kernel=critic.layers[0].kernel_size[0],
        classes=critic.classes,
    ).double()
    copy.load_state_dict(critic.state_dict())
    return copy


def make_batch(critic: ImageCritic, kind: str = "random", rows: int = ROWS) -> CriticBatch:
    """In numbers that float32 holds."""
    generator = torch.Generator().manual_seed(11)
    real, fake = (torch.rand(rows, critic.pixels, generator=generator) for _ in range(2))
    if kind == "identical records":
        real, fake = real[:1].repeat(rows, 1), fake[:1].repeat(rows, 1)
    if kind == "fake equals real":
        fake = real.clone()
    if kind == "fake near real":
        fake = real + 1e-6 * fake
    if kind == "outliers":
        real[:3] *= torch.tensor([[1e3], [1e6], [1e9]])
    if kind == "not finite":
        real[0, 0], real[1, 2], fake[2, 3], real[3], fake[4] = math.nan, math.inf, -math.inf, 1e38, -1e30
    if critic.classes:
        labels = F.one_hot(torch.arange(rows) % critic.classes, critic.classes).float()
        real, fake = torch.cat((real, labels), dim=1), torch.cat((fake, labels), dim=1)
    present = torch.ones(rows, dtype=torch.bool)
    if kind == "null records":
        present[::3] = False
        real[::3] = 0.0
    mix = torch.rand(rows, 1, generator=generator)
    return CriticBatch(real, fake, mix, present)


def doubled(batch: CriticBatch) -> CriticBatch:
    return CriticBatch(batch.real.double(), batch.fake.double(), batch.mix.double(), batch.present)


def fast(critic: ImageCritic, batch: CriticBatch, loss: CriticLoss) -> PerUnitGradients:
    return convolution_gradients(image_critic_tensors(critic), batch, loss)


def clipped(gradients: PerUnitGradients, critic: nn.Module) -> tuple[Tensor, ...]:
    shapes = [tensor.shape for tensor in critic.parameters()]
    groups = (tuple(range(0, len(shapes), 2)), tuple(range(1, len(shapes), 2)))
    bounds = DrawBounds(most_units=100, units_per_block=64, rows_per_unit=1)
    return clip_and_sum([gradients], groups=groups, clip_norms=(0.3, 0.05), shapes=shapes, bounds=bounds).sum.values


def furthest(got: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> float:
    """Largest distance of any tensor, as a part of the longest."""
    scale = max(float(value.norm()) for value in wanted)
    assert [value.shape for value in got] == [value.shape for value in wanted]
    return max(float((a - b).norm()) for a, b in zip(got, wanted, strict=True)) / scale


KINDS = ["random", "identical records", "null records", "outliers", "not finite", "fake near real"]


@pytest.mark.parametrize("name", CRITICS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_engine_agrees_with_the_oracle_in_float64(name: str, kind: str, loss: CriticLoss) -> None:
    critic = make_critic(name)
    exact, batch = in_float64(critic), make_batch(critic, kind)
    oracle = vmap_gradients(exact, doubled(batch), loss)
    engine = fast(exact, doubled(batch), loss)
    if kind == "fake near real" and loss == CriticLoss(paired=True, gradient_penalty=0.0):
        # What cancels to a millionth is told too long, by design.
        assert bool((engine.tensor_norms >= oracle.tensor_norms * (1.0 - 1e-9)).all())
        return
    assert torch.equal(engine.contributes, oracle.contributes)
    assert furthest(clipped(engine, exact), clipped(oracle, exact)) <= 1e-12
    longest = oracle.tensor_norms.max(dim=1)[0]
    off = (engine.tensor_norms - oracle.tensor_norms).abs().max(dim=1)[0]
    assert bool((off <= 1e-11 * longest)[oracle.contributes].all())


@pytest.mark.parametrize("name", CRITICS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("not finite", "outliers", "fake near real")])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_in_float32_it_is_as_near_to_the_truth_as_a_millionth(name: str, kind: str, loss: CriticLoss) -> None:
    """The truth is vmap in float64 on the same float32 numbers; vmap in float32 is no closer to it."""
    critic = make_critic(name)
    batch = make_batch(critic, kind)
    truth = vmap_gradients(in_float64(critic), doubled(batch), loss)
    engine = fast(critic, batch, loss)
    assert torch.equal(engine.contributes, truth.contributes)
    assert furthest(clipped(engine, critic), clipped(truth, critic)) <= 1e-6
    # Rounding is relative to the terms of a gradient, which may cancel: D(x)'s own gradient is one of them.
    terms = vmap_gradients(critic, batch, CriticLoss(paired=False, gradient_penalty=0.0)).tensor_norms
    scale = torch.maximum(terms, truth.tensor_norms).max(dim=1)[0]
    off = (engine.tensor_norms - truth.tensor_norms).abs().max(dim=1)[0]
    assert bool((off <= 1e-6 * scale)[truth.contributes].all())


@pytest.mark.parametrize("name", CRITICS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_one_record_is_plain_autograd_and_none_is_zeros(name: str, loss: CriticLoss) -> None:
    critic = in_float64(make_critic(name))
    batch = doubled(make_batch(critic, rows=1))
    between = (batch.mix * batch.real + (1.0 - batch.mix) * batch.fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    value = loss.gradient_penalty * (slope.norm() - 1.0) ** 2 - critic(batch.real).sum()
    if loss.paired:
        value = value + critic(batch.fake).sum()
    wanted = torch.autograd.grad(value, list(critic.parameters()), materialize_grads=True)
    ones = torch.ones(1, len(wanted), dtype=torch.float64)
    assert furthest(fast(critic, batch, loss).weighted_sum(ones), wanted) <= 1e-12
    none = fast(critic, doubled(make_batch(critic, rows=0)), loss)
    assert none.tensor_norms.shape == (0, len(wanted))
    assert not any(bool(part.any()) for part in clipped(none, critic))


@pytest.mark.parametrize("name", CRITICS)
def test_a_zero_input_gradient_has_a_zero_penalty_gradient(name: str) -> None:
    critic = in_float64(make_critic(name))
    with torch.no_grad():
        critic.output.weight.zero_()
    batch = doubled(make_batch(critic))
    loss = CriticLoss(paired=True, gradient_penalty=10.0)
    engine, oracle = fast(critic, batch, loss), vmap_gradients(critic, batch, loss)
    assert bool(engine.contributes.all())
    torch.testing.assert_close(engine.tensor_norms, oracle.tensor_norms)


def test_rows_that_cancel_are_added_up_in_float64() -> None:
    random = torch.Generator().manual_seed(3)
    left, right = torch.randn(10, 4, 40, generator=random), torch.randn(10, 4, 30, generator=random)
    left = torch.cat((left, -left * (1.0 - 1.0 / 50.0)), dim=1)
    part = StackedGradient(left, torch.cat((right, right), dim=1), Workspace())
    exact = part.left.double().flatten(0, 1).T @ part.right.double().flatten(0, 1)
    assert float((part.weighted_sum(torch.ones(10, dtype=torch.float64)) - exact).abs().max()) < 1e-12


def test_which_engine() -> None:
    """What the formulas do not know goes through vmap, and says so by its name."""

    class Other(ImageCritic):
        pass

    critic = make_critic("held")
    assert choose_engine(critic, rows_per_unit=1, workspace=Workspace()).name == "convolutions"
    assert choose_engine(critic, rows_per_unit=2, workspace=Workspace()).name == "vmap"
    other = choose_engine(Other((8, 8, 1), (3,)), rows_per_unit=1, workspace=Workspace())
    assert other.name == "vmap"
    assert bool(other.gradients(make_batch(other.critic), LOSSES[0]).contributes.all())  # type: ignore[arg-type]
    engine = choose_engine(critic, rows_per_unit=1, workspace=Workspace())
    assert engine.bounds(units=1_000, expected_units=50.0).most_units == 300
    assert engine.bounds(units=1_000, expected_units=50.0).block_rounding is not None
    with pytest.raises(ValueError, match="one row"):
        convolution_gradients(image_critic_tensors(critic), make_batch(critic, rows=65), LOSSES[0])
