"""Single columns under much noise come closer to the ones without it; what stands out, and how strata differ, stays."""

from __future__ import annotations

import numpy as np
import pytest

from workers.methods.marginals.estimate.smoothing import Floats, NoisyColumn, smooth_columns

NOISE_STD = 15.0
TOTALS = np.array([120.0, 200.0])


def hump(cells: int, centre: float, width: float) -> Floats:
    places = (np.arange(cells) + 0.5) / cells
    shares = np.exp(-0.5 * ((places - centre) / width) ** 2)
    return shares / shares.sum()


def noisy(counts: Floats, seed: int, noise_std: float = NOISE_STD) -> Floats:
    return counts + noise_std * np.random.default_rng(seed).standard_normal(counts.shape)


def error(found: list[Floats], exact: list[Floats]) -> float:
    return float(np.mean([np.abs(f - e).mean() for f, e in zip(found, exact, strict=True)]))


def humps(columns: int, shift: float, totals: Floats = TOTALS) -> list[Floats]:
    """Ten cells each; the second stratum lies `shift` of the range further right in every column."""
    centres = np.random.default_rng(5).uniform(0.3, 0.6, columns)
    return [totals[:, None] * np.stack([hump(10, c, 0.15), hump(10, c + shift, 0.15)]) for c in centres]


@pytest.mark.parametrize("has_missing", [False, True])
def test_columns_in_order_lose_most_of_their_noise_and_keep_their_totals(has_missing: bool) -> None:
    exact = humps(12, 0.0)
    if has_missing:
        exact = [np.column_stack([0.75 * one, 0.25 * TOTALS]) for one in exact]
    columns = [
        NoisyColumn(noisy(one, seed), NOISE_STD**2, is_ordered=True, has_missing=has_missing)
        for seed, one in enumerate(exact)
    ]
    found = smooth_columns(columns, TOTALS)
    assert all(one.sum(axis=1) == pytest.approx(TOTALS) for one in found)
    assert error(found, exact) < 0.7 * error([column.counts for column in columns], exact)


def test_without_an_order_the_places_of_cells_do_not_matter() -> None:
    rng = np.random.default_rng(1)
    counts = [noisy(TOTALS[:, None] * rng.dirichlet(np.ones(9)), seed) for seed in range(4)]
    mixed = rng.permutation(9)
    there, back = (
        smooth_columns([NoisyColumn(one, NOISE_STD**2, is_ordered=False, has_missing=False) for one in each], TOTALS)
        for each in (counts, [one[:, mixed] for one in counts])
    )
    for one, other in zip(there, back, strict=True):
        assert one[:, mixed] == pytest.approx(other)


def test_a_spike_that_stands_out_from_the_noise_is_not_smoothed() -> None:
    exact = np.full((2, 10), 100.0)
    exact[:, 3] = 9_000.0
    column = NoisyColumn(noisy(exact, 1), NOISE_STD**2, is_ordered=True, has_missing=False)
    totals = exact.sum(axis=1)
    (found,) = smooth_columns([column], totals)
    assert found[:, 3] == pytest.approx(exact[:, 3], rel=0.01)
    assert np.abs(np.delete(found, 3, axis=1) - 100.0).max() < 5.0 * NOISE_STD


def test_how_slices_differ_loses_roughness_and_not_its_size() -> None:
    exact = humps(12, 0.25)
    columns = [
        NoisyColumn(noisy(one, seed), NOISE_STD**2, is_ordered=True, has_missing=False)
        for seed, one in enumerate(exact)
    ]
    found = smooth_columns(columns, TOTALS)
    centres = np.arange(10)

    def shift(counts: Floats) -> float:
        means = counts @ centres / counts.sum(axis=1)
        return float(means[1] - means[0])

    assert np.mean([shift(one) for one in found]) == pytest.approx(np.mean([shift(one) for one in exact]), rel=0.25)
    assert error(found, exact) < 0.75 * error([column.counts for column in columns], exact)


def test_slices_that_stand_out_from_the_noise_stay_as_they_are() -> None:
    totals = np.array([50_000.0, 40_000.0])
    exact = totals[:, None] * np.random.default_rng(2).dirichlet(np.ones(13), size=2)
    before = noisy(exact, 1)
    before += ((totals - before.sum(axis=1)) / 13)[:, None]
    (after,) = smooth_columns([NoisyColumn(before, NOISE_STD**2, is_ordered=False, has_missing=False)], totals)
    assert after == pytest.approx(before, abs=0.1 * NOISE_STD)


def test_nothing_but_noise_becomes_the_same_in_all_cells() -> None:
    columns = [
        NoisyColumn(noisy(np.full((1, 16), 5.0), seed), NOISE_STD**2, is_ordered=True, has_missing=False)
        for seed in range(8)
    ]
    found = smooth_columns(columns, np.array([80.0]))
    assert np.mean([np.abs(one - 5.0).mean() for one in found]) < 0.25 * NOISE_STD


@pytest.mark.parametrize("rows", [50.0, 1e8])
@pytest.mark.parametrize("is_ordered", [False, True])
def test_columns_of_a_cell_or_two_and_slices_without_rows_are_no_trouble(is_ordered: bool, rows: float) -> None:
    totals = np.array([rows, 1e-3])
    columns = [
        NoisyColumn(noisy(np.zeros((2, cells)), cells), NOISE_STD**2, is_ordered, has_missing)
        for cells, has_missing in ((1, False), (2, True), (2, False))
    ]
    found = smooth_columns(columns, totals)
    assert [one.shape for one in found] == [(2, 1), (2, 2), (2, 2)]
    assert all(np.isfinite(one).all() for one in found)
    assert all(one.sum(axis=1) == pytest.approx(totals, abs=1e-6) for one in found)
