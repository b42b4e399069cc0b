"""What an image critic's engine declares bounds what really happens, in exact arithmetic: neighbours, coins held fixed."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.critic_batches import without_unit
from tests.exact_changes import squared_change
from workers.engines.choosing import choose_engine, image_critic_tensors
from workers.mechanism import CriticBatch, CriticLoss, PerUnitGradients, PrivateSum
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.convolutions import convolution_gradients
from workers.mechanism.convolutions.unit_gradients import STACKED_CANCELLATION, StackedGradient
from workers.mechanism.thresholds import geometric_grid, norm_histogram
from workers.networks.image import ImageCritic
from workers.numerics.workspace import Workspace

CLIP_NORMS = (0.3, 0.02)
EDGES = geometric_grid(smallest=1e-3, largest=1e2, bins=9)
LOSSES = [CriticLoss(paired=p, gradient_penalty=g) for p in (True, False) for g in (10.0, 0.0)]
ROWS = 8

pytestmark = pytest.mark.usefixtures("loops_or_torch", "one_thread")


@pytest.fixture(scope="module")
def critic() -> ImageCritic:
    """Layers held, held and stacked."""
    torch.manual_seed(3)
    return ImageCritic((8, 8, 1), (5, 12, 24), classes=2)


def sums_of(critic: ImageCritic, batch: CriticBatch, loss: CriticLoss) -> tuple[PrivateSum, PrivateSum]:
    shapes = [tensor.shape for tensor in critic.parameters()]
    groups = (tuple(range(0, len(shapes), 2)), tuple(range(1, len(shapes), 2)))
    engine = choose_engine(critic, rows_per_unit=1, workspace=Workspace())
    clipped = clip_and_sum(
        [engine.gradients(batch, loss)],
        groups=groups,
        clip_norms=CLIP_NORMS,
        shapes=shapes,
        bounds=engine.bounds(units=100, expected_units=20.0),
    )
    return clipped.sum, norm_histogram(clipped.tensor_norms, EDGES)


def make_batch(critic: ImageCritic, kind: str) -> CriticBatch:
    generator = torch.Generator().manual_seed(11)
    real, fake = (torch.rand(ROWS, critic.pixels, generator=generator) for _ in range(2))
    if kind == "fake equals real":
        fake = real.clone()
    if kind == "fake near real":
        fake = real * (1 + 1e-6 * fake)
    if kind == "large and nearly equal":
        real = 1e4 * real
        fake = real * (1 + 1e-7 * fake)
    if kind == "outliers":
        real[:6] *= torch.tensor([[1e3], [1e6], [1e9], [1e-30], [1e15], [1e18]])
    if kind == "not finite":
        real[0, 0], real[1, 2], fake[2, 3], real[3] = math.nan, math.inf, -math.inf, 1e38
        real[4], fake[4] = 1e30, -1e30
    labels = F.one_hot(torch.arange(ROWS) % 2, 2).float()
    real, fake = torch.cat((real, labels), dim=1), torch.cat((fake, labels), dim=1)
    mix = torch.rand(ROWS, 1, generator=generator)
    return CriticBatch(real, fake, mix, torch.ones(ROWS, dtype=torch.bool))


KINDS = ["random", "fake equals real", "fake near real", "large and nearly equal", "outliers", "not finite"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_one_image_moves_a_group_by_at_most_its_clip_norm(critic: ImageCritic, kind: str, loss: CriticLoss) -> None:
    batch = make_batch(critic, kind)
    full = sums_of(critic, batch, loss)
    assert all(bool(value.isfinite().all()) for private in full for value in private.values)
    largest = 0.0
    for unit in range(0, ROWS, 1 if kind == "not finite" else 3):
        for first, second in zip(full, sums_of(critic, without_unit(batch, unit), loss), strict=True):
            for change, sensitivity in zip(squared_change(first, second), first.sensitivities, strict=True):
                assert change <= Fraction(sensitivity) ** 2
                largest = max(largest, float(change) / sensitivity**2)
    assert largest > 0.9


@pytest.mark.parametrize("kind", ["fake equals real", "fake near real", "large and nearly equal"])
def test_no_record_passes_more_than_its_norm(critic: ImageCritic, kind: str) -> None:
    """With λ = 0 and G(z) ≈ x the Grams cancel: float32 Gram norms would be far too low."""
    loss = CriticLoss(paired=True, gradient_penalty=0.0)
    gradients = convolution_gradients(image_critic_tensors(critic), make_batch(critic, kind), loss)
    for unit in range(ROWS):
        weights = torch.zeros_like(gradients.tensor_norms)
        weights[unit] = 1.0
        realised = torch.stack([part.double().norm() for part in gradients.weighted_sum(weights)])
        assert bool((realised <= gradients.tensor_norms[unit] * (1.0 + 1e-12)).all())


def test_the_others_keep_their_bits(critic: ImageCritic) -> None:
    batch = make_batch(critic, "random")
    no_unit = without_unit(batch, 4)

    def parts(gradients: PerUnitGradients, unit: int) -> list[Tensor]:
        weights = torch.zeros_like(gradients.tensor_norms)
        weights[unit] = 1.0
        return [gradients.tensor_norms[unit], *gradients.weighted_sum(weights)]

    for unit in (0, 3, 5, 7):
        whole, part = (
            parts(convolution_gradients(image_critic_tensors(critic), some, LOSSES[0]), unit)
            for some in (batch, no_unit)
        )
        assert all(torch.equal(a, b) for a, b in zip(whole, part, strict=True))


def test_stacked_rows_move_by_no_more_than_their_bound() -> None:
    """Rows that make float32 round upwards, in a block of 64 units: what one unit changes beyond itself."""
    critic = image_critic_tensors(ImageCritic((28, 28, 1), (64, 128, 256)))
    assert critic.is_stacked(2)
    rank, generator = 27, torch.Generator().manual_seed(2)
    left = 1.0 + torch.rand(64, rank, 8, generator=generator) * 2.0**-12
    right = 1.0 + torch.rand(64, rank, 9, generator=generator) * 2.0**-12
    part = StackedGradient(left, right, Workspace())
    weights = 1.0 / part.norms
    shortened = weights.clone()
    shortened[5] = 0.0
    moved = part.weighted_sum(weights) - part.weighted_sum(shortened)
    own = left[5].double().T @ right[5].double() * weights[5]
    # These rows do not cancel at all; those of the bound may, by STACKED_CANCELLATION.
    assert 0.0 < float((moved - own).norm()) <= critic.block_rounding() / STACKED_CANCELLATION


def test_only_as_many_units_share_a_product_as_its_bound_was_made_for() -> None:
    """Units of 27 rows: whole numbers whose sum over seven units float32 holds, and over more it does not."""
    left, right = torch.zeros(64, 27, 2), torch.zeros(64, 27, 3)
    left[:, 0], right[:, 0] = 2.0**21 + 1.0, 1.0
    total = StackedGradient(left, right, Workspace()).weighted_sum(torch.ones(64, dtype=torch.float64))
    assert bool((total == 64.0 * (2.0**21 + 1.0)).all())
