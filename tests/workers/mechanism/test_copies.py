"""Copies of a record: their mean is what is clipped, so that one unit still moves a sum by one clip norm."""

from __future__ import annotations

from fractions import Fraction

import pytest
import torch

from tests.critic_batches import without_unit
from tests.exact_changes import squared_change
from tests.workers.mechanism.test_gradients import CLIP_NORMS, GROUPS, make_batch, make_critic, perceptron
from workers.engines.choosing import perceptron_gradients
from workers.engines.replayed import ReplayedGradients
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, PerUnitGradients, SelfClipping
from workers.mechanism.clipping import ClippedSum, clip_and_sum
from workers.mechanism.copies import mean_of_copies
from workers.mechanism.gradients import vmap_gradients
from workers.networks.table import TableCritic
from workers.numerics.replays import Replays
from workers.numerics.workspace import Workspace

UNITS = 6
LOSS = CriticLoss(paired=True, gradient_penalty=10.0)
ENGINES = ["perceptron", "vmap", "replayed"]


def make_copies(copies: int) -> CriticBatch:
    """Units whose rows differ, as shifted copies do; every third one is a null record with all of its copies."""
    rows = make_batch(UNITS * copies, torch.float32)
    present = torch.arange(UNITS).repeat_interleave(copies) % 3 > 0
    return CriticBatch(rows.real, rows.fake, rows.mix, present, rows_per_unit=copies)


def found(engine: str, critic: TableCritic, batch: CriticBatch) -> PerUnitGradients:
    if engine == "vmap":
        return vmap_gradients(critic, batch, LOSS)
    if engine == "perceptron":
        return perceptron_gradients(perceptron(critic), batch, LOSS)
    return ReplayedGradients(
        lambda batch, workspace: perceptron_gradients(perceptron(critic), batch, LOSS, workspace),
        batch,
        LOSS,
        UNITS,
        Replays(),
        Workspace(),
    )


def clipped(gradients: PerUnitGradients, critic: TableCritic, copies: int) -> ClippedSum:
    bounds = DrawBounds(most_units=UNITS, units_per_block=UNITS, rows_per_unit=copies)
    shapes = [tensor.shape for tensor in critic.parameters()]
    return clip_and_sum([gradients], groups=GROUPS, clip_norms=CLIP_NORMS, shapes=shapes, bounds=bounds)


@pytest.mark.parametrize("copies", [2, 4, 8])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.usefixtures("loops_or_torch")
def test_what_is_clipped_is_the_mean_over_copies(engine: str, copies: int) -> None:
    critic, batch = make_critic(torch.float32), make_copies(copies)
    means = mean_of_copies(found(engine, critic, batch), copies)
    sums = vmap_gradients(critic, batch, LOSS)
    wanted = [gradient.double() / copies for gradient in sums.gradients]
    norms = torch.stack([gradient.flatten(1).norm(dim=1) for gradient in wanted], dim=1)
    torch.testing.assert_close(means.tensor_norms, norms, rtol=1e-4, atol=1e-6)
    assert torch.equal(means.contributes, sums.contributes)
    ones = torch.ones(UNITS, len(wanted), dtype=torch.float64)
    for made, gradient in zip(means.weighted_sum(ones), wanted, strict=True):
        torch.testing.assert_close(made, gradient.sum(dim=0), rtol=1e-4, atol=1e-5)

    made = clipped(means, critic, copies)
    by_hand = [torch.zeros_like(value) for value in made.sum.values]
    for group, clip_norm in zip(made.sum.groups, made.sum.sensitivities, strict=True):
        lengths = torch.stack([norms[:, tensor] for tensor in group]).norm(dim=0)
        for tensor in group:
            factors = (clip_norm / lengths).clamp(max=1.0).nan_to_num(1.0)
            by_hand[tensor] += torch.einsum("u,u...->...", factors, wanted[tensor])
    for value, expected in zip(made.sum.values, by_hand, strict=True):
        torch.testing.assert_close(value, expected, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(made.tensor_norms, norms[means.contributes], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_unit_with_all_its_copies_moves_the_sum_by_one_clip_norm_at_most(engine: str) -> None:
    copies = 8
    critic, batch = make_critic(torch.float32), make_copies(copies)
    first = clipped(mean_of_copies(found(engine, critic, batch), copies), critic, copies)
    largest = 0.0
    for unit in range(UNITS):
        second = clipped(mean_of_copies(found(engine, critic, without_unit(batch, unit)), copies), critic, copies)
        for change, sensitivity in zip(squared_change(first.sum, second.sum), first.sum.sensitivities, strict=True):
            assert change <= Fraction(sensitivity) ** 2
            largest = max(largest, float(change) / sensitivity**2)
    assert largest > 0.99  # some unit is clipped, so that a bound that were larger would be reached too


def test_gradients_that_clip_themselves_go_on_doing_so() -> None:
    critic = make_critic(torch.float32)
    assert isinstance(mean_of_copies(found("replayed", critic, make_copies(2)), 2), SelfClipping)
    assert not isinstance(mean_of_copies(found("vmap", critic, make_copies(2)), 2), SelfClipping)


def test_one_copy_is_the_record_and_three_have_no_exact_mean() -> None:
    gradients = found("vmap", make_critic(torch.float32), make_copies(1))
    assert mean_of_copies(gradients, 1) is gradients
    for copies in (0, 3):
        with pytest.raises(ValueError, match="power of two"):
            mean_of_copies(gradients, copies)
