"""Noised tables come nearer to the ones without noise, and what stands out from the noise stays."""

from __future__ import annotations

import numpy as np
import pytest

from workers.methods.marginals.estimate.denoising import Floats, by_ratios, by_shared_relations, by_singular_values

NOISE_STD = 20.0


def noised(counts: Floats) -> Floats:
    return counts + NOISE_STD * np.random.default_rng(1).standard_normal(counts.shape)


@pytest.mark.parametrize("cells", [(13, 13), (4, 13)])
def test_columns_that_say_nothing_of_each_other_become_independent(cells: tuple[int, int]) -> None:
    first, second = (np.full(size, 10_000.0 / size) for size in cells)
    independent = np.outer(first, second) / 10_000.0
    after = by_ratios(noised(independent), first, second, NOISE_STD)
    assert np.abs(after - independent).mean() < 0.1 * NOISE_STD
    assert after.sum(axis=1) == pytest.approx(first, rel=1e-3)
    assert after.sum(axis=0) == pytest.approx(second, rel=1e-3)


def test_an_empty_diagonal_is_found_by_ratios_and_not_by_singular_values() -> None:
    counts = np.full((13, 13), 10_000.0 / 156.0)
    np.fill_diagonal(counts, 0.0)
    first = counts.sum(axis=1)
    errors = [
        np.abs(denoise(noised(counts), first, first, NOISE_STD) - counts).mean()
        for denoise in (by_ratios, by_singular_values)
    ]
    assert errors[0] < 0.5 * errors[1]


def test_ratios_that_are_known_well_are_not_rounded() -> None:
    counts = np.random.default_rng(3).uniform(40_000.0, 160_000.0, (6, 7))
    first, second = counts.sum(axis=1), counts.sum(axis=0)
    after = by_ratios(noised(counts), first, second, NOISE_STD)
    assert np.abs(after - counts).mean() < 2.0 * NOISE_STD


def test_a_table_without_rows_or_of_one_cell_is_independent() -> None:
    assert by_ratios(noised(np.zeros((3, 2))), np.zeros(3), np.zeros(2), NOISE_STD) == pytest.approx(np.zeros((3, 2)))
    one = by_ratios(np.array([[30.0, -5.0]]), np.array([25.0]), np.array([24.0, 1.0]), NOISE_STD)
    assert one == pytest.approx(np.array([[24.0, 1.0]]))


def of_slices(rows: int, *, alike: bool) -> tuple[Floats, Floats, Floats]:
    """Tables (slices, 12, 8) of six slices of different size and margins, whose ratios to independence are alike or not; both margins."""
    generator = np.random.default_rng(3)
    shared = generator.lognormal(sigma=0.8, size=(12, 8))
    tables = []
    for place in range(6):
        margins = np.outer(generator.dirichlet(np.full(12, 5.0)), generator.dirichlet(np.full(8, 5.0)))
        own = shared if alike else generator.permuted(shared, axis=1)
        tables.append(rows * (1.0 + place) * margins * own / (margins * own).sum())
    counts = np.stack(tables)
    return counts, counts.sum(axis=2), counts.sum(axis=1)


def test_slices_share_what_their_columns_say_of_each_other() -> None:
    """Under noise that hides most of it in each of them."""
    counts, first, second = of_slices(1_000, alike=True)
    alone = np.stack([by_singular_values(*one, NOISE_STD) for one in zip(noised(counts), first, second, strict=True)])
    together = by_shared_relations(noised(counts), first, second, NOISE_STD)
    assert np.abs(together - counts).sum() < 0.8 * np.abs(alone - counts).sum()


@pytest.mark.parametrize("alike", [True, False])
def test_what_slices_say_beyond_each_other_is_not_lost(alike: bool) -> None:
    counts, first, second = of_slices(500, alike=alike)
    assert by_shared_relations(counts, first, second, 1e-9) == pytest.approx(counts, abs=1e-6)
    counts, first, second = of_slices(500_000, alike=alike)
    after = by_shared_relations(noised(counts), first, second, NOISE_STD)
    assert np.abs(after - counts).mean() < NOISE_STD


def test_an_empty_slice_is_left_empty_and_one_slice_is_what_it_is_alone() -> None:
    counts, first, second = of_slices(500, alike=True)
    counts[2], first[2], second[2] = 0.0, 0.0, 0.0
    after = by_shared_relations(counts, first, second, 1e-9)
    assert np.isfinite(after).all()
    assert after[2] == pytest.approx(np.zeros((12, 8)), abs=1e-6)
    one = noised(counts[:1])
    (alone,) = by_shared_relations(one, first[:1], second[:1], NOISE_STD)
    assert alone == pytest.approx(by_singular_values(one[0], first[0], second[0], NOISE_STD))
