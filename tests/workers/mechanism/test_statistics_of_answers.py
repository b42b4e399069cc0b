"""What one unit can move in the statistics behind answers, and what their releases say."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from scipy import stats

from workers.mechanism import RowsOfUnits
from workers.mechanism.exponential import WHOLE, bound_losses, choose, quantile_losses
from workers.mechanism.geometric import bounded_sum, cell_counts, half_width, release_integers
from workers.mechanism.key_threshold import frequent_keys, threshold
from workers.mechanism.noisy_maximum import largest_count
from workers.mechanism.secure_random import SecureRandom
from workers.mechanism.smooth_median import release_median, smooth_sensitivity

STARTS = np.array([0, 3, 5, 6, 9])
UNITS = RowsOfUnits(STARTS, 3)
CELLS = np.array([0, 0, 0, 1, 2, 1, 2, 2, 0])


def without(cells: np.ndarray, unit: int) -> np.ndarray:
    inside = (np.arange(len(cells)) >= STARTS[unit]) & (np.arange(len(cells)) < STARTS[unit + 1])
    return np.where(inside, -1, cells)


def test_counts_move_by_the_rows_of_a_unit_and_no_more() -> None:
    whole = cell_counts(CELLS, size=3, rows=UNITS)
    assert whole.values.tolist() == [4, 2, 3]
    assert whole.sensitivity == 3
    moved = [np.abs(whole.values - cell_counts(without(CELLS, u), size=3, rows=UNITS).values).sum() for u in range(4)]
    assert max(moved) == whole.sensitivity


def test_rows_beyond_the_most_of_a_unit_count_nowhere() -> None:
    few = RowsOfUnits(STARTS, 2)
    assert cell_counts(CELLS, size=3, rows=few).values.sum() == 7
    counted = np.ones(9, dtype=bool)
    assert bounded_sum(np.full(9, 5), counted, lowest=0, highest=5, rows=few).values.tolist() == [35]
    assert -largest_count(CELLS, size=3, rows=few).values.sum() == 7


def test_a_sum_moves_by_the_larger_end_for_each_row_of_a_unit() -> None:
    counted = np.ones(9, dtype=bool)
    private = bounded_sum(np.full(9, -40), counted, lowest=-7, highest=3, rows=UNITS)
    assert private.values.tolist() == [-63]
    assert private.sensitivity == 21
    rest = bounded_sum(np.full(9, -40), without(CELLS, 0) >= 0, lowest=-7, highest=3, rows=UNITS)
    assert abs(int(private.values[0] - rest.values[0])) == private.sensitivity


def test_noise_of_counts_is_that_of_all_rows_of_a_unit() -> None:
    """Δ = m: three rows of a unit need three times the noise of one."""
    randomness = SecureRandom.from_test_seed(3)
    cells = np.zeros(9, dtype=np.int64)
    private = cell_counts(np.tile(cells, 1), size=20_000, rows=UNITS)
    noisy = release_integers(private, epsilon=1.0, randomness=randomness)[1:]
    p = math.exp(-1.0 / 3.0)
    assert np.var(noisy) == pytest.approx(2.0 * p / (1.0 - p) ** 2, rel=0.08)
    assert np.mean(np.abs(noisy) > half_width(3, 1.0)) <= 0.05


def test_losses_of_quantiles_move_by_their_sensitivity_at_most() -> None:
    values = np.array([4, 1, 1, 3, 0, 2, 4, 4, 2])
    for part in (2_500, 5_000, 9_000):
        whole = quantile_losses(values, np.ones(9, dtype=bool), size=5, ten_thousandths=part, rows=UNITS)
        assert whole.sensitivity == 3 * max(part, WHOLE - part)
        for unit in range(4):
            rest = quantile_losses(values, without(CELLS, unit) >= 0, size=5, ten_thousandths=part, rows=UNITS)
            assert np.abs(whole.values - rest.values).max() <= whole.sensitivity
    below = [(values < t).sum() for t in range(1, 5)]
    middle = quantile_losses(values + 1, np.ones(9, dtype=bool), size=5, ten_thousandths=5_000, rows=UNITS)
    assert middle.values[1:].tolist() == [abs(WHOLE * b - 5_000 * 9) for b in below]


def test_losses_of_bounds_move_by_their_sensitivity_at_most() -> None:
    reached, everything = np.array([4, 1, 1, 3, 0, 2, 5, 4, 2]), np.ones(9, dtype=bool)  # 5: beyond all candidates
    for part in (50, 2_500, 5_000):
        whole = bound_losses(reached, everything, size=5, ten_thousandths=part, rows=UNITS)
        assert whole.sensitivity == 3 * max(part, WHOLE - part)
        for unit in range(4):
            rest = bound_losses(reached, without(CELLS, unit) >= 0, size=5, ten_thousandths=part, rows=UNITS)
            assert np.abs(whole.values - rest.values).max() <= whole.sensitivity
    far = np.array([7] * 3)
    alone = bound_losses(far, np.ones(3, dtype=bool), size=5, ten_thousandths=50, rows=RowsOfUnits(np.array([0, 3]), 3))
    none = bound_losses(far, np.zeros(3, dtype=bool), size=5, ten_thousandths=50, rows=RowsOfUnits(np.array([0, 3]), 3))
    assert (alone.values - none.values).tolist() == [alone.sensitivity] * 5, "the sensitivity is reached"


def test_a_bound_has_no_loss_where_the_rows_pass_it_alone() -> None:
    reached = np.repeat([2, 3], [98, 2])
    found = bound_losses(reached, np.ones(100, dtype=bool), size=6, ten_thousandths=500, rows=RowsOfUnits())
    assert found.values.tolist() == [95 * WHOLE, 95 * WHOLE, 0, 3 * WHOLE, 5 * WHOLE, 5 * WHOLE]


def test_a_bound_tells_no_more_than_its_epsilon() -> None:
    """In exact probabilities, over all tables of three units with two rows each: P ∝ exp(-ε·loss/2Δ)."""
    epsilon, rows = 0.8, RowsOfUnits(np.array([0, 2, 4, 6]), 2)

    def chances(reached: np.ndarray, counted: np.ndarray) -> np.ndarray:
        losses = bound_losses(reached, counted, size=3, ten_thousandths=2_500, rows=rows)
        weights = np.exp(-epsilon * losses.values / (2.0 * losses.sensitivity))
        return weights / weights.sum()

    everything, worst = np.ones(6, dtype=bool), 0.0
    for cells in itertools.product(range(4), repeat=6):
        reached = np.array(cells)
        whole = chances(reached, everything)
        for unit in range(3):
            rest = everything.copy()
            rest[2 * unit : 2 * unit + 2] = False
            worst = max(worst, np.abs(np.log(whole / chances(reached, rest))).max())
    assert 0.3 * epsilon < worst <= epsilon + 1e-12


def test_the_most_frequent_cell_is_chosen_as_often_as_its_count_says() -> None:
    randomness, draws = SecureRandom.from_test_seed(17), 6_000
    losses = largest_count(np.array([0] * 3 + [1] * 5 + [2] * 4), size=4, rows=RowsOfUnits())
    assert losses.is_monotone
    seen = np.bincount([choose(losses, epsilon=0.8, randomness=randomness) for _ in range(draws)], minlength=4)
    chances = np.exp(0.8 * np.array([3.0, 5.0, 4.0, 0.0]))
    assert stats.chisquare(seen, draws * chances / chances.sum()).pvalue > 1e-4


def test_the_most_frequent_cell_tells_no_more_than_its_epsilon() -> None:
    """In exact probabilities: every count may fall by up to three rows, all of them together by three."""
    epsilon = 0.9
    counts = np.array([6, 5, 3])
    for fall in itertools.product(range(4), repeat=3):
        if sum(fall) <= 3:
            before, after = (np.exp(epsilon * c / 3.0) for c in (counts, counts - np.array(fall)))
            ratio = (before / before.sum()) / (after / after.sum())
            assert np.abs(np.log(ratio)).max() <= epsilon + 1e-12


@pytest.mark.parametrize(
    ("epsilon", "failure", "most"), [(1.0, 1e-6, 1), (0.3, 1e-9, 1), (0.5, 1e-6, 4), (2.0, 1e-4, 7)]
)
def test_a_unit_alone_passes_the_threshold_as_rarely_as_is_charged(epsilon: float, failure: float, most: int) -> None:
    p = math.exp(-epsilon / most)

    def passes(count: int, least: int) -> float:
        return p ** (least - count) / (1.0 + p)

    def told(least: int) -> float:
        """The most likely way in which a unit's own rows, over any number of keys, are told."""
        return max(passes(most - keys + 1, least) + (keys - 1) * passes(1, least) for keys in range(1, most + 1))

    least = threshold(epsilon=epsilon, failure_probability=failure, most=most)
    assert told(least) <= failure
    assert told(least - 1) > failure
    if most == 1:
        assert abs(least - (1.0 + math.log(1.0 / (2.0 * failure)) / epsilon)) <= 1.0 + math.log(2.0) / epsilon


