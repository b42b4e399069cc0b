"""Stein's estimate says what the error is without knowing the truth, and a fit that listens to it ends closer to the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from workers.methods.marginals.fit.mixture_fit import MixtureFit, NoisyTables, Risk
from workers.methods.marginals.fit.stopping import SHIFT, EstimatedRisk, shifted
from workers.methods.marginals.measure.measured import Measured

WIDTHS = (40, 30)
SPANS = {0: slice(0, 40), 1: slice(40, 70)}
NOISE_STD = 30.0
CPU = torch.device("cpu")


def truth() -> np.ndarray:
    """(1, 40, 30) counts of 20,000 rows whose columns hang together smoothly."""
    i, j = np.arange(40)[:, None] / 40, np.arange(30)[None, :] / 30
    table = np.exp(-((i - j) ** 2) / 0.1)
    return (20_000 * table / table.sum())[None]


def measure(seed: int) -> Measured:
    noise = NOISE_STD * np.random.default_rng(seed).standard_normal((1, *WIDTHS))
    return Measured((0, 1), truth() + noise, NOISE_STD**2)


@pytest.mark.parametrize("kept", [0.0, 0.3, 1.0])
def test_the_estimate_is_the_error_of_a_shrunken_table(kept: float) -> None:
    estimates, errors = [], []
    for seed in range(100):
        noisy = measure(seed)
        (twin,) = shifted([noisy], seed=seed + 1_000)
        risk = EstimatedRisk([noisy], [twin], SPANS, SPANS)
        estimates.append(risk(0, _side_by_side(kept * noisy.counts), _side_by_side(kept * twin.counts)))
        errors.append(((kept * noisy.counts - truth()) ** 2).mean() / NOISE_STD**2)
    assert np.mean(estimates) == pytest.approx(np.mean(errors), abs=0.03)


def test_the_twin_is_noisier_by_the_shift_and_nothing_else() -> None:
    noisy = measure(1)
    (twin,) = shifted([noisy], seed=2)
    assert (twin.columns, twin.variance) == (noisy.columns, noisy.variance)
    assert np.std(twin.counts - noisy.counts) == pytest.approx(SHIFT * math.sqrt(noisy.variance), rel=0.1)


def test_a_watched_fit_ends_closer_to_the_truth_than_one_that_repeats_the_noise() -> None:
    noisy = measure(3)
    (twin,) = shifted([noisy], seed=4)
    risk = EstimatedRisk([noisy], [twin], SPANS, SPANS)
    heard: list[int] = []
    watched = _fit(noisy, (_tables(twin), risk), heard)
    assert watched < 0.6 * _fit(noisy, None, [])
    assert heard == sorted(set(heard))
    assert heard[-1] == 800


def _fit(noisy: Measured, twin: tuple[NoisyTables, Risk] | None, heard: list[int]) -> float:
    """Mean squared error of what was fitted, in units of the noise."""
    fit = MixtureFit(
        _tables(noisy),
        twin,
        components=128,
        steps=800,
        learning_rate=0.2,
        randomness=torch.Generator().manual_seed(5),
        device=CPU,
    )
    fit.run(heard.append)
    first, second = (part.softmax(dim=1).double() for part in torch.split(fit.logits()[0], list(WIDTHS), dim=1))
    fitted = (first.T @ second).numpy() * truth().sum() / 128
    return float(((fitted - truth()[0]) ** 2).mean() / NOISE_STD**2)


def _tables(noisy: Measured) -> NoisyTables:
    two_way, precision = torch.zeros(1, 70, 70), torch.zeros(70, 70)
    table = torch.from_numpy(noisy.counts[0]).float()
    two_way[0, :40, 40:], two_way[0, 40:, :40] = table, table.T
    precision[:40, 40:] = precision[40:, :40] = 1.0 / noisy.variance
    return NoisyTables(
        one_way=torch.from_numpy(np.concatenate([truth().sum(axis=2), truth().sum(axis=1)], axis=1)).float(),
        one_way_precision=torch.full((70,), 1.0 / noisy.variance),
        two_way=two_way,
        two_way_precision=precision,
        totals=torch.tensor([float(truth().sum())]),
        widths=WIDTHS,
        groups=(torch.arange(40), torch.arange(30)),
    )


def _side_by_side(counts: np.ndarray) -> torch.Tensor:
    together = torch.zeros(70, 70)
    together[:40, 40:] = torch.from_numpy(counts[0])
    return together
