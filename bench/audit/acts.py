"""The paper's adaptive thresholds (ACTS, Algorithm 2 of IDPGAN's paper), as published; broken, and here only to show that it is.

It splits (0, C_max] into r bins with C_max the largest norm *in the batch*, counts, adds N(0, (√2·σ)²) to every count,
and is accounted as one Gaussian release with noise multiplier σ, though it runs once for each weight.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from workers.mechanism.secure_random import SecureRandom

CLAIMED_SENSITIVITY = math.sqrt(2.0)
OUTLIER = 1e6


def paper_acts(norms: np.ndarray, *, bins: int, noise_multiplier: float, randomness: SecureRandom) -> np.ndarray:
    """Noisy counts (M, bins) of the norms (B, M) of a batch: for each weight, bins up to the batch's maximum."""
    counts = np.stack([_counts(norms[:, weight], bins) for weight in range(norms.shape[1])])
    return counts + CLAIMED_SENSITIVITY * noise_multiplier * randomness.normals(*counts.shape).numpy()


def _counts(norms: np.ndarray, bins: int) -> np.ndarray:
    largest = norms.max(initial=0.0)
    if largest == 0.0:
        return np.zeros(bins)
    return np.histogram(norms, bins=bins, range=(0.0, largest))[0].astype(np.float64)


def outlier_scores(*, batch: int, noise_multiplier: float, trials: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores without and with one outlier among equal norms: it alone sends all the others to the lowest bin."""
    randomness = SecureRandom.from_test_seed(seed)
    equal = np.ones((batch - 1, 1))
    return _scores(
        (equal, np.concatenate((equal, [[OUTLIER]]))),
        lambda norms: _low_minus_high(norms, noise_multiplier, randomness),
        trials,
    )


def public_bins_scores(
    *, weights: int, noise_multiplier: float, trials: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Even where the bins leak nothing, one record adds a count for *every* weight, and the accounting knows of one."""
    randomness = SecureRandom.from_test_seed(seed)
    others = np.ones((1, weights))  # the maximum is the same with and without the record, which has half of it
    return _scores(
        (others, np.concatenate((others, 0.5 * others))),
        lambda norms: float(
            paper_acts(norms, bins=10, noise_multiplier=noise_multiplier, randomness=randomness)[:, 5].sum()
        ),
        trials,
    )


def epochs_scores(
    *, q: float, records: int, steps: int, noise_multiplier: float, trials: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """A whole training: the outlier is in a step's batch with probability q. Score: the log-likelihood ratio."""
    randomness = SecureRandom.from_test_seed(seed)
    draws = np.random.default_rng(seed)
    variance = 2.0 * (CLAIMED_SENSITIVITY * noise_multiplier) ** 2  # of the difference of two counts
    expected = q * records

    def run(has_outlier: bool) -> float:
        total = 0.0
        for size in draws.binomial(records - 1, q, steps):
            norms = np.ones((size, 1))
            if has_outlier and draws.random() < q:
                norms = np.concatenate((norms, [[OUTLIER]]))
            score = _low_minus_high(norms, noise_multiplier, randomness)
            # Means -expected and +expected: the ratio of the two densities is exp(2·expected·score/variance).
            total += math.log1p(q * math.expm1(min(2.0 * expected * score / variance, 700.0)))
        return total

    return np.array([run(False) for _ in range(trials)]), np.array([run(True) for _ in range(trials)])


def _low_minus_high(norms: np.ndarray, noise_multiplier: float, randomness: SecureRandom) -> float:
    counts = paper_acts(norms, bins=2, noise_multiplier=noise_multiplier, randomness=randomness)
    return float(counts[0, 0] - counts[0, -1])


def _scores(
    worlds: tuple[np.ndarray, np.ndarray], attack: Callable[[np.ndarray], float], trials: int
) -> tuple[np.ndarray, np.ndarray]:
    without, with_record = (np.array([attack(norms) for _ in range(trials)]) for norms in worlds)
    return without, with_record
