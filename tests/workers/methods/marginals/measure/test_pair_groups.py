"""Groups of cells for two-way tables: what is alone, what is together, and how fine."""

from __future__ import annotations

import math

import numpy as np
import pytest

from workers.mechanism.marginals import TableLayout
from workers.methods.marginals.measure.pair_groups import ROWS_BY_NOISE, group_by_counts, rare_together

SKEWED = np.array([0.5, 0.04, 0.03, 0.03, 0.3, 0.02, 0.05, 0.02, 0.01, 0.0])


def test_neighbours_are_together_where_there_is_an_order_and_frequent_cells_are_alone() -> None:
    assert rare_together(SKEWED, 0.1, in_order=True).tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 3, 3]
    assert rare_together(SKEWED, 0.06, in_order=True).tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 3, 3]
    assert rare_together(SKEWED, 0.045, in_order=True).tolist() == [0, 1, 1, 1, 2, 3, 4, 5, 5, 5]


def test_any_rare_categories_are_together() -> None:
    assert rare_together(SKEWED, 0.08, in_order=False).tolist() == [0, 1, 1, 1, 2, 3, 3, 3, 3, 3]
    assert rare_together(SKEWED, 0.15, in_order=False).tolist() == [0, 1, 1, 1, 2, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("in_order", [True, False])
def test_cells_that_are_all_alone_keep_their_places(in_order: bool) -> None:
    """One rare cell among frequent ones is alone, too; the fit takes as many groups as cells for the cells themselves."""
    shares = np.array([0.3, 0.01, 0.4, 0.29])
    assert rare_together(shares, 0.05, in_order=in_order).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("in_order", [True, False])
def test_every_cell_has_one_group_and_groups_get_fewer(in_order: bool) -> None:
    generator = np.random.default_rng(1)
    for cells in (1, 2, 17, 300):
        shares = generator.dirichlet(np.full(cells, 0.1))
        numbers = []
        for smallest in (1e-6, 1e-3, 0.05, 0.4, 1.0):
            groups = rare_together(shares, smallest, in_order=in_order)
            assert sorted(set(groups)) == list(range(groups.max() + 1))
            assert not in_order or (np.diff(groups) >= 0).all()
            frequent = shares >= smallest
            assert all((groups == groups[cell]).sum() == 1 for cell in np.flatnonzero(frequent))
            numbers.append(int(groups.max()) + 1)
        assert numbers == sorted(numbers, reverse=True) or in_order


def layout_of(noise: float, *, most: int = 40) -> TableLayout:
    """Two columns of 100 skewed cells, the first with a missing one, and the label."""
    layout = TableLayout((101, 100, 2), (min(most, 101), min(most, 100), 2), (True, False, False), 2)
    shares = np.exp(-np.arange(100) / 10.0)
    shares /= shares.sum()
    return group_by_counts(
        layout,
        {0: np.append(shares * 0.9, 0.1), 1: shares},
        rows=10_000.0,
        in_order={0: True, 1: False},
        noise=lambda one: noise * math.sqrt(one.pair_widths[0]),
    )


def test_groups_are_as_fine_as_the_noise_allows() -> None:
    assert 30 < layout_of(0.1).pair_widths[0] <= 40  # no more than the order's
    assert layout_of(1e9).pair_widths[0] == 2  # the missing cell has its own
    numbers = [layout_of(noise).pair_widths[0] for noise in (3.0, 30.0, 300.0, 1e9)]
    assert numbers == sorted(set(numbers), reverse=True)
    for noise in (3.0, 30.0, 300.0):
        layout = layout_of(noise)
        sizes = np.bincount(layout.groups_of(0)[:100], weights=np.exp(-np.arange(100) / 10.0) / 10.5 * 0.9)
        assert 10_000.0 * sizes[1:-1].min() > 0.9 * ROWS_BY_NOISE * noise * math.sqrt(layout.pair_widths[0])


def test_the_label_and_single_columns_keep_their_cells() -> None:
    layout = layout_of(100.0)
    assert layout.shape((0,)) == (2, 101)
    assert layout.slices == layout.pair_widths[2] == 2
    assert layout.groups_of(2).tolist() == [0, 1]
    assert layout.shape((0, 1)) == (2, *layout.pair_widths[:2])
    assert layout.groups_of(0)[-1] == layout.pair_widths[0] - 1
    assert (layout.groups_of(0) == layout.groups_of(0)[-1]).sum() == 1
