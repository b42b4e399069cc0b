"""How often a classifier that learned from synthetic rows is right on rows of held-out units, which nothing else was made of.

fit to synthetic rows alone -> count right and wrong answers -> noise -> accuracy, between bounds
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from service.methods.forecast import SURE
from workers.mechanism import RowsOfUnits
from workers.mechanism.errors import right_and_wrong
from workers.mechanism.noise import drawn_std, most_moved, release_counts
from workers.methods.choose.classifier import LARGEST_WEIGHT, wrong
from workers.reports.learning import fit, logistic_regression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from torch import Tensor

    from workers.encoding.table import Codes, EncodedTable, TableDomain
    from workers.mechanism.secure_random import SecureRandom

TRAINING_ROWS = 20_000
"""Synthetic ones, of those that tables are compared with."""
BLOCK_ROWS = 65_536
"""Predicted at once; bounds memory, changes no answer."""
POSSIBLE = np.linspace(0.0, 1.0, 10_001)
"""Accuracies among which bounds are looked for."""


@dataclass(frozen=True)
class NoisyAnswers:
    """Right and wrong answers with noise, and what is public beside them."""

    right: int
    wrong: int
    noise_std: float
    """Of each of the two counts."""
    rows: int | None
    """How many there are, where a unit is a row; else only the noisy counts tell."""
    most_rows: int
    """Of a unit."""

    @property
    def accuracy(self) -> float:
        return float(np.clip(self._unclipped, 0.0, 1.0))

    @property
    def accuracy_noise_std(self) -> float:
        """What noise alone does to the accuracy."""
        if self.rows is not None:
            return float(self.noise_std / (np.sqrt(2.0) * self.rows))
        a = self.accuracy
        return float(self.noise_std * np.hypot(a, 1.0 - a) / max(1, self.right + self.wrong))

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which the accuracy on further units of the same kind lies 19 times in 20: by noise, and as units are drawn.

        The accuracies p at which what was seen is no surprise (Fieller's way: nothing is divided by a noisy count). Answers to rows
        of one unit may all be alike; then their number varies `most_rows` times as much, which is assumed.
        """
        p = POSSIBLE
        if self.rows is not None:
            off = self.rows * (self._unclipped - p)
            variance = self.noise_std**2 / 2.0 + self.rows * p * (1.0 - p)
        else:
            off = self.right * (1.0 - p) - self.wrong * p
            rows = max(0, self.right + self.wrong)
            variance = self.noise_std**2 * (p**2 + (1.0 - p) ** 2) + self.most_rows * rows * p * (1.0 - p)
        surprise = off**2 / variance
        possible = p[surprise <= max(SURE**2, float(surprise.min()))]
        return float(possible.min()), float(possible.max())

    @property
    def _unclipped(self) -> float:
        """Where a unit is a row, each of the two counts tells the other."""
        if self.rows is not None:
            return (self.rows + self.right - self.wrong) / (2.0 * self.rows)
        return self.right / max(1, self.right + self.wrong)


def noisy_answers(
    held_out: EncodedTable,
    domain: TableDomain,
    target: str,
    synthetic: NDArray[np.int64],
    *,
    noise_multiplier: float,
    randomness: SecureRandom,
) -> NoisyAnswers:
    """One Gaussian release on held-out units. synthetic: (rows, columns) in cells of the domain; the classifier sees no other."""
    weights = classifier(synthetic[:TRAINING_ROWS], domain.widths, domain.index(target))
    missed, known = _missed(held_out.codes, weights, domain, domain.index(target))
    private = right_and_wrong(missed, known, rows=RowsOfUnits(held_out.unit_starts, held_out.max_rows_per_unit))
    noise_std = noise_multiplier * private.sensitivities[0]
    (noisy,) = release_counts(private, noise_stds=[noise_std], noise_multiplier=noise_multiplier, randomness=randomness)
    right, wrongly = (int(each) for each in noisy)
    are_rows = held_out.unit_starts is None
    return NoisyAnswers(
        right,
        wrongly,
        drawn_std(noise_std, moved=most_moved(private)),
        held_out.units if are_rows else None,
        1 if are_rows else held_out.max_rows_per_unit,
    )


def _missed(
    codes: Codes, weights: Tensor, domain: TableDomain, label: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """(rows,) predicted wrong, and which rows are no null records; a row's answer depends on no other row. Private."""
    missed, known = np.zeros(len(codes), dtype=np.bool_), np.zeros(len(codes), dtype=np.bool_)
    for start in range(0, len(codes), BLOCK_ROWS):
        block = codes[start : start + BLOCK_ROWS].astype(np.int64)
        known[start : start + BLOCK_ROWS] = (block < np.asarray(domain.widths)).all(axis=1)
        missed[start : start + BLOCK_ROWS] = wrong(weights, block, domain.widths, label)
    return missed, known


def classifier(codes: NDArray[np.int64], widths: Sequence[int], label: int) -> Tensor:
    """(cells of all columns, classes) weights of a logistic regression, as `choose.classifier.wrong` takes them."""
    offsets = np.concatenate(([0], np.cumsum(widths)))
    weights = np.zeros((offsets[-1], widths[label]))
    constant = weights[offsets[label]]
    constant[:] = -LARGEST_WEIGHT  # what no synthetic row has is never the answer
    seen = np.unique(codes[:, label])
    constant[seen] = 0.0
    if len(seen) > 1:
        model: Any = logistic_regression(widths, label)
        fit(model, np.delete(codes, label, axis=1), codes[:, label])
        found = model[-1]
        # Of two classes there is one list of weights, for the second.
        places = seen if len(found.coef_) == len(seen) else seen[1:]
        own = slice(int(offsets[label]), int(offsets[label + 1]))
        inputs = np.delete(np.arange(len(weights)), own)
        weights[np.ix_(inputs, places)] = found.coef_.T
        constant[places] = found.intercept_
    return torch.from_numpy(weights)


def figures(
    answers: NoisyAnswers, *, target: str, held_out_units: int, most_frequent: tuple[Any, float, float]
) -> dict[str, Any]:
    """As the report has them. most_frequent: the value that synthetic rows have most, its noisy share of the real rows, and the noise of that."""
    low, high = answers.bounds
    value, share, share_noise = most_frequent
    return {
        "target": target,
        "classifier": "logistic_regression",
        "held_out_units": held_out_units,
        "accuracy": answers.accuracy,
        "low": low,
        "high": high,
        "noise_std": answers.accuracy_noise_std,
        "noisy_right": answers.right,
        "noisy_wrong": answers.wrong,
        "most_frequent": {"value": value, "share": float(np.clip(share, 0.0, 1.0)), "noise_std": share_noise},
    }