def test_a_quantile_is_chosen_with_half_of_its_epsilon_for_each_loss() -> None:
    """Losses of quantiles move both ways: P ∝ exp(-ε·loss/2Δ)."""
    randomness, draws = SecureRandom.from_test_seed(18), 6_000
    losses = quantile_losses(
        np.array([0, 1, 1, 2]), np.ones(4, dtype=bool), size=4, ten_thousandths=5_000, rows=RowsOfUnits()
    )
    assert losses.values.tolist() == [10_000, 10_000, 20_000, 20_000]
    seen = np.bincount([choose(losses, epsilon=1.2, randomness=randomness) for _ in range(draws)], minlength=4)
    chances = np.exp(-1.2 * np.array([1.0, 1.0, 2.0, 2.0]) / (2.0 * 0.5))
    assert stats.chisquare(seen, draws * chances / chances.sum()).pvalue > 1e-4


def test_the_most_frequent_cell_of_units_with_many_rows_is_chosen_more_at_random() -> None:
    randomness, draws = SecureRandom.from_test_seed(19), 6_000
    losses = largest_count(CELLS, size=3, rows=UNITS)
    seen = np.bincount([choose(losses, epsilon=1.5, randomness=randomness) for _ in range(draws)], minlength=3)
    chances = np.exp(1.5 * np.array([4.0, 2.0, 3.0]) / 3.0)
    assert stats.chisquare(seen, draws * chances / chances.sum()).pvalue > 1e-4


