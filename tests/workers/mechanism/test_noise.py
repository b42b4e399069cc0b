"""Distributions: the noise's size and shape in every group, whatever the allocation."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from workers.mechanism import PrivateSum
from workers.mechanism.noise import GRID_ROUNDING_VARIANCE, GRID_STD, Allocation, allocate, release
from workers.mechanism.secure_random import SecureRandom

ALLOCATIONS: list[Allocation] = ["least_noise", "equal_share", "flat"]

positive = st.floats(1e-6, 1e6)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
@settings(deadline=None)
@given(groups=st.lists(st.tuples(positive, st.integers(1, 10**7)), min_size=1, max_size=12), sigma=st.floats(0.01, 100))
def test_every_allocation_spends_exactly_the_step(
    allocation: Allocation, groups: list[tuple[float, int]], sigma: float
) -> None:
    clip_norms, sizes = zip(*groups, strict=True)
    stds = allocate(clip_norms, sizes, noise_multiplier=sigma, allocation=allocation)
    spent = sum((c / s) ** 2 for c, s in zip(clip_norms, stds, strict=True))
    assert spent == pytest.approx(1.0 / sigma**2, rel=1e-9)


@settings(deadline=None)
@given(groups=st.lists(st.tuples(positive, st.integers(1, 10**7)), min_size=1, max_size=12))
def test_least_noise_is_least(groups: list[tuple[float, int]]) -> None:
    clip_norms, sizes = zip(*groups, strict=True)

    def total(allocation: Allocation) -> float:
        stds = allocate(clip_norms, sizes, noise_multiplier=1.0, allocation=allocation)
        return sum(d * s * s for d, s in zip(sizes, stds, strict=True))

    assert total("least_noise") <= min(total("equal_share"), total("flat")) * (1 + 1e-9)


@pytest.mark.parametrize("allocation", ALLOCATIONS)
def test_noise_has_the_declared_std_in_every_group_and_is_normal(allocation: Allocation) -> None:
    randomness = SecureRandom.from_test_seed(1)
    values = (torch.full((300, 200), 5.0), torch.zeros(300, 100), torch.zeros(40_001))
    groups, clip_norms = ((0, 2), (1,)), (0.7, 3.0)
    noisy = release(
        PrivateSum(values, groups, clip_norms), noise_multiplier=1.7, randomness=randomness, allocation=allocation
    )
    stds = allocate(clip_norms, (100_001, 30_000), noise_multiplier=1.7, allocation=allocation)
    for group, std in zip(groups, stds, strict=True):
        noise = torch.cat([(noisy[t] - values[t]).flatten() for t in group]).numpy() / std
        assert noise.std() == pytest.approx(1.0, rel=0.01)
        assert abs(noise.mean()) < 4 / math.sqrt(len(noise))
        assert stats.kstest(noise, "norm").pvalue > 0.001


def test_sums_in_float64_are_released_on_a_public_grid() -> None:
    values = (torch.tensor([0.0, 1.0, math.pi, -1e5, 1e-12]), torch.tensor([3.0]))
    private = PrivateSum(values, ((0,), (1,)), (0.7, 2.0))
    noisy = release(private, noise_multiplier=1.7, randomness=SecureRandom.from_test_seed(1), allocation="flat")
    spacing = 1.7 * math.hypot(0.7, 2.0) / math.sqrt(GRID_STD**2 - GRID_ROUNDING_VARIANCE)
    for value in noisy:
        points = value / spacing
        assert float((points - points.round()).abs().max()) < 1e-4


def test_noise_on_the_grid_is_a_gaussian_around_the_sum_and_never_narrower_than_what_was_charged() -> None:
    """The grid does not pull: the mean is the sum itself, wherever between two points that is."""
    # So many draws that a sum which was rounded to a point of the grid first would show.
    count, spacing = 4_000_000, 1.0 / math.sqrt(GRID_STD**2 - GRID_ROUNDING_VARIANCE)
    for place in (0.0, 0.25, 0.5, 0.9):
        private = PrivateSum((torch.full((count,), (1000 + place) * spacing, dtype=torch.float64),), ((0,),), (1.0,))
        (noisy,) = release(private, noise_multiplier=1.0, randomness=SecureRandom.from_test_seed(5))
        mean = float(noisy.mean()) / spacing - 1000
        assert mean == pytest.approx(place, abs=4.5 * GRID_STD / math.sqrt(count))
        assert float(noisy.std()) == pytest.approx(1.0, rel=5e-3)


def test_whole_numbers_stay_whole_beside_sums_that_are_not() -> None:
    private = PrivateSum((torch.arange(4), torch.zeros(3)), ((1,), (0,)), (1.0, 1.0))
    counts, sums = release(private, noise_multiplier=2.0, randomness=SecureRandom.from_test_seed(1))
    assert (counts.dtype, sums.dtype) == (torch.int64, torch.float64)


def test_an_empty_draw_gets_noise_like_any_other() -> None:
    private = PrivateSum((torch.zeros(10_000),), ((0,),), (2.0,))
    (noisy,) = release(private, noise_multiplier=3.0, randomness=SecureRandom.from_test_seed(2))
    assert noisy.dtype == torch.float64
    assert float(noisy.std()) == pytest.approx(6.0, rel=0.03)
