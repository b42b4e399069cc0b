"""Tables and scores: neighbouring tables in exact integers, blocks, groups, and the whole-number noise on them."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from scipy import stats

from workers.mechanism import PrivateSum
from workers.mechanism.marginals import TableLayout, count_intervals, count_tables, pair_scores
from workers.mechanism.noise import LARGEST_NOISE_STD, count_noise_stds, drawn_std, release_counts
from workers.mechanism.secure_random import SecureRandom

ABSENT = 65_535
WIDTHS = (5, 3, 9, 2)
LAYOUTS = {
    "plain": TableLayout(WIDTHS, (5, 3, 4, 2), (False, False, True, False), None),
    "sliced": TableLayout(WIDTHS, (5, 3, 4, 2), (False, False, True, False), 1),
    "pairs of all rows": TableLayout(WIDTHS, (5, 3, 4, 2), (False, False, True, False), 1, pairs_are_sliced=False),
    "all of all rows": TableLayout(WIDTHS, (5, 3, 4, 2), (False, False, True, False), 1).of_all_rows(),
}


def tables_of(layout):
    return [*((i,) for i in layout.free), *combinations(layout.free, 2)]


def random_codes(rows, seed=0):
    generator = np.random.default_rng(seed)
    return np.stack([generator.integers(width, size=rows) for width in WIDTHS], axis=1).astype(np.uint16)


def zeroed(codes, rows):
    neighbour = codes.copy()
    neighbour[rows] = ABSENT
    return neighbour


def exact_change(one: PrivateSum, other: PrivateSum) -> list[int]:
    """Squared L2 change of each group, in whole numbers."""
    return [int(((a - b) ** 2).sum()) for a, b in zip(one.values, other.values, strict=True)]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_row_adds_one_to_one_cell_of_every_table(layout):
    codes = random_codes(60)
    tables = tables_of(layout)
    full = count_tables(codes, layout, tables)
    assert full.sensitivities == (1.0,) * len(tables)
    assert full.groups == tuple((place,) for place in range(len(tables)))
    for row in range(len(codes)):
        assert exact_change(full, count_tables(zeroed(codes, [row]), layout, tables)) == [1] * len(tables)


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("most", [1, 3, 50])
def test_a_whole_unit_moves_a_table_by_at_most_its_bound_and_by_no_less(layout, most):
    codes = random_codes(90)
    codes[30:45] = [4, 2, 8, 1]  # one unit of fifteen equal rows: all in one cell of every table
    starts = np.array([0, 1, 1, 30, 45, 60, 90])
    tables = tables_of(layout)
    full = count_tables(codes, layout, tables, unit_starts=starts, max_rows_per_unit=most)
    assert full.sensitivities == (float(most),) * len(tables)
    for unit in range(len(starts) - 1):
        rows = np.arange(starts[unit], starts[unit + 1])
        without = count_tables(zeroed(codes, rows), layout, tables, unit_starts=starts, max_rows_per_unit=most)
        changes = exact_change(full, without)
        assert max(changes) <= most**2
        if unit == 3:
            assert changes == [min(most, 15) ** 2] * len(tables)


def test_counts_are_those_of_a_plain_loop_whatever_the_blocks():
    layout = LAYOUTS["sliced"]
    codes = zeroed(random_codes(500, seed=3), [7, 99])
    starts = np.sort(np.concatenate(([0, 500], np.random.default_rng(1).integers(500, size=80))))
    tables = tables_of(layout)
    wanted = {table: np.zeros(layout.shape(table), dtype=np.int64) for table in tables}
    for unit in range(len(starts) - 1):
        for code in codes[starts[unit] : starts[unit + 1]][:4]:
            if (code == ABSENT).any():
                continue
            for table in tables:
                if len(table) == 1:
                    wanted[table][code[1], code[table[0]]] += 1
                else:
                    i, j = table
                    wanted[table][code[1], layout.groups_of(i)[code[i]], layout.groups_of(j)[code[j]]] += 1
    for block_rows in (1, 7, 500, 65_536):
        counted = count_tables(codes, layout, tables, unit_starts=starts, max_rows_per_unit=4, block_rows=block_rows)
        for table, counts in zip(tables, counted.values, strict=True):
            assert (counts.numpy() == wanted[table]).all()


def test_tables_of_all_rows_are_those_of_the_slices_together():
    codes = random_codes(300, seed=4)
    tables = tables_of(LAYOUTS["sliced"])
    sliced, pairs_whole, whole = (
        count_tables(codes, LAYOUTS[name], tables).values for name in ("sliced", "pairs of all rows", "all of all rows")
    )
    for table, one, other, third in zip(tables, sliced, pairs_whole, whole, strict=True):
        assert (third == one.sum(dim=0, keepdim=True)).all()
        assert (other == (one if len(table) == 1 else third)).all()


def test_groups_are_of_neighbours_and_a_missing_cell_has_its_own():
    layout = TableLayout((9, 9, 4), (4, 4, 4), (True, False, True), None)
    assert layout.groups_of(0).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3]
    assert sorted(set(layout.groups_of(1).tolist())) == [0, 1, 2, 3]
    assert (np.diff(layout.groups_of(1)) >= 0).all()
    assert layout.groups_of(2).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("most", [1, 4])
def test_scores_move_by_the_declared_amount_at_most(layout, most):
    codes = random_codes(80, seed=5)
    codes[:20] = [0, 0, 0, 0]
    starts = np.arange(0, 81, 20) if most > 1 else None
    pairs = list(combinations(layout.free, 2))
    generator = np.random.default_rng(2)
    expected = {pair: generator.integers(0, 5, size=layout.shape(pair)) for pair in pairs}
    for counts in expected.values():
        counts[:, 0, 0] = 0  # so that the equal rows of the first unit count in full
    full = pair_scores(codes, layout, expected, unit_starts=starts, max_rows_per_unit=most)
    assert full.sensitivities == (pytest.approx(most * math.sqrt(len(pairs))),)
    worst = 0
    for unit in range(4 if most > 1 else 80):
        rows = np.arange(20 * unit, 20 * unit + 20) if most > 1 else np.array([unit])
        without = pair_scores(zeroed(codes, rows), layout, expected, unit_starts=starts, max_rows_per_unit=most)
        (change,) = exact_change(full, without)
        worst = max(worst, change)
        assert change <= most**2 * len(pairs)
    assert worst == most**2 * len(pairs)


def test_noise_of_all_tables_together_is_what_was_charged():
    sensitivities, sizes = (2.0, 2.0, 2.0, 2.0), [6.0, 40.0, 900.0, 3.0]
    for exponent in (0.0, 0.5, 2 / 3, 1.0):
        stds = count_noise_stds(sensitivities, sizes, noise_multiplier=3.0, exponent=exponent)
        assert sum((c / s) ** 2 for c, s in zip(sensitivities, stds, strict=True)) == pytest.approx(1 / 9)
    stds = count_noise_stds(sensitivities, sizes, noise_multiplier=3.0, exponent=2 / 3)
    error = sum(d * s for d, s in zip(sizes, stds, strict=True))
    for other in (0.0, 0.5, 0.6, 0.8, 1.0):
        others = count_noise_stds(sensitivities, sizes, noise_multiplier=3.0, exponent=other)
        assert error < sum(d * s for d, s in zip(sizes, others, strict=True))


def test_released_counts_are_whole_and_carry_the_noise_of_their_table():
    zeros = PrivateSum(
        (torch.zeros(40_000, dtype=torch.int64), torch.zeros(200, 200, dtype=torch.int64)), ((0,), (1,)), (1.0, 1.0)
    )
    stds = count_noise_stds((1.0, 1.0), [10.0, 200.0], noise_multiplier=5.0, exponent=2 / 3)
    noisy = release_counts(zeros, noise_stds=stds, noise_multiplier=5.0, randomness=SecureRandom.from_test_seed(4))
    for counts, std in zip(noisy, stds, strict=True):
        assert counts.dtype == torch.int64
        sample = counts.double().flatten().numpy()
        assert sample.std() == pytest.approx(drawn_std(std, moved=2), rel=0.015)
        assert abs(sample.mean()) < 4 * std / math.sqrt(sample.size)
        jittered = sample + np.random.default_rng(0).uniform(-0.5, 0.5, size=sample.size)
        assert stats.kstest(jittered / math.sqrt(drawn_std(std, moved=2) ** 2 + 1 / 12), "norm").pvalue > 1e-4


def test_less_noise_than_charged_is_refused():
    one = PrivateSum((torch.zeros(4, dtype=torch.int64),) * 4, ((0,), (1,), (2,), (3,)), (1.0,) * 4)
    randomness = SecureRandom.from_test_seed(1)
    release_counts(one, noise_stds=[6.0] * 4, noise_multiplier=3.0, randomness=randomness)
    with pytest.raises(ValueError, match="smaller"):
        release_counts(one, noise_stds=[5.9] * 4, noise_multiplier=3.0, randomness=randomness)


@pytest.mark.parametrize("noise_std", [1.01 * LARGEST_NOISE_STD, 1e20, 1e300, math.inf, math.nan])
def test_noise_that_whole_numbers_cannot_hold_is_refused_instead_of_vanishing(noise_std):
    """float64 beyond 2^63 becomes -2^63, whatever it is: counts would come out as they are, less a constant."""
    counts = PrivateSum((torch.arange(6),), ((0,),), (1.0,))
    with pytest.raises(ValueError, match=r"larger than whole numbers|smaller than what was charged"):
        release_counts(counts, noise_stds=[noise_std], noise_multiplier=1.0, randomness=SecureRandom.from_test_seed(1))


def test_the_largest_noise_is_noise_to_its_last_digit():
    zeros = PrivateSum((torch.zeros(40_000, dtype=torch.int64),), ((0,),), (1.0,))
    (noisy,) = release_counts(
        zeros, noise_stds=[LARGEST_NOISE_STD], noise_multiplier=1.0, randomness=SecureRandom.from_test_seed(1)
    )
    assert stats.kstest(noisy.double().numpy() / LARGEST_NOISE_STD, "norm").pvalue > 1e-3
    for digit in (2, 3, 10):
        assert stats.chisquare(np.bincount(noisy.numpy() % digit)).pvalue > 1e-3


@pytest.mark.parametrize("most", [1, 3, 50])
def test_a_whole_unit_moves_the_counts_of_intervals_by_at_most_its_bound_and_by_no_less(most):
    places = np.random.default_rng(2).integers(7, size=90).astype(np.uint32)
    places[30:45] = 4  # one unit of fifteen rows with one value
    starts = np.array([0, 1, 1, 30, 45, 60, 90])

    def counts(own):
        ends = np.arange(8)
        return count_intervals(own, ends[:-1], ends[1:], unit_starts=starts, max_rows_per_unit=most, block_rows=16)

    full = counts(places)
    assert full.sensitivities == (float(most),)
    for unit in range(len(starts) - 1):
        zeroed_places = places.copy()
        zeroed_places[starts[unit] : starts[unit + 1]] = 7
        (change,) = exact_change(full, counts(zeroed_places))
        assert change <= most**2
        if unit == 3:
            assert change == min(most, 15) ** 2


def test_places_in_no_interval_count_nowhere():
    places = np.array([0, 2, 2, 3, 4, 9, 10, ABSENT], dtype=np.uint32)
    counted = count_intervals(places, np.array([1, 3, 9]), np.array([3, 4, 10]), block_rows=2)
    assert counted.values[0].tolist() == [2, 1, 1]
    assert counted.sensitivities == (1.0,)


@pytest.mark.parametrize(("starts", "stops"), [([0, 3], [4, 6]), ([3, 0], [4, 2]), ([2], [2])])
def test_intervals_that_overlap_are_refused(starts, stops):
    with pytest.raises(ValueError, match="overlap"):
        count_intervals(np.zeros(3, np.uint32), np.array(starts), np.array(stops))