def test_keys_of_a_unit_alone_are_told_as_rarely_as_is_charged() -> None:
    randomness, failure = SecureRandom.from_test_seed(8), 0.01
    keys = np.arange(200_000)  # every row has a key of its own
    told, counts = frequent_keys(
        keys,
        np.ones(len(keys), dtype=bool),
        rows=RowsOfUnits(),
        epsilon=1.0,
        failure_probability=failure,
        randomness=randomness,
    )
    assert len(told) <= failure * len(keys) + 4.0 * math.sqrt(failure * len(keys))
    assert (counts >= threshold(epsilon=1.0, failure_probability=failure, most=1)).all()
    common, _ = frequent_keys(
        np.repeat([7, 3, 9], [100, 80, 1]),
        np.ones(181, dtype=bool),
        rows=RowsOfUnits(),
        epsilon=1.0,
        failure_probability=1e-9,
        randomness=randomness,
    )
    assert common.tolist() == [3, 7]


# -- the median


def brute_force(places: tuple[int, ...], size: int, beta: float) -> float:
    """Over all datasets: the largest e^(-β·distance) times how far one more change moves the median there."""
    n, middle = len(places), (len(places) - 1) // 2

    def median(points: tuple[int, ...]) -> int:
        return sorted(points)[middle]

    best = 1.0
    # Only sorted datasets matter; their distance is the number of points that must change.
    for other in itertools.combinations_with_replacement(range(size), n):
        shared = sum(min(places.count(v), other.count(v)) for v in range(size))
        local = max(
            abs(median((*other[:at], moved, *other[at + 1 :])) - median(other))
            for at in range(n)
            for moved in (0, size - 1)
        )
        best = max(best, math.exp(-beta * (n - shared)) * local)
    return best


