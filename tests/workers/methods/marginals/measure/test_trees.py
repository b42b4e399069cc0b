"""Trees of noisy counts: consistent, bounded, chosen by noisy counts alone; bins and shared values read off them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.domain.field_schema import FieldSchema
from service.domain.value_grids import ValueGrid
from workers.encoding.table import ColumnDomain
from workers.methods.marginals.estimate.within_bins import shares_of_bins
from workers.methods.marginals.measure.trees import MOST_REFINED, Count, Places, RangeTree, digits_in_use, grow

ROWS = 20_000


def column_of(low: float, high: float, *, bins: int = 32, **more: Any) -> tuple[ColumnDomain, ValueGrid]:
    constraints = {"minimum": low, "maximum": high, "required": True}
    field = FieldSchema.model_validate({"name": "x", "type": "number", "constraints": constraints, **more})
    column = ColumnDomain.from_field(field, numeric_bins=bins)
    assert column.value_grid is not None
    return column, column.value_grid


MONEY, CENTS = column_of(-2_000_000, 2_000_000, decimals=2)


class Counted:
    """Counts of these values with noise, and what was asked for."""

    def __init__(self, values: np.ndarray, noise_std: float, grid: ValueGrid = CENTS, seed: int = 0) -> None:
        self.sorted = np.sort(grid.places(values)).astype(np.int64)
        self.noise_std, self.random = noise_std, np.random.default_rng(seed)
        self.asked: list[tuple[Places, Places]] = []

    def __call__(self, starts: Places, stops: Places) -> Places:
        self.asked.append((starts, stops))
        exact = np.searchsorted(self.sorted, stops) - np.searchsorted(self.sorted, starts)
        return exact + self.random.normal(0.0, self.noise_std, len(starts)).round().astype(np.int64)


def amounts(rows: int = ROWS, seed: int = 1) -> np.ndarray:
    """A third is nothing, a fifth 9.99; others are lognormal."""
    random = np.random.default_rng(seed)
    kind, others = random.random(rows), np.exp(random.normal(4.0, 1.5, rows))
    return np.round(np.where(kind < 1 / 3, 0.0, np.where(kind < 1 / 3 + 0.2, 9.99, others)), 2)


def tree_of(values: np.ndarray, noise_std: float, seed: int = 0) -> RangeTree:
    return grow(CENTS, MONEY, Counted(values, noise_std, seed=seed), noise_std=noise_std)


def test_intervals_cover_the_range_and_their_rows_are_possible() -> None:
    for noise_std in (1.0, 30.0, 300.0, 1e5):
        tree = tree_of(amounts(), noise_std)
        assert tree.starts[0] == 0
        assert (tree.stops > tree.starts).all()
        assert tree.stops[-1] == CENTS.size
        assert (tree.rows >= 0.0).all()
    assert tree_of(amounts(), 1.0).rows.sum() == pytest.approx(ROWS, abs=20)


def test_a_value_of_a_tenth_of_the_rows_is_found_under_much_noise() -> None:
    """Each level that shrank it towards its neighbours would take a part of it."""
    random = np.random.default_rng(1)
    values = np.where(random.random(ROWS) < 0.1, 1_234.56, random.uniform(-2e6, 2e6, ROWS).round(2))
    for seed in range(5):
        tree = tree_of(values, 0.015 * ROWS, seed=seed)
        (place,) = CENTS.places(np.array([1_234.56])).tolist()
        found = np.flatnonzero(tree.single & (tree.starts == place))
        assert len(found) == 1
        assert tree.rows[found[0]] > 0.07 * ROWS


def test_levels_are_averaged_by_their_precision_and_parts_add_up() -> None:
    """A node's own count is three times as precise as the sum of its three parts; what noise leaves open is even."""
    column, grid = column_of(0, 5, bins=2, decimals=0)

    def given(*answers: list[int]) -> Count:
        left = iter(answers)
        return lambda *_: np.array(next(left))

    tree = grow(grid, column, given([90, 0], [29, 30, 31]), noise_std=1.0)
    assert tree.starts.tolist() == [0, 1, 2, 3]
    assert tree.rows.tolist() == pytest.approx([30.0, 30.0, 30.0, 0.0], abs=0.2)
    tree = grow(grid, column, given([94, 0], [0, 90, 0]), noise_std=5.0)
    assert tree.rows.sum() == pytest.approx((94 / 1 + 90 / 3) / (1 + 1 / 3))
    assert tree.rows[1] > 88.0


def test_which_nodes_are_counted_follows_from_noisy_counts_alone() -> None:
    """The same answers, whatever rows are behind them, lead to the same questions; each is all parts of nodes that stand out."""
    answers: list[Places] = []
    first = Counted(amounts(), 25.0)

    def recorded(starts: Places, stops: Places) -> Places:
        answers.append(first(starts, stops))
        return answers[-1]

    grow(CENTS, MONEY, recorded, noise_std=25.0)
    asked: list[tuple[Places, Places]] = []

    def replayed(starts: Places, stops: Places) -> Places:
        asked.append((starts, stops))
        return answers[len(asked) - 1]

    grow(CENTS, MONEY, replayed, noise_std=25.0)
    assert len(asked) == len(first.asked) == CENTS.tree(32)[0]
    assert all(
        (a == b).all() for one, other in zip(asked, first.asked, strict=True) for a, b in zip(one, other, strict=True)
    )
    for (starts, stops), counts, (parts, ends) in zip(asked, answers, asked[1:], strict=False):
        refined = np.flatnonzero((counts > 3 * 25.0) & (stops - starts > 1))
        covered = np.concatenate([np.arange(1)] + [[starts[node], stops[node]] for node in refined])[1:]
        assert set(covered.tolist()) <= {*parts.tolist(), *ends.tolist()}
        assert (ends - parts).sum() == (stops - starts)[refined].sum()  # empty parts, too


