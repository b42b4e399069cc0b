"""Estimates of total variation by noisy tables, where the truth is known."""

import numpy as np
import pytest

from workers.reports.noisy_distance import NoisyTable, mean_distance


def tables_with(random, *, error, noise, tables=20, cells=64):
    """Noisy tables whose true differences have this root mean square, and the true mean total variation."""
    made, truth = [], []
    for _ in range(tables):
        differences = error * random.standard_normal(cells)
        truth.append(0.5 * np.abs(differences).sum())
        noisy = differences + noise * random.standard_normal(cells)
        made.append(NoisyTable(noisy, np.full(cells, noise**2)))
    return made, float(np.mean(truth))


@pytest.mark.parametrize(("error", "noise"), [(2e-3, 1e-4), (2e-3, 1e-3), (2e-3, 2e-3), (1e-3, 3e-3)])
def test_the_estimate_is_without_the_bias_of_noise_and_its_bounds_hold(error, noise):
    random = np.random.default_rng(0)
    held, estimates, truths = [], [], []
    for _ in range(60):
        made, truth = tables_with(random, error=error, noise=noise)
        found = mean_distance(made)
        held.append(found.low <= truth <= found.high)
        estimates.append(found.estimate)
        truths.append(truth)
    assert np.mean(held) >= 0.95
    assert np.mean(estimates) == pytest.approx(np.mean(truths), rel=0.05 if error > noise else 0.25)
    if noise >= error:
        assert found.noisy > 1.3 * found.estimate


def test_of_a_generator_without_error_nothing_is_claimed():
    made, _ = tables_with(np.random.default_rng(1), error=0.0, noise=1e-3)
    found = mean_distance(made)
    assert found.estimate < 0.3 * found.noisy
    assert found.high > found.estimate
    assert found.is_hidden
    noisy = np.mean([table.total_variation for table in made])
    assert noisy == pytest.approx(np.mean([table.of_noise_alone for table in made]), rel=0.1)
    assert abs(noisy - found.noisy) < 1e-12


@pytest.mark.parametrize("noise", [3e-4, 1e-3, 4e-3])
def test_bounds_hold_where_few_cells_have_all_of_the_difference(noise):
    """As in tables of money in a wide range: nearly all cells are empty, in real rows and synthetic ones."""
    random = np.random.default_rng(2)
    true = np.zeros(64)
    true[:4] = [0.02, 0.01, -0.02, -0.01]
    found = [
        mean_distance([NoisyTable(true + noise * random.standard_normal(64), np.full(64, noise**2)) for _ in range(10)])
        for _ in range(40)
    ]
    assert np.mean([one.low <= 0.03 <= one.high for one in found]) >= 0.95
    if noise < 4e-3:
        assert np.mean([one.estimate for one in found]) == pytest.approx(0.03, rel=0.15)


def test_without_noise_the_estimate_is_the_distance_itself():
    table = NoisyTable(np.array([0.1, -0.1, 0.0]), np.zeros(3))
    found = mean_distance([table])
    assert found.noisy == found.estimate == found.low == found.high == pytest.approx(0.1)
    assert not found.is_hidden


def test_an_estimate_that_is_shown_is_near_the_truth():
    """Where noise dominates, `tv` may be many times too large; then it is said to be hidden."""
    random, hidden = np.random.default_rng(3), []
    for error in np.geomspace(1e-5, 3e-3, 24):
        made, truth = tables_with(random, error=error, noise=1e-3)
        found = mean_distance(made)
        hidden.append(found.is_hidden)
        assert found.is_hidden or truth / 2 < found.estimate < 2 * truth
    assert hidden[0]
    assert not hidden[-1]


@pytest.mark.parametrize("error", [0.0, 2e-4])
def test_noise_alone_is_seldom_taken_for_an_error(error):
    """Where noise is nearly all that is seen, too: the lower bound holds 39 times in 40."""
    random = np.random.default_rng(2)
    held = []
    for _ in range(60):
        made, truth = tables_with(random, error=error, noise=1e-3)
        held.append(mean_distance(made).low <= truth)
    assert np.mean(held) >= 0.92
