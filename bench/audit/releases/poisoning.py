"""Poisoning: the adversary puts k copies of a row of its own where clean rows hardly vary, with the label they make least likely.

Jagielski, Ullman, Oprea 2020 (*Auditing differentially private machine learning: how private is private SGD?*). What is proven of k
copies is k times what is proven of one, so ε_LB/k stands beside ε.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sklearn.linear_model import LogisticRegression

from bench.audit.releases.likelihood import scores
from bench.audit.releases.making import ABSENT, DOMAIN, LABEL, Attacked
from bench.audit.releases.verdicts import Finding, Price, finding_of_scores

MOST_DELTA = 0.05
"""With more copies, so much of δ is spent that a bound says little."""


def one_hot(rows: np.ndarray) -> np.ndarray:
    """(rows, total width)."""
    return np.concatenate([np.eye(width)[rows[:, place]] for place, width in enumerate(DOMAIN.widths)], axis=1)


def contrasts() -> np.ndarray:
    """(total width, total width - columns) orthonormal: without the directions in which a row's cells add up to one."""
    blocks = []
    for width in DOMAIN.widths:
        basis, _ = np.linalg.qr(np.concatenate([np.ones((width, 1)), np.eye(width)[:, 1:]], axis=1))
        blocks.append(basis[:, 1:])
    found = np.zeros((sum(DOMAIN.widths), sum(DOMAIN.widths) - len(blocks)))
    row = column = 0
    for block in blocks:
        found[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return found


def poison_row(rows: np.ndarray) -> np.ndarray:
    """(columns,) the admissible row that reaches furthest along the least singular direction of the clean rows."""
    clean = rows[rows[:, 0] != ABSENT].astype(np.int64)
    hot, basis = one_hot(clean), contrasts()
    _, _, directions = np.linalg.svd((hot - hot.mean(axis=0)) @ basis, full_matrices=False)
    along = basis @ directions[-1]
    parts = np.split(along, np.cumsum(DOMAIN.widths)[:-1])
    sign = 1.0 if sum(part.max() for part in parts) >= sum((-part).max() for part in parts) else -1.0
    row = np.array([int((sign * part).argmax()) for part in parts])
    features = np.delete(np.arange(len(row)), LABEL)
    model = LogisticRegression(max_iter=500).fit(_features(clean, features), clean[:, LABEL])
    chances = np.zeros(DOMAIN.widths[LABEL])
    chances[model.classes_] = model.predict_proba(_features(row[None], features))[0]
    row[LABEL] = int(chances.argmin())
    return row


def _features(rows: np.ndarray, places: np.ndarray) -> np.ndarray:
    return np.concatenate([np.eye(DOMAIN.widths[place])[rows[:, place]] for place in places], axis=1)


def most_copies(epsilon: float, delta: float) -> int:
    """The most of 8, 4, 2, 1 copies of which the price still promises something."""
    return next(k for k in (8, 4, 2, 1) if k == 1 or Price(epsilon, delta, copies=k).whole_delta <= MOST_DELTA)


def attack(
    row: np.ndarray,
    made_by: tuple[str, bool],
    price: Price,
    releases: tuple[Sequence[Attacked], Sequence[Attacked]],
) -> Finding:
    """releases: without the copies, and with them."""
    return finding_of_scores(("poisoning", f"{price.copies} copies of a row"), made_by, price, scores(row, releases))
