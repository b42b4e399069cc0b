"""Gradients that are clipped and added up in one go are those of the engine; on a GPU whatever was replayed before."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

import tests.workers.mechanism.test_convolutions as of_images
import tests.workers.mechanism.test_gradients as of_tables
from workers.engines.choosing import GradientEngine, choose_engine
from workers.engines.replayed import padded_units
from workers.mechanism import CriticBatch, CriticLoss, DrawBounds, PerUnitGradients
from workers.mechanism.clipping import ClippedSum, clip_and_sum
from workers.networks.image import ImageCritic
from workers.networks.table import TableCritic
from workers.numerics.replays import MOST_HELD, Replays
from workers.numerics.workspace import Workspace

GPU = pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU"))
DEVICES = ["cpu", GPU]
GROUPINGS = [(((0, 1, 2, 3, 4),), (0.3,)), (((0, 2), (1, 3), (4,)), (0.3, 0.05, 1e3))]
LOSS = CriticLoss(paired=True, gradient_penalty=10.0)


def engines_of(critic: TableCritic | ImageCritic, rows_per_unit: int = 1) -> tuple[GradientEngine, GradientEngine]:
    """As it is, and replaying."""
    plain = choose_engine(critic, rows_per_unit=rows_per_unit, workspace=Workspace())
    parts = (critic, plain.name, plain.units_per_block, rows_per_unit, Workspace())
    return GradientEngine(*parts), GradientEngine(*parts, Replays())


def part_of(batch: CriticBatch, units: int) -> CriticBatch:
    rows = units * batch.rows_per_unit
    parts = (batch.real[:rows], batch.fake[:rows], batch.mix[:rows], batch.present[:rows])
    return CriticBatch(*parts, rows_per_unit=batch.rows_per_unit)


def clipped(
    gradients: PerUnitGradients,
    critic: TableCritic | ImageCritic,
    grouping: tuple[tuple[tuple[int, ...], ...], tuple[float, ...]],
) -> ClippedSum:
    tensors = list(critic.parameters())
    groups, norms = grouping
    if len(tensors) > 5:
        groups, norms = (*groups, tuple(range(5, len(tensors)))), (*norms, 0.2)
    bounds = DrawBounds(most_units=1_000, units_per_block=1_000, rows_per_unit=1)
    shapes = [tensor.shape for tensor in tensors]
    return clip_and_sum(
        [gradients], groups=groups, clip_norms=norms, shapes=shapes, bounds=bounds, device=tensors[0].device
    )


def assert_same(made: ClippedSum, wanted: ClippedSum) -> None:
    together = (torch.cat([value.flatten() for value in part.sum.values]) for part in (made, wanted))
    torch.testing.assert_close(*together, rtol=1e-5, atol=1e-6)
    for ours, theirs in zip(made.found, wanted.found, strict=True):
        assert torch.equal(ours[1], theirs[1])
        torch.testing.assert_close(ours[0][ours[1]], theirs[0][theirs[1]], rtol=1e-5, atol=1e-7)


def on(device: str, batch: CriticBatch) -> CriticBatch:
    parts = (part.to(device) for part in (batch.real, batch.fake, batch.mix, batch.present))
    return CriticBatch(*parts, rows_per_unit=batch.rows_per_unit)


def with_one_that_overflows(batch: CriticBatch) -> CriticBatch:
    real = batch.real.clone()
    real[0] = 3e38
    return CriticBatch(real, batch.fake, batch.mix, batch.present, batch.rows_per_unit)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["random", "null records", "outliers"])
def test_perceptrons(device: str, kind: str) -> None:
    critic = of_tables.make_critic(torch.float32).to(device)
    plain, replaying = engines_of(critic)
    for units in (32, 5, 17, 32):
        batch = part_of(on(device, of_tables.make_batch(32, torch.float32, kind)), units)
        for grouping in GROUPINGS:
            made = clipped(replaying.gradients(batch, LOSS), critic, grouping)
            assert_same(made, clipped(plain.gradients(batch, LOSS), critic, grouping))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", of_images.CRITICS)
def test_images(device: str, name: str) -> None:
    critic = of_images.make_critic(name).to(device)
    plain, replaying = engines_of(critic)
    whole = on(device, of_images.make_batch(critic, "random"))
    for units in (whole.units, 2, whole.units):
        batch = part_of(whole, units)
        made = clipped(replaying.gradients(batch, LOSS), critic, GROUPINGS[1])
        assert_same(made, clipped(plain.gradients(batch, LOSS), critic, GROUPINGS[1]))


@pytest.mark.parametrize("device", DEVICES)
def test_units_of_several_rows(device: str) -> None:
    critic = of_tables.make_critic(torch.float32).to(device)
    plain, replaying = engines_of(critic, rows_per_unit=4)
    rows = on(device, of_tables.make_batch(32, torch.float32, "null records"))
    whole = CriticBatch(rows.real, rows.fake, rows.mix, rows.present, rows_per_unit=4)
    for units in (8, 3):
        batch = part_of(whole, units)
        made = clipped(replaying.gradients(batch, LOSS), critic, GROUPINGS[0])
        assert_same(made, clipped(plain.gradients(batch, LOSS), critic, GROUPINGS[0]))


@pytest.mark.parametrize("device", DEVICES)
def test_a_unit_that_overflows_is_left_out_and_leaves_nothing_to_the_next_block(device: str) -> None:
    critic = of_tables.make_critic(torch.float32).to(device)
    plain, replaying = engines_of(critic)
    batch = on(device, of_tables.make_batch(32, torch.float32, "random"))
    made = clipped(replaying.gradients(with_one_that_overflows(batch), LOSS), critic, GROUPINGS[0])
    assert not made.found[0][1][0]
    assert made.found[0][1][1:].all()
    assert all(bool(value.isfinite().all()) for value in made.sum.values)
    small = part_of(batch, 4)
    wanted = clipped(plain.gradients(small, LOSS), critic, GROUPINGS[0])
    assert_same(clipped(replaying.gradients(small, LOSS), critic, GROUPINGS[0]), wanted)


@pytest.mark.parametrize("device", DEVICES)
def test_a_unit_moves_the_sum_of_a_group_by_its_clip_norm_at_most(device: str) -> None:
    critic = of_tables.make_critic(torch.float32).to(device)
    _, replaying = engines_of(critic)
    batch = on(device, of_tables.make_batch(32, torch.float32, "outliers"))
    whole = clipped(replaying.gradients(batch, LOSS), critic, GROUPINGS[1]).sum
    longest = [0.0] * len(whole.groups)
    for unit in range(32):
        present = batch.present.clone()
        present[unit] = False
        neighbour = CriticBatch(batch.real, batch.fake, batch.mix, present)
        other = clipped(replaying.gradients(neighbour, LOSS), critic, GROUPINGS[1]).sum
        for k, group in enumerate(whole.groups):
            moved = torch.cat([(whole.values[m] - other.values[m]).flatten() for m in group]).norm()
            assert float(moved) <= whole.sensitivities[k]
            longest[k] = max(longest[k], float(moved) / whole.sensitivities[k])
    assert longest[0] > 0.99
    assert longest[1] > 0.99


@pytest.mark.parametrize("device", DEVICES)
def test_the_critic_is_the_one_that_has_moved_and_the_loss_the_one_asked_for(device: str) -> None:
    critic = of_tables.make_critic(torch.float32).to(device)
    plain, replaying = engines_of(critic)
    batch = on(device, of_tables.make_batch(32, torch.float32, "random"))
    other = CriticLoss(paired=False, gradient_penalty=1.0)
    for loss in (LOSS, other, LOSS):
        with torch.no_grad():
            for tensor in critic.parameters():
                tensor.mul_(0.9)
        made = clipped(replaying.gradients(batch, loss), critic, GROUPINGS[1])
        assert_same(made, clipped(plain.gradients(batch, loss), critic, GROUPINGS[1]))


def test_norms_and_sums_without_clipping_are_the_engines() -> None:
    critic = of_tables.make_critic(torch.float32)
    plain, replaying = engines_of(critic)
    batch = of_tables.make_batch(32, torch.float32, "random")
    found = replaying.gradients(batch, LOSS)
    torch.testing.assert_close(found.tensor_norms, plain.gradients(batch, LOSS).tensor_norms)
    weights = torch.rand(32, len(list(critic.parameters())), dtype=torch.float64)
    pairs = zip(found.weighted_sum(weights), plain.gradients(batch, LOSS).weighted_sum(weights), strict=True)
    for made, wanted in pairs:
        torch.testing.assert_close(made, wanted)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_more_sizes_than_are_held() -> None:
    def double(inputs: Sequence[Tensor], _workspace: Workspace) -> tuple[Tensor, ...]:
        return (inputs[0] * 2.0,)

    replays = Replays()
    for size in [*range(1, MOST_HELD + 4), 1, 2]:
        rows = torch.rand(size, 3, device="cuda")
        (doubled,) = replays.run(size, double, (rows,), (size + 2,))
        assert torch.equal(doubled[:size], rows * 2.0)
        assert not doubled[size:].any()
        assert len(replays._held) <= MOST_HELD


def test_draws_of_about_the_same_size_are_padded_to_few_sizes() -> None:
    for expected in (64, 256, 4_096, 16_000):
        about = range(int(expected - 4 * expected**0.5), int(expected + 4 * expected**0.5))
        padded = {padded_units(units) for units in about}
        assert len(padded) <= 6
        assert all(units <= padded_units(units) <= 1.2 * units + 32 for units in about)
