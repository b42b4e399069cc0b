"""Along a column whose relations are smooth, tables lose what is noise; where they have spikes or no order, nothing is touched."""

from __future__ import annotations

import numpy as np
import pytest

from workers.methods.marginals.estimate.denoising import Floats, beyond_independence, by_singular_values
from workers.methods.marginals.estimate.pair_smoothing import kept_waves

NOISE_STD = 20.0
CELLS, OTHERS, TABLES = 24, 10, 8


def smooth_relations() -> list[Floats]:
    """Tables (cells, others) in which each cell of the other column lies about a place of its own."""
    places = np.arange(CELLS)
    middles = np.linspace(4.0, 18.0, OTHERS)
    table = np.exp(-0.5 * ((places[:, None] - middles) / 6.0) ** 2)
    return [20_000.0 * table / table.sum()] * TABLES


def relations_of_a_spike() -> list[Floats]:
    """All cells are alike, but for one."""
    table = np.full((CELLS, OTHERS), 20_000.0 / (CELLS * OTHERS))
    table[15] *= np.linspace(0.2, 1.8, OTHERS)
    return [table] * TABLES


def noised(tables: list[Floats]) -> list[Floats]:
    rng = np.random.default_rng(1)
    return [table + NOISE_STD * rng.standard_normal(table.shape) for table in tables]


def beyond(table: Floats, real: Floats) -> Floats:
    return beyond_independence(table, real.sum(axis=1), real.sum(axis=0))[1]


def kept_of(real: list[Floats]) -> Floats | None:
    return kept_waves([(beyond(one, other)[None], NOISE_STD**2) for one, other in zip(noised(real), real, strict=True)])


def test_smooth_relations_are_told_better_without_the_rough_waves() -> None:
    real = smooth_relations()
    kept = kept_of(real)
    assert kept is not None
    assert kept.shape == (1, CELLS)
    assert kept[0, :2] == pytest.approx(1.0)
    assert (np.diff(kept[0]) <= 1e-12).all()
    assert kept[0, CELLS // 2 :].mean() < 0.2

    def error(waves: Floats | None) -> float:
        tables = zip(noised(real), real, strict=True)
        return sum(
            float(
                np.square(
                    by_singular_values(one, other.sum(axis=1), other.sum(axis=0), NOISE_STD, (waves, None)) - other
                ).sum()
            )
            for one, other in tables
        )

    assert error(kept[0]) < 0.6 * error(None)


def test_either_column_may_be_the_smooth_one() -> None:
    (one, *_), (real, *_) = noised(smooth_relations()), smooth_relations()
    kept, rows, columns = kept_of(smooth_relations()), real.sum(axis=1), real.sum(axis=0)
    assert kept is not None
    lying = by_singular_values(one, rows, columns, NOISE_STD, (kept[0], None))
    standing = by_singular_values(one.T, columns, rows, NOISE_STD, (None, kept[0]))
    np.testing.assert_allclose(standing.T, lying)


def test_a_missing_cell_is_no_neighbour_of_the_last() -> None:
    """It stands behind the cells in order, and smoothing them leaves its row as it is."""
    (one, *_), (real, *_) = noised(smooth_relations()), smooth_relations()
    kept = np.linspace(1.0, 0.0, CELLS)
    missing = np.linspace(900.0, 0.0, OTHERS)
    first, second = np.append(real.sum(axis=1), missing.sum()), real.sum(axis=0) + missing
    found = [
        by_singular_values(np.vstack([one, missing]), first, second, 1e-9, (waves, None)) for waves in (kept, None)
    ]
    assert found[0][-1] == pytest.approx(found[1][-1])
    assert found[0].sum(axis=0) == pytest.approx(found[1].sum(axis=0))
    assert np.abs(found[0] - found[1]).max() > NOISE_STD


@pytest.mark.parametrize("order", ["a spike", "no order"])
def test_relations_that_are_not_smooth_stay_as_they_are(order: str) -> None:
    real = relations_of_a_spike()
    if order == "no order":
        shuffled = np.random.default_rng(2).permutation(CELLS)
        real = [table[shuffled] for table in smooth_relations()]
    assert kept_of(real) is None


def test_a_few_cells_are_not_smoothed() -> None:
    assert kept_of([table[:, :5].T for table in smooth_relations()]) is None
    assert kept_waves([]) is None


def test_a_slice_in_which_nothing_stands_out_is_not_touched() -> None:
    """Its singular values decide, which know how large the noise is."""
    real = smooth_relations()
    quiet = np.random.default_rng(4).normal(scale=0.5 * NOISE_STD, size=(CELLS, OTHERS))
    kept = kept_waves(
        [
            (np.stack([beyond(one, other), quiet - quiet.mean(axis=1, keepdims=True)]), NOISE_STD**2)
            for one, other in zip(noised(real), real, strict=True)
        ]
    )
    assert kept is not None
    assert kept[1] == pytest.approx(1.0)
    assert kept[0, -1] < 0.3
