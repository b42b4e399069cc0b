"""The discrete Gaussian: the bounds of its tables in exact arithmetic, its tails, and both ways of drawing it."""

from __future__ import annotations

import math
from contextlib import nullcontext
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
import torch
from scipy import stats

from tests.without_kernels import without_kernels
from workers.mechanism import secure_random
from workers.mechanism.secure_random import SecureRandom
from workers.numerics import discrete_gaussian as tables
from workers.numerics.discrete_gaussian import table_for
from workers.numerics.kernels import kernels

VARIANCES = [1.2, 2.8, 30.0, 999.0, 128.0**2, 1e6, 2.0**40, 2.0**114]
BOTH_WAYS = [nullcontext, without_kernels]


def probabilities(variance: float, reach: int, fraction: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    values = np.arange(-reach, reach + 1)
    weights = np.array([float(mp.exp(-((int(k) - mp.mpf(fraction)) ** 2) / (2 * mp.mpf(variance)))) for k in values])
    return values, weights / weights.sum()


@pytest.mark.parametrize("variance", VARIANCES)
def test_every_bucket_has_room_for_all_its_integers_and_keeps_none_too_surely(variance: float) -> None:
    """In 60 digits: the positions given to a bucket are at least scale·exp(-k²/2v) for its k, and `sure` is at most that."""
    table = table_for(variance, is_centred=True)
    with mp.workdps(60):
        for bucket in range(table.buckets):
            start = table.first + (bucket << table.block_bits)
            ends = [abs(start), abs(start + table.block - 1)]
            near = 0 if start <= 0 < start + table.block else min(ends)
            most, least = (table.scale * mp.exp(-(mp.mpf(k) ** 2) / (2 * mp.mpf(variance))) for k in (near, max(ends)))
            given = int(table.cumulative[bucket + 1] - table.cumulative[bucket])
            assert most <= given <= most * (1 + 1e-11) + 3
            assert int(table.sure[bucket]) <= least
            if table.block == 1:
                assert int(table.sure[bucket]) >= least * (1 - 1e-11) - 3
        assert int(table.cumulative[-1]) < 2**63
        for start, weight in ((-table.first, table.right_weight), (1 - table.first, table.left_weight)):
            ratio = mp.exp(-mp.mpf(start) * table.block / mp.mpf(variance))
            assert table.scale * mp.exp(-(mp.mpf(start) ** 2) / (2 * mp.mpf(variance))) / (1 - ratio) <= weight


def test_buckets_around_a_fraction_hold_for_every_fraction() -> None:
    variance = 128.0**2
    table = table_for(variance, is_centred=False)
    with mp.workdps(60):
        for bucket in range(table.buckets):
            value = table.first + bucket
            shares = [
                table.scale * mp.exp(-((value - mp.mpf(f)) ** 2) / (2 * mp.mpf(variance)))
                for f in (-0.5, -0.25, 0.0, 0.5)
            ]
            assert int(table.cumulative[bucket + 1] - table.cumulative[bucket]) >= max(shares)
            assert int(table.sure[bucket]) <= min(shares)


@pytest.mark.parametrize("way", BOTH_WAYS)
@pytest.mark.parametrize("variance", [2.5, 30.0, 999.0])
def test_draws_follow_the_distribution(variance: float, way: type[nullcontext]) -> None:
    with way():
        drawn = SecureRandom.from_test_seed(7).discrete_gaussian(300, 1_000, variance=variance)
    assert drawn.shape == (300, 1_000)
    assert drawn.dtype == torch.int64
    reach = math.ceil(4.0 * math.sqrt(variance))
    values, expected = probabilities(variance, 3 * reach)
    flat = drawn.flatten().numpy()
    inner = np.abs(values) <= reach
    observed = np.array([(flat == value).sum() for value in values[inner]] + [(np.abs(flat) > reach).sum()])
    wanted = np.append(expected[inner], expected[~inner].sum()) * len(flat)
    assert stats.chisquare(observed, wanted).pvalue > 1e-4


@pytest.mark.parametrize("way", BOTH_WAYS)
@pytest.mark.parametrize("variance", [1e6, 2.0**40, 2.0**114])
def test_large_draws_are_normal_to_their_last_digit(variance: float, way: type[nullcontext]) -> None:
    with way():
        drawn = SecureRandom.from_test_seed(8).discrete_gaussian(200_000, variance=variance).numpy()
    assert stats.kstest(drawn / math.sqrt(variance), "norm").pvalue > 1e-4
    for divisor in (2, 3, 10, 16):
        assert stats.chisquare(np.bincount(drawn % divisor, minlength=divisor)).pvalue > 1e-4


@pytest.mark.parametrize("way", BOTH_WAYS)
@pytest.mark.parametrize("fraction", [0.0, 0.3, -0.5])
def test_draws_around_a_fraction(fraction: float, way: type[nullcontext]) -> None:
    with way():
        drawn = SecureRandom.from_test_seed(9).discrete_gaussian(
            200_000, variance=9.0, fractions=torch.full((200_000,), fraction, dtype=torch.float64)
        )
    values, expected = probabilities(9.0, 40, fraction)
    inner = np.abs(values) <= 11
    flat = drawn.numpy()
    observed = np.array([(flat == value).sum() for value in values[inner]] + [(np.abs(flat) > 11).sum()])
    wanted = np.append(expected[inner], expected[~inner].sum()) * len(flat)
    assert stats.chisquare(observed, wanted).pvalue > 1e-4


@pytest.mark.parametrize(
    ("variance", "fraction"), [(6.0, None), (6.0, -0.3), pytest.param(300.0**2, None, marks=pytest.mark.long)]
)
def test_tails_beyond_the_table_are_those_of_the_distribution(
    variance: float, fraction: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a table that ends at one standard deviation a third of all draws come from the tails, decided exactly."""

    def short(variance: float, *, is_centred: bool) -> tables.Table:
        return table_for(variance, is_centred=is_centred, reach=1.0)

    monkeypatch.setattr(secure_random, "table_for", short)
    count = 20_000
    fractions = None if fraction is None else torch.full((count,), fraction, dtype=torch.float64)
    drawn = SecureRandom.from_test_seed(3).discrete_gaussian(count, variance=variance, fractions=fractions).numpy()
    std = math.sqrt(variance)
    values, expected = probabilities(variance, math.ceil(8 * std), fraction or 0.0)
    edges = np.unique(np.round(np.linspace(-3 * std, 3 * std, 25))) + 0.5
    cells = np.searchsorted(edges, drawn)
    wanted = np.bincount(np.searchsorted(edges, values), weights=expected, minlength=len(edges) + 1) * count
    assert stats.chisquare(np.bincount(cells, minlength=len(edges) + 1), wanted).pvalue > 1e-4
    assert int((np.abs(drawn) > 1.5 * std).sum()) > 1_000


@pytest.mark.parametrize(("variance", "is_centred"), [(2.5, True), (999.0, True), (1e6, True), (128.0**2, False)])
def test_what_float64_decides_is_what_exact_arithmetic_decides(variance: float, *, is_centred: bool) -> None:
    """Positions around the last that is kept: none is decided by float64 unless the exact comparison agrees for every U."""
    table = table_for(variance, is_centred=is_centred)
    fraction = 0.0 if is_centred else 0.375
    with mp.workdps(60):
        for bucket in range(0, table.buckets, max(1, table.buckets // 40)):
            for offset in {0, table.block - 1}:
                value = table.first + (bucket << table.block_bits) + offset
                allowed = table.scale * mp.exp(-((value - mp.mpf(fraction)) ** 2) / (2 * mp.mpf(variance)))
                given = int(table.cumulative[bucket + 1] - table.cumulative[bucket])
                places = sorted(
                    {0, given - 1, *(max(0, min(given - 1, int(allowed) + d)) for d in (-(2**24), -1, 0, 1, 2**24))}
                )
                words = torch.tensor([int(table.cumulative[bucket]) + place for place in places])
                offsets = None if table.block == 1 else torch.full_like(words, offset)
                fractions = None if is_centred else torch.full((len(words),), fraction, dtype=torch.float64)
                values, verdicts = tables.attempt(table, words, offsets, fractions)
                assert values.tolist() == [value] * len(places)
                for place, verdict in zip(places, verdicts.tolist(), strict=True):
                    if verdict == tables.KEEP:
                        assert place + 1 <= allowed
                    elif verdict == tables.DRAW_AGAIN:
                        assert place >= allowed
                    else:
                        assert abs(place - allowed) <= allowed * 2.0**-39 + 4
                compiled = kernels(torch.device("cpu"))
                if compiled is not None:
                    found = torch.empty_like(words)
                    left = set(compiled.discrete_gaussian(table, words, offsets, fractions, found))
                    assert {i for i, verdict in enumerate(verdicts.tolist()) if verdict != tables.KEEP} == left
                    assert all(int(found[i]) == value for i in range(len(words)) if i not in left)


def test_an_undecided_word_is_settled_by_further_bits() -> None:
    """Of all words of the position where the allowed number ends, the part that is kept is its fractional part."""
    variance = 999.0
    table = table_for(variance, is_centred=True)
    stream = np.random.default_rng(5)
    bucket = table.buckets // 2 + 17
    value = table.first + bucket
    with mp.workdps(60):
        allowed = table.scale * mp.exp(-(mp.mpf(value) ** 2) / (2 * mp.mpf(variance)))
        place, part = int(mp.floor(allowed)), float(allowed - mp.floor(allowed))
    word = int(table.cumulative[bucket]) + place

    def bits(count: int) -> int:
        return int.from_bytes(stream.bytes(count // 8), "little")

    kept = sum(tables.settle(table, word, 0, 0.0, bits) == value for _ in range(2_000))
    assert stats.binomtest(kept, 2_000, part).pvalue > 1e-4
    assert tables.settle(table, word - 2, 0, 0.0, bits) == value
    assert tables.settle(table, word + 2, 0, 0.0, bits) is None


def test_bounds_of_the_exponential_enclose_it() -> None:
    for exponent in (Fraction(0), Fraction(1, 3), Fraction(81, 2), Fraction(10**9 + 7, 10**7)):
        low, high = tables._exponential(exponent, 40)
        with mp.workdps(90):
            true = mp.exp(-mp.mpf(exponent.numerator) / exponent.denominator)
            assert mp.mpf(low.numerator) / low.denominator <= true <= mp.mpf(high.numerator) / high.denominator
        assert high - low <= Fraction(1, 10**36)


def test_neither_way_leaves_an_end_to_the_noise() -> None:
    """A word that falls into a tail gives a value beyond the table, on either side, however far."""
    table = table_for(30.0, is_centred=True)
    stream = np.random.default_rng(1)

    def bits(count: int) -> int:
        return int.from_bytes(stream.bytes(count // 8), "little")

    left, right = int(table.cumulative[table.buckets]), int(table.cumulative[table.buckets + 1])
    lefts = [tables.settle(table, left, 0, 0.0, bits) for _ in range(300)]
    rights = [tables.settle(table, right, 0, 0.0, bits) for _ in range(300)]
    assert max(k for k in lefts if k is not None) == table.first - 1
    assert min(k for k in rights if k is not None) == -table.first
    assert len({*lefts, *rights}) > 4
