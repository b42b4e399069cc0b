"""Cells of an open range: cut where many rows are, equal elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from workers.methods.marginals.measure.open_ranges import SHARES_OF_A_PART, cells_by_counts, share_of_a_part

EQUAL = np.repeat(np.arange(5), 4)
"""Five equal cells of four codes each."""


def test_a_cell_of_many_rows_is_cut_and_others_are_left() -> None:
    counts = np.array([40.0, 30.0, 1.0, 9.0, *[1.0] * 12, 2.0, 2.0, 0.0, 0.0])
    assert cells_by_counts(counts, noise_std=0.1, fewest_rows=12.0, equal_cells=EQUAL).tolist() == [
        *(0, 1, 1, 1),  # what is left over, ten rows of a hundred, joins the part before it
        *(2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4),
        *(5, 5, 5, 5),
    ]


def test_parts_stand_out_from_the_noise() -> None:
    counts = np.array([40.0, 30.0, 0.0, 0.0, *[0.0] * 16])
    assert cells_by_counts(counts, noise_std=12.0, fewest_rows=12.0, equal_cells=EQUAL)[:4].tolist() == [0, 0, 0, 0]


def test_parts_are_smaller_where_there_is_less_noise() -> None:
    shares = [share_of_a_part(noise) for noise in (0.0, 0.04, 0.15, 0.2, 100.0)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == SHARES_OF_A_PART
    assert SHARES_OF_A_PART[0] < shares[2] < SHARES_OF_A_PART[1]


def test_a_missing_code_stays_alone() -> None:
    counts = np.array([*[1.0] * 20, 900.0])
    cells = cells_by_counts(counts, noise_std=0.1, fewest_rows=50.0, equal_cells=EQUAL)
    assert cells[-1] == 5
    assert (cells[:-1] < 5).all()


@pytest.mark.parametrize("noise_std", [0.0, 3.0, 1e4])
def test_cells_are_in_order_and_within_equal_ones_and_never_too_small(noise_std: float) -> None:
    generator = np.random.default_rng(1)
    for _ in range(50):
        counts = 1_000.0 * generator.dirichlet(np.full(20, 0.2)) + noise_std * generator.standard_normal(20)
        cells = cells_by_counts(counts, noise_std=noise_std, fewest_rows=120.0, equal_cells=EQUAL)
        assert cells[0] == 0
        assert set(np.diff(cells).tolist()) <= {0, 1}
        assert np.isin(np.flatnonzero(np.diff(EQUAL)), np.flatnonzero(np.diff(cells))).all()
        held = np.bincount(cells, weights=counts)
        of_equal = np.array([EQUAL[cells == cell][0] for cell in range(len(held))])
        cut = np.bincount(of_equal)[of_equal] > 1
        assert (held[cut] >= 120.0 - 4.0 * noise_std).all()
