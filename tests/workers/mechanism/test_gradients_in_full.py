"""Gradients of perceptrons of any activation, kept in full: against vmap, which differentiates the loss itself."""

from __future__ import annotations

import pytest
import torch

from tests.critic_batches import by_unit, without_unit
from workers.engines.choosing import choose_engine
from workers.engines.held import HELD_UNITS, HeldGradients
from workers.mechanism import CriticBatch, CriticLoss, Perceptron
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.gradients import perceptron_gradients_in_full, vmap_gradients
from workers.networks.image import ImageCritic
from workers.networks.table import TableCritic
from workers.numerics.activations import Activation, LeakyRelu, TemperedSigmoid
from workers.numerics.workspace import Workspace

ACTIVATIONS: list[Activation] = [LeakyRelu(0.2), TemperedSigmoid(2.0, 2.0, 1.0), TemperedSigmoid(1.5, 3.0, 0.4)]
LOSSES = [CriticLoss(paired=p, gradient_penalty=g) for p in (True, False) for g in (10.0, 0.0)]
WIDTH = 7


def batch_of(dtype: torch.dtype = torch.float64) -> CriticBatch:
    generator = torch.Generator().manual_seed(4)
    real, fake = (torch.randn(12, WIDTH, generator=generator, dtype=dtype) for _ in range(2))
    mix = torch.rand(12, 1, generator=generator, dtype=dtype)
    return by_unit(CriticBatch(real, fake, mix, torch.ones(12, dtype=torch.bool)), [3, 1, 0, 4, 4])


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_derivatives_are_those_of_autograd(activation: Activation) -> None:
    inputs = torch.linspace(-3.0, 3.0, 41, dtype=torch.float64, requires_grad=True)
    values = activation.value(inputs)
    (slope,) = torch.autograd.grad(values.sum(), inputs, create_graph=True)
    assert torch.allclose(slope, activation.slope(values), atol=1e-12)
    if activation.is_smooth:
        (curvature,) = torch.autograd.grad(slope.sum(), inputs)
        assert torch.allclose(curvature, activation.curvature(values), atol=1e-12)
    else:
        assert not activation.curvature(values).any()


def test_the_tempered_sigmoid_of_two_two_one_is_tanh() -> None:
    inputs = torch.linspace(-4.0, 4.0, 33, dtype=torch.float64)
    assert torch.allclose(TemperedSigmoid(2.0, 2.0, 1.0).value(inputs), inputs.tanh(), atol=1e-15)


@pytest.mark.parametrize("hidden", [(5,), (6, 4, 3)])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_formulas_are_those_of_vmap(activation: Activation, hidden: tuple[int, ...]) -> None:
    torch.manual_seed(1)
    critic = TableCritic(WIDTH, hidden, activation).double()
    tensors = [tensor.detach() for tensor in critic.parameters()]
    batch = batch_of()
    for loss in LOSSES:
        found = perceptron_gradients_in_full(Perceptron(tensors[0::2], tensors[1::2], 0.2), activation, batch, loss)
        expected = vmap_gradients(critic, batch, loss)
        assert torch.equal(found.usable, expected.usable)
        for one, other in zip(found.gradients, expected.gradients, strict=True):
            assert torch.allclose(one, other, atol=1e-12)


def test_which_engine_is_chosen() -> None:
    for critic, in_full, name in (
        (TableCritic(WIDTH, (4,)), False, "outer_products"),
        (TableCritic(WIDTH, (4,)), True, "in_full"),
        (TableCritic(WIDTH, (4,), ACTIVATIONS[1]), False, "in_full"),
        (ImageCritic((8, 8, 1), (2,)), False, "convolutions"),
        (ImageCritic((8, 8, 1), (2,)), True, "vmap"),
        (ImageCritic((8, 8, 1), (2,), activation=ACTIVATIONS[1]), False, "vmap"),
    ):
        engine = choose_engine(critic, rows_per_unit=1, workspace=Workspace(), in_full=in_full)
        assert engine.name == name
        assert engine.units_per_block <= HELD_UNITS or not engine.holds


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_unit_moves_the_clipped_sum_by_its_clip_norms_at_most(activation: Activation) -> None:
    torch.manual_seed(1)
    critic = TableCritic(WIDTH, (5, 4), activation)
    engine = choose_engine(critic, rows_per_unit=4, workspace=Workspace(), in_full=True)
    bounds, norms, batch = engine.bounds(units=5, expected_units=5.0), (0.3, 0.02), batch_of(torch.float32)
    batch.real[0, 0] = 1e30

    def summed(batch: CriticBatch) -> list[torch.Tensor]:
        clipped = clip_and_sum(
            [engine.gradients(batch, CriticLoss(paired=True, gradient_penalty=10.0))],
            groups=((0, 2, 4), (1, 3)),
            clip_norms=norms,
            shapes=[tensor.shape for tensor in critic.parameters()],
            bounds=bounds,
        )
        return [torch.cat([clipped.sum.values[t].flatten() for t in group]) for group in clipped.sum.groups]

    full = summed(batch)
    moved = [
        [float((one - other).norm()) for one, other in zip(full, summed(without_unit(batch, unit)), strict=True)]
        for unit in range(5)
    ]
    assert all(change <= norm for changes in moved for change, norm in zip(changes, norms, strict=True))
    assert max(changes[1] for changes in moved) > 0.9 * norms[1]  # something is clipped


def test_more_units_than_its_bound_holds_for_are_refused() -> None:
    gradients = HeldGradients(
        (torch.zeros(HELD_UNITS + 1, 2),), torch.ones(HELD_UNITS + 1, dtype=torch.bool), Workspace()
    )
    with pytest.raises(ValueError, match="more units"):
        _ = gradients.tensor_norms
