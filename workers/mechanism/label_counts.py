"""Label counts, charged as their own event, for conditional generation."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from workers.mechanism import PrivateSum

SMALLEST_FREQUENCY = 1e-6
"""A frequency never falls to zero: every declared label can be drawn and divided by."""


def label_counts(
    labels: np.ndarray, *, categories: int, unit_starts: np.ndarray | None = None, max_rows_per_unit: int = 1
) -> PrivateSum:
    """How many rows carry each declared label.

    Adjacency:   zero-out one unit.
    Sensitivity: L2 max_rows_per_unit (1 where a unit is a row): all rows of a unit may share a label.
    Shapes:      labels (rows,) codes; returns one int64 tensor (categories,).
    Source:      docs/privacy.md, The rest of a release.
    Edge cases:  codes outside the declared labels (null records) count nowhere; rows beyond max_rows_per_unit of
                 their unit are left out here, whatever the encoder promised.
    """
    counted = labels < categories  # (rows,)
    if unit_starts is not None:
        place_in_unit = np.arange(len(labels)) - np.repeat(unit_starts[:-1], np.diff(unit_starts))
        counted &= place_in_unit < max_rows_per_unit
    counts = np.bincount(labels[counted], minlength=categories).astype(np.int64)
    sensitivity = 1.0 if unit_starts is None else float(max_rows_per_unit)
    return PrivateSum((torch.from_numpy(counts),), ((0,),), (sensitivity,))


def frequencies_from(noisy_counts: Tensor) -> tuple[float, ...]:
    """Noisy counts as frequencies that are positive and sum to 1: post-processing."""
    positive = noisy_counts.double().clamp(min=0.0)
    total = positive.sum()
    shares = positive / total if total > 0 else torch.full_like(positive, 1.0 / len(positive))
    kept = shares.clamp(min=SMALLEST_FREQUENCY)
    return tuple((kept / kept.sum()).tolist())
