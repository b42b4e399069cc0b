"""The engines on a GPU, in float32, against vmap in float64 on the CPU; and noise that a GPU makes of the keystream."""

from __future__ import annotations

import pytest
import torch
from scipy import stats
from torch import Tensor

import tests.workers.mechanism.test_convolutions as of_images
import tests.workers.mechanism.test_gradients as of_tables
from tests.without_kernels import without_kernels
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, PerUnitGradients, secure_random
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.secure_random import SecureRandom
from workers.networks.image import ImageCritic
from workers.networks.table import TableCritic

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

CPU, GPU = torch.device("cpu"), torch.device("cuda")
GROUPS, CLIP_NORMS = ((0, 2), (1, 3)), (0.3, 0.05)


def moved(batch: CriticBatch) -> CriticBatch:
    parts = (batch.real, batch.fake, batch.mix, batch.present)
    return CriticBatch(*(part.to(GPU) for part in parts), rows_per_unit=batch.rows_per_unit)


def clipped(gradients: PerUnitGradients, critic: TableCritic | ImageCritic, device: torch.device) -> tuple[Tensor, ...]:
    shapes = [tensor.shape for tensor in critic.parameters()]
    last = tuple(range(4, len(shapes)))
    bounds = DrawBounds(most_units=100, units_per_block=100, rows_per_unit=1)
    groups, norms = (*GROUPS, last) if last else GROUPS, (*CLIP_NORMS, 0.2) if last else CLIP_NORMS
    made = clip_and_sum([gradients], groups=groups, clip_norms=norms, shapes=shapes, bounds=bounds, device=device)
    return tuple(value.cpu() for value in made.sum.values)


def assert_near(engine: PerUnitGradients, truth: PerUnitGradients, critic: TableCritic | ImageCritic) -> None:
    """Within a millionth, of the longest gradient of a unit and of the longest sum."""
    assert torch.equal(engine.contributes.cpu(), truth.contributes)
    of_tables.assert_close(clipped(engine, critic, GPU), clipped(truth, critic, CPU), 1e-6)
    scale = truth.tensor_norms.max(dim=1)[0].clamp(min=1.0)
    off = (engine.tensor_norms.cpu() - truth.tensor_norms).abs().max(dim=1)[0]
    assert bool((off <= 1e-6 * scale)[truth.contributes].all())


@pytest.mark.parametrize("loss", of_tables.LOSSES, ids=str)
@pytest.mark.parametrize("kind", ["random", "identical records", "one hot", "null records", "outliers"])
def test_perceptrons(loss: CriticLoss, kind: str) -> None:
    critic, batch = of_tables.make_critic(torch.float32), of_tables.make_batch(32, torch.float32, kind)
    truth = of_tables.oracle_of(critic, batch, loss)
    engine = of_tables.perceptron_gradients(of_tables.perceptron(critic.to(GPU)), moved(batch), loss)
    assert_near(engine, truth, critic)


@pytest.mark.parametrize("name", of_images.CRITICS)
@pytest.mark.parametrize("loss", of_images.LOSSES, ids=str)
@pytest.mark.parametrize("kind", ["random", "identical records", "null records"])
def test_convolutions(name: str, loss: CriticLoss, kind: str) -> None:
    critic = of_images.make_critic(name)
    batch = of_images.make_batch(critic, kind)
    truth = of_images.vmap_gradients(of_images.in_float64(critic), of_images.doubled(batch), loss)
    assert_near(of_images.fast(critic.to(GPU), moved(batch), loss), truth, critic)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_noise_is_that_of_the_same_keystream(dtype: torch.dtype) -> None:
    near, far = (SecureRandom.from_test_seed(3).normals(150_001, dtype=dtype, device=device) for device in (CPU, GPU))
    assert far.device.type == "cuda"
    torch.testing.assert_close(far.cpu(), near, rtol=1e-4 if dtype == torch.float32 else 1e-12, atol=1e-5)
    assert len(torch.unique(far)) > 0.99 * len(far)


def test_what_is_drawn_next_waits_for_what_was_drawn_to_be_fetched() -> None:
    near, far = (SecureRandom.from_test_seed(4) for _ in range(2))
    busy = torch.rand(4_000, 4_000, device=GPU)
    busy = busy @ busy  # the GPU is behind when the first numbers are sent
    drawn = [far.normals(count, device=GPU) for count in (300_001, 5, 300_001)]
    for there in drawn:
        torch.testing.assert_close(there.cpu(), near.normals(len(there)), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [7, 300_001])
def test_discrete_noise_is_that_of_the_same_keystream(count: int) -> None:
    """As on a processor without a compiler, which asks the same words in the same order."""
    fractions = torch.rand(count, dtype=torch.float64) - 0.5
    with without_kernels():
        near = SecureRandom.from_test_seed(5).discrete_gaussian(count, variance=128.0**2, fractions=fractions)
    far = SecureRandom.from_test_seed(5).discrete_gaussian(
        count, variance=128.0**2, fractions=fractions.to(GPU), device=GPU
    )
    assert far.device.type == "cuda"
    if count <= secure_random.VALUES_AT_ONCE:  # longer ones are drawn in other pieces there
        assert torch.equal(far.cpu(), near)
    assert stats.kstest((far.cpu() - fractions).numpy() / 128.0, "norm").pvalue > 1e-4
