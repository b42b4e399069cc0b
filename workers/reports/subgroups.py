"""How good a classifier is for each value of a protected field, and how unlike its answers for different values are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import roc_auc_score

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

LEAST_ROWS = 30
"""Of a group; of a smaller one nothing is said, and it is not the worst."""


@dataclass(frozen=True)
class Answers:
    """What a classifier said of some rows, and what is true of them."""

    chances: NDArray[np.float64]  # (rows, classes)
    truth: NDArray[np.int64]  # (rows,)

    def of(self, mask: NDArray[np.bool_]) -> Answers:
        return Answers(self.chances[mask], self.truth[mask])

    @property
    def said(self) -> NDArray[np.int64]:
        return np.asarray(self.chances.argmax(axis=1), dtype=np.int64)

    @property
    def accuracy(self) -> float:
        return float((self.said == self.truth).mean())

    @property
    def auroc(self) -> float | None:
        """One against the rest, mean over the classes that some rows have and others do not."""
        classes = range(self.chances.shape[1])
        present = [c for c in classes if 0 < (self.truth == c).sum() < len(self.truth)]
        if not present:
            return None
        return float(np.mean([roc_auc_score(self.truth == c, self.chances[:, c]) for c in present]))

    @property
    def true_positive_rate(self) -> float | None:
        """Of two classes that of the last declared one; of more the mean over classes."""
        classes = self.chances.shape[1]
        wanted = [1] if classes == 2 else [c for c in range(classes) if (self.truth == c).any()]
        rates = [float((self.said[self.truth == c] == c).mean()) for c in wanted if (self.truth == c).any()]
        return float(np.mean(rates)) if rates else None


def group_scores(answers: Answers, groups: NDArray[np.int64], names: Sequence[str]) -> dict[str, Any]:
    """By group: rows, accuracy, AUROC, TPR. Over groups: demographic parity difference.

    Demographic parity difference: the largest |P(answer c | group) - P(answer c | other group)| over classes c and groups.
    """
    found: dict[str, dict[str, Any]] = {}
    shares = []
    for code, name in enumerate(names):
        mask = groups == code
        if mask.sum() < LEAST_ROWS:
            continue
        own = answers.of(mask)
        shares.append(np.bincount(own.said, minlength=answers.chances.shape[1]) / len(own.truth))
        found[name] = {
            "rows": int(mask.sum()),
            "accuracy": own.accuracy,
            "auroc": own.auroc,
            "true_positive_rate": own.true_positive_rate,
        }
    spread = np.ptp(np.stack(shares), axis=0).max() if shares else 0.0
    return {"groups": found, "demographic_parity_difference": float(spread)}


def worst_of(groups: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The group whose accuracy is the lowest."""
    return min(groups, key=lambda name: float(groups[name]["accuracy"]), default=None)
