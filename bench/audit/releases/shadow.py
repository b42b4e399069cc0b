"""Shadow membership: many generators with a row and many without it; a forest learns to tell their synthetic rows apart.

Stadler, Oprisanu, Troncoso 2022 (*Synthetic data: anonymisation groundhog day*). Features of a synthetic table: the mean of every
column, the share of every cell, the correlation of every pair of columns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.ensemble import RandomForestClassifier

from bench.audit.releases.making import DOMAIN, Attacked
from bench.audit.releases.verdicts import Finding, Guesses, Price, finding_of, thresholds_of

ROWS = 4_000
"""Synthetic rows of a release."""
FOLDS = 5
TREES = 60


def features_of(rows: np.ndarray, widths: Sequence[int] = DOMAIN.widths) -> np.ndarray:
    """(features,) of a synthetic table (rows, columns)."""
    columns = [rows[:, place].astype(np.float64) for place in range(len(widths))]
    shares = [np.bincount(rows[:, place], minlength=width) / len(rows) for place, width in enumerate(widths)]
    deviations = np.stack([(own - own.mean()) / max(own.std(), 1e-9) for own in columns])
    correlations = (deviations @ deviations.T / len(rows))[np.triu_indices(len(widths), 1)]
    return np.concatenate([[own.mean() for own in columns], *shares, correlations])


def features(releases: Sequence[Attacked], seed: int) -> np.ndarray:
    """(releases, features)."""
    return np.stack([features_of(release.sample(ROWS, seed + place)) for place, release in enumerate(releases)])


def cross_fitted(without: np.ndarray, with_row: np.ndarray, delta: float, seed: int = 0) -> tuple[Guesses, Guesses]:
    """Guesses for the advantage and for ε. Each release is judged by a forest that never saw it, at thresholds that were chosen on the
    trees' out-of-bag votes on the others. Folds share training releases; limits count guesses as independent."""
    values = np.concatenate([without, with_row])
    is_in = np.repeat([False, True], [len(without), len(with_row)])
    fold = np.concatenate([np.arange(len(without)), np.arange(len(with_row))]) % FOLDS
    guessed = np.zeros((2, len(values)), dtype=bool)
    for number in range(FOLDS):
        seen = fold != number
        forest = RandomForestClassifier(TREES, min_samples_leaf=2, oob_score=True, random_state=seed + number, n_jobs=1)
        forest.fit(values[seen], is_in[seen])
        votes = np.nan_to_num(forest.oob_decision_function_[:, 1], nan=0.5)
        chosen = thresholds_of(votes[~is_in[seen]], votes[is_in[seen]], delta)
        own = forest.predict_proba(values[~seen])[:, 1]
        guessed[:, ~seen] = own > chosen.for_advantage, own > chosen.for_epsilon
    first, second = (Guesses(one[~is_in], one[is_in]) for one in guessed)
    return first, second


def attack(
    target: str,
    made_by: tuple[str, bool],
    price: Price,
    releases: tuple[Sequence[Attacked], Sequence[Attacked]],
    seed: int = 0,
) -> Finding:
    """releases: without the row, and with it."""
    without, with_row = (features(own, seed + 10**6 * side) for side, own in enumerate(releases))
    guesses = cross_fitted(without, with_row, price.whole_delta)
    return finding_of(("shadow membership", target), made_by, price, guesses)
