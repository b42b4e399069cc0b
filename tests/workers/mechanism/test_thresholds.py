"""Histograms of gradient norms: sensitivity, fixed grid, and the rules that read thresholds off them."""

from __future__ import annotations

import math

import pytest
import torch

from workers.mechanism.noise import MOST_STEPS, drawn_std, release
from workers.mechanism.secure_random import SecureRandom
from workers.mechanism.thresholds import geometric_grid, norm_histogram, thresholds_from

EDGES = geometric_grid(smallest=1e-3, largest=1e2, bins=5)  # 0.001, 0.01, 0.1, 1, 10, 100


def test_one_unit_moves_the_joint_histogram_by_root_of_tensors() -> None:
    generator = torch.Generator().manual_seed(1)
    norms = torch.logspace(-6, 6, 700, dtype=torch.float64)[torch.randint(700, (20, 7), generator=generator)]
    full = norm_histogram(norms, EDGES)
    assert full.sensitivities == pytest.approx((math.sqrt(7),), rel=1e-15)
    for unit in range(20):
        rest = norm_histogram(torch.cat((norms[:unit], norms[unit + 1 :])), EDGES)
        change = (full.values[0] - rest.values[0]).double().norm()
        assert float(change) == pytest.approx(math.sqrt(7))


def test_an_outlier_moves_its_own_counts_only() -> None:
    """The paper's bins end at the batch maximum, so one outlier moves every count."""
    norms = torch.full((50, 1), 0.5, dtype=torch.float64)
    with_outlier = norm_histogram(torch.cat((norms, torch.tensor([[1e12]], dtype=torch.float64))), EDGES)
    difference = with_outlier.values[0] - norm_histogram(norms, EDGES).values[0]
    assert difference.tolist() == [[0, 0, 0, 0, 0, 0, 1]]


def test_noise_on_a_count_is_multiplier_times_root_of_tensors() -> None:
    norms = torch.rand(0, 4, dtype=torch.float64)
    grid = geometric_grid(smallest=1e-3, largest=1.0, bins=5_000)
    (noisy,) = release(norm_histogram(norms, grid), noise_multiplier=3.0, randomness=SecureRandom.from_test_seed(1))
    assert noisy.shape == (4, 5_002)
    assert noisy.dtype == torch.int64
    assert float(noisy.double().std()) == pytest.approx(drawn_std(3.0 * 2.0, moved=4 * MOST_STEPS), rel=0.02)


def test_rules() -> None:
    histogram = torch.tensor(
        [[9.0, 1, 1, 1, 1, 1, 1], [0, 0, 5, 1, 0, 0, 0], [0, 0, 0, 0, 0, 1, 9], [-5, -5, 4, 4, -5, 2, -5]],
        dtype=torch.float64,
    )
    mode = thresholds_from(histogram, EDGES, rule="mode", quantile=0.5)
    assert mode == pytest.approx((1e-3, 1e-1, 1e2, 1e-1))
    median = thresholds_from(histogram, EDGES, rule="quantile", quantile=0.5)
    assert median == pytest.approx((1e-3, 1e-1, 1e2, 1.0))


@pytest.mark.parametrize("rule", ["mode", "quantile"])
def test_thresholds_stay_on_the_grid_whatever_the_noise(rule: str) -> None:
    generator = torch.Generator().manual_seed(2)
    for _ in range(50):
        noisy = torch.randn(6, 7, generator=generator, dtype=torch.float64) - 1.0
        for threshold in thresholds_from(noisy, EDGES, rule=rule, quantile=0.9):
            assert float((EDGES - threshold).abs().min()) == 0.0
