"""A mixture goes towards the estimates of single columns where they know more than it does, and stays where they are noise."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from workers.methods.marginals.fit.mixture_fit import ExpectedCounts, NoisyTables, TwinFits, expected_counts
from workers.methods.marginals.fit.raking import rake_where_better, raked
from workers.methods.marginals.fit.stopping import EstimatedRisk, shifted
from workers.methods.marginals.measure.measured import Measured

WIDTHS = (7, 12)
SPANS = {0: slice(0, 7), 1: slice(7, 19)}
ROWS = (20_000.0, 5_000.0)
"""Of two strata."""


def tables_with(one_way: Tensor) -> NoisyTables:
    return NoisyTables(
        one_way=one_way,
        one_way_precision=torch.ones(19),
        two_way=torch.zeros(2, 19, 19),
        two_way_precision=torch.zeros(19, 19),
        totals=torch.tensor(ROWS),
        widths=WIDTHS,
        groups=tuple(torch.arange(width) for width in WIDTHS),
    )


@pytest.fixture
def truth() -> Tensor:
    """(strata, components, W) logits."""
    return torch.randn(2, 16, 19, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def expected(truth: Tensor) -> ExpectedCounts:
    return expected_counts(truth, tables_with(torch.ones(2, 19)))


def measured_with(noise_std: float, expected: ExpectedCounts, seed: int) -> list[Measured]:
    rng = np.random.default_rng(seed)
    exact = {
        (0,): expected.one_way[:, SPANS[0]],
        (1,): expected.one_way[:, SPANS[1]],
        (0, 1): expected.two_way[:, SPANS[0], SPANS[1]],
    }
    stds = {columns: noise_std if len(columns) == 1 else 60.0 for columns in exact}
    return [
        Measured(
            columns, counts.double().numpy() + stds[columns] * rng.standard_normal(counts.shape), stds[columns] ** 2
        )
        for columns, counts in exact.items()
    ]


def one_way_of(measured: list[Measured]) -> Tensor:
    """As they were measured, and never empty."""
    singles = [torch.from_numpy(m.counts).float().clamp(min=1.0) for m in measured if len(m.columns) == 1]
    return torch.cat(singles, dim=1)


def choose(fitted: Tensor, expected: ExpectedCounts, *, noise_std: float, seed: int) -> Tensor:
    """Which of fits that do not depend on the noise is taken: (strata, W) one-way counts."""
    measured = measured_with(noise_std, expected, seed)
    twin = list(shifted(measured, seed=seed + 100))
    tables, twin_tables = tables_with(one_way_of(measured)), tables_with(one_way_of(twin))
    risk = EstimatedRisk(measured, twin, SPANS, SPANS)
    logits = rake_where_better(TwinFits(tables, twin_tables, fitted, fitted), risk)
    return expected_counts(logits, tables).one_way


def test_counts_expected_of_a_mixture_are_sums_over_its_components(truth: Tensor, expected: ExpectedCounts) -> None:
    first, second = (part.softmax(dim=2) for part in torch.split(truth, list(WIDTHS), dim=2))
    for place, rows in enumerate(ROWS):
        pair = sum(torch.outer(a, b) for a, b in zip(first[place], second[place], strict=True)) * rows / 16
        assert torch.allclose(expected.two_way[place, SPANS[0], SPANS[1]], pair, rtol=1e-4)
        assert torch.allclose(expected.one_way[place, SPANS[1]], pair.sum(dim=0), rtol=1e-4)


@pytest.mark.parametrize("strength", [0.5, 1.0])
def test_one_way_tables_go_as_far_as_asked_and_relations_stay(
    truth: Tensor, expected: ExpectedCounts, strength: float
) -> None:
    wanted = torch.rand(2, 19, generator=torch.Generator().manual_seed(2)) + 0.2
    tables = tables_with(wanted)
    moved = raked(truth, tables, strength)
    shares = [part / part.sum(dim=1, keepdim=True) for part in torch.split(wanted, list(WIDTHS), dim=1)]
    between = expected.one_way.lerp(torch.cat(shares, dim=1) * torch.tensor(ROWS)[:, None], strength)
    assert torch.allclose(expected_counts(moved, tables).one_way, between, rtol=0.01)
    # The same was added to a cell in all components: what tells them apart within a column is what it was.
    for span in SPANS.values():
        contrasts = (moved - truth)[..., span]
        contrasts = contrasts - contrasts[..., :1]
        assert torch.allclose(contrasts, contrasts[:, :1].expand_as(contrasts), atol=1e-3)


def test_nothing_moves_without_strength(truth: Tensor) -> None:
    assert torch.equal(raked(truth, tables_with(torch.rand(2, 19) + 0.1), 0.0), truth)


def test_a_mixture_that_is_off_goes_to_columns_that_are_known_well(truth: Tensor, expected: ExpectedCounts) -> None:
    off = truth + 0.5 * torch.randn(2, 1, 19, generator=torch.Generator().manual_seed(3))
    before = (expected_counts(off, tables_with(torch.ones(2, 19))).one_way - expected.one_way).abs().sum()
    for seed in range(5):
        chosen = choose(off, expected, noise_std=3.0, seed=seed)
        assert (chosen - expected.one_way).abs().sum() < 0.1 * before


def test_a_mixture_that_is_right_stays_where_columns_are_noise(truth: Tensor, expected: ExpectedCounts) -> None:
    """Of 38 cells the estimate is coarse: a quarter of the way now and then, seldom more."""
    went, away = [], []
    for seed in range(10):
        noisy = one_way_of(measured_with(100.0, expected, seed))
        away.append(float((noisy - expected.one_way).abs().sum()))
        went.append(float((choose(truth, expected, noise_std=100.0, seed=seed) - expected.one_way).abs().sum()))
    assert np.mean(went) < 0.2 * np.mean(away)