@pytest.mark.parametrize("beta", [0.05, 0.5, 2.0])
def test_smooth_sensitivity_is_that_of_all_datasets(beta: float) -> None:
    rng = np.random.default_rng(2)
    for n in range(1, 9):
        size = 6 if n <= 6 else 4
        for _ in range(6):
            places = tuple(rng.integers(0, size, n).tolist())
            found = smooth_sensitivity(np.array(places), size=size, beta=beta)
            assert found == pytest.approx(brute_force(places, size, beta), rel=1e-12), places


def test_the_work_for_a_sensitivity_does_not_tell_where_the_median_is(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    exp = np.exp
    monkeypatch.setattr(np, "exp", lambda exponents: (looked_at.append(np.size(exponents)), exp(exponents))[1])
    work = []
    for median in (0, 3, 30, 99):
        looked_at.clear()
        smooth_sensitivity(np.full(50, median), size=100, beta=0.1)
        work.append(list(looked_at))
    assert all(one == work[0] for one in work)


def cell_chances(median: int, scale: float, size: int) -> list[float]:
    """Of each place, that of a Cauchy variable of this scale around the median, rounded and clamped."""
    cdf = [0.5 + float(mp.atan((k + 0.5 - median) / scale)) / math.pi for k in range(size - 1)]
    ends = [0.0, *cdf, 1.0]
    return [high - low for low, high in itertools.pairwise(ends)]


def test_a_noisy_median_tells_no_more_than_its_epsilon() -> None:
    """In exact probabilities, for every dataset of five units and every unit that takes the middle of the range instead."""
    size, epsilon, n = 7, 0.9, 5

    def chances(places: tuple[int, ...]) -> np.ndarray:
        sensitivity = smooth_sensitivity(np.array(places), size=size, beta=epsilon / 6.0)
        return np.array(cell_chances(sorted(places)[(n - 1) // 2], 6.0 * sensitivity / epsilon, size))

    known = {places: chances(places) for places in itertools.combinations_with_replacement(range(size), n)}
    for places, own in known.items():
        for at in range(n):
            other = known[tuple(sorted((*places[:at], 3, *places[at + 1 :])))]
            assert np.abs(np.log(own / other)).max() <= epsilon


@pytest.mark.parametrize("epsilon", [0.5, 3.0])
def test_a_median_is_released_with_cauchy_noise_of_six_times_its_smooth_sensitivity(epsilon: float) -> None:
    randomness, size, draws = SecureRandom.from_test_seed(9), 21, 6_000
    places = np.array([9, 10, 10, 10, 11, 12, 3, 18, 10])
    sensitivity = smooth_sensitivity(places, size=size, beta=epsilon / 6.0)
    drawn = [release_median(places, size=size, epsilon=epsilon, randomness=randomness) for _ in range(draws)]
    expected = draws * np.array(cell_chances(10, 6.0 * sensitivity / epsilon, size))
    assert stats.chisquare(np.bincount(drawn, minlength=size), expected).pvalue > 1e-4


def test_many_values_at_the_median_need_little_noise() -> None:
    together, apart = np.full(2_001, 500), np.arange(2_001) % 1_000
    tight, wide = (smooth_sensitivity(each, size=1_000, beta=1.0 / 6.0) for each in (together, apart))
    assert tight == 1.0
    assert 1.0 < wide < 20.0
    assert smooth_sensitivity(np.array([], dtype=np.int64), size=9, beta=1.0) == 8.0
    randomness = SecureRandom.from_test_seed(1)  # noise of heavy tails: a draw in some thousand is still large
    assert Fraction(1, 2) < Fraction(release_median(together, size=1_000, epsilon=50.0, randomness=randomness), 500)
