"""Inversion: a value of a row from the rest of it; and what every row of a class has in common, which DP does not hide.

Yeom, Giacomelli, Fredrikson, Jha 2018 (*Privacy risk in machine learning*). The guess is the value that makes the row most likely. A right
guess alone is no leak: the same guess against generators that never saw the row may be right as often, because columns depend on
each other. Only the difference is due to the row, and it is bounded as any advantage.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.audit.releases.making import ABSENT, DOMAIN, LABEL, Attacked
from bench.audit.releases.verdicts import Finding, Guesses, Price, finding_of


def is_right(release: Attacked, row: np.ndarray, place: int) -> bool:
    """Whether the likeliest value of that column, given the others, is the row's."""
    candidates = np.tile(row, (DOMAIN.widths[place], 1))
    candidates[:, place] = np.arange(len(candidates))
    return bool(release.log_density(candidates).argmax() == row[place])


def attack(
    target: tuple[str, np.ndarray],
    place: int,
    made_by: tuple[str, bool],
    price: Price,
    releases: tuple[Sequence[Attacked], Sequence[Attacked]],
) -> Finding:
    """place: of the column that is guessed. releases: without the row, and with it."""
    name, row = target
    without, with_row = (np.array([is_right(one, row, place) for one in own]) for own in releases)
    guesses = Guesses(without, with_row)
    label = f"{DOMAIN.names[place]} of {name}"
    return finding_of(("attribute inversion", label), made_by, price, (guesses, guesses))


def class_means(shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(labels, cells of other columns) the share of every cell within each label. shares: (components, total width)."""
    first = sum(DOMAIN.widths[:LABEL])
    label = shares[:, first : first + DOMAIN.widths[LABEL]] * weights[:, None]
    found = label.T @ np.delete(shares, np.s_[first : first + DOMAIN.widths[LABEL]], axis=1)
    return found / np.maximum(label.sum(axis=0), 1e-12)[:, None]  # type: ignore[no-any-return]


def class_mean_distances(releases: Sequence[Attacked], rows: np.ndarray) -> tuple[float, float]:
    """Mean total variation between the real columns of each class, weighted by its rows, and those that are read off a generator;
    and the same if evenly spread cells are guessed."""
    clean = rows[rows[:, 0] != ABSENT].astype(np.int64)
    hot = np.concatenate([np.eye(width)[clean[:, place]] for place, width in enumerate(DOMAIN.widths)], axis=1)
    real = class_means(hot, np.ones(len(clean)))
    weights = np.bincount(clean[:, LABEL], minlength=DOMAIN.widths[LABEL]) / len(clean)
    others = [width for place, width in enumerate(DOMAIN.widths) if place != LABEL]
    even = np.concatenate([np.full(width, 1.0 / width) for width in others])

    def distance(guessed: np.ndarray) -> float:
        return float(weights @ (np.abs(real - guessed).sum(axis=1) / 2.0 / len(others)))

    found = [distance(class_means(np.exp(one.log_cells), np.exp(one.log_shares))) for one in releases]
    return float(np.mean(found)), distance(even)