@pytest.mark.parametrize("noise_std", [1e-3, 0.5, 30.0])
def test_a_level_has_a_bounded_number_of_nodes(noise_std: float) -> None:
    spread = np.random.default_rng(2).uniform(-2e6, 2e6, 60_000).round(2)
    counted = Counted(spread, noise_std)
    grow(CENTS, MONEY, counted, noise_std=noise_std)
    _, parts = CENTS.tree(32)
    assert max(len(starts) for starts, _ in counted.asked) <= MOST_REFINED * parts
    assert all((starts[1:] >= stops[:-1]).all() for starts, stops in counted.asked)


def test_next_to_nothing_is_counted_where_there_are_no_rows() -> None:
    counted = Counted(np.zeros(0), 30.0)
    tree = grow(CENTS, MONEY, counted, noise_std=30.0)
    assert sum(len(starts) for starts, _ in counted.asked) < 32 + 40 * CENTS.tree(32)[1]
    assert len(tree.bins(32)) >= 1
    assert RangeTree.from_json(tree.to_json()).rows.tolist() == tree.rows.tolist()


@pytest.mark.parametrize("noise_std", [1.0, 30.0, 100.0])
def test_bins_hold_about_equally_many_rows_and_frequent_values_are_bins(noise_std: float) -> None:
    values, tree = amounts(), tree_of(amounts(), noise_std)
    for most in (2, 8, 32):
        starts = tree.bins(most)
        assert starts[0] == 0
        assert (np.diff(starts) > 0).all()
        assert len(starts) <= 2 * most
    edges = MONEY.with_bins(starts).edges
    assert edges is not None
    assert (edges[0], edges[-1]) == (-2e6, 2e6)
    for value in (0.0, 9.99):
        place = edges.index(value)
        assert edges[place + 1] == pytest.approx(value + 0.01)
    held, _ = np.histogram(values, edges)
    others = held[held < 0.15 * ROWS]
    assert others.max() < ROWS / 8


def test_under_noise_that_hides_everything_bins_are_some_and_within_the_range() -> None:
    starts = tree_of(amounts(), 1e6).bins(32)
    assert 1 <= len(starts) <= 64
    assert starts[0] == 0
    assert (starts < CENTS.size).all()


def shares_in(tree: RangeTree, edges: list[float], rows: list[float]) -> dict[float, float]:
    return dict(shares_of_bins(tree, CENTS, drawn_from=CENTS, edges=np.array(edges), rows=np.array(rows)))


def test_shared_values_have_their_part_of_a_bin() -> None:
    tree = tree_of(amounts(), 20.0)
    shares = shares_in(tree, [-2e6, 0.0, 50.0, 2e6], [0.0, 15_000.0, 5_000.0])
    assert shares[0.0] == pytest.approx(ROWS / 3 / 15_000, abs=0.03)
    assert shares[9.99] == pytest.approx(ROWS / 5 / 15_000, abs=0.03)
    assert list(shares) == sorted(shares)
    # More rows than a bin seems to have are all of it.
    assert sum(shares_in(tree, [-2e6, 0.0, 50.0, 2e6], [0.0, 0.0, 0.0]).values()) <= 1.0 + 1e-9


def test_few_values_are_shared_by_noise_alone_and_none_in_an_even_spread() -> None:
    spread = np.random.default_rng(3).uniform(0, 1e5, ROWS).round(2)
    found = sum(len(shares_in(tree_of(spread, 30.0, seed), [-2e6, 2e6], [ROWS])) for seed in range(10))
    assert found <= 4
    column, grid = column_of(0, 99, bins=4, decimals=0)
    even = np.repeat(np.arange(100.0), 400)
    tree = grow(grid, column, Counted(even, 5.0, grid), noise_std=5.0)
    assert shares_of_bins(tree, grid, drawn_from=grid, edges=np.array(column.edges), rows=np.full(4, 1e4)) == ()


@pytest.mark.parametrize("digits", [0, 1, 2])
def test_digits_that_numbers_do_not_have_are_found_out(digits: int) -> None:
    _, grid = column_of(0, 40)
    values = np.random.default_rng(3).integers(1, 40 * 10**digits, size=10_000) / 10**digits
    counts = np.bincount(grid.roundness(grid.places(values).astype(np.int64)), minlength=len(grid.multiples))
    noisy = counts + np.random.default_rng(4).normal(0.0, 40.0, len(counts)).round().astype(np.int64)
    assert digits_in_use(noisy, grid, noise_std=40.0) == digits
    assert digits_in_use(noisy, grid, noise_std=4_000.0) is None
    noisy[0] += 2_000  # some rows have all digits
    assert digits_in_use(noisy, grid, noise_std=40.0) is None
