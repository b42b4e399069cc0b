"""Likelihood: a generator that has seen a row makes it more likely than one that has not.

Score: log p(row) - log p_ref(row), where p_ref is the mean over other releases without the row. log p of a mixture is exact
(`service.samples.density`), and no synthetic row has to be drawn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.audit.releases.making import Attacked
from bench.audit.releases.verdicts import TUNED_ON, Finding, Price, finding_of_scores


def log_densities(releases: Sequence[Attacked], row: np.ndarray) -> np.ndarray:
    """(releases,) log p of one row."""
    return np.array([release.log_density(row[None])[0] for release in releases])


def scores(row: np.ndarray, releases: tuple[Sequence[Attacked], Sequence[Attacked]]) -> tuple[np.ndarray, np.ndarray]:
    """Scores of releases without the row and with it; the reference is made of those on which the threshold is chosen."""
    without, with_row = (log_densities(own, row) for own in releases)
    reference = np.log(np.exp(without[: max(2, int(TUNED_ON * len(without)))]).mean() + 1e-300)
    return without - reference, with_row - reference


def attack(
    target: str,
    row: np.ndarray,
    made_by: tuple[str, bool],
    price: Price,
    releases: tuple[Sequence[Attacked], Sequence[Attacked]],
) -> Finding:
    """releases: without the row, and with it."""
    return finding_of_scores(("likelihood", target), made_by, price, scores(row, releases))
