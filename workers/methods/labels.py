"""How frequent the labels of a dataset are: noisy counts, charged once before the first step, and labels drawn by what they say."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from service.methods.label_counts import LABEL_COUNTS
from workers.mechanism.label_counts import frequencies_from, label_counts
from workers.mechanism.noise import release_counts

if TYPE_CHECKING:
    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable
    from workers.mechanism import PrivateSum
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan


def measured_frequencies(plan: Plan, count: Callable[[], PrivateSum], randomness: SecureRandom) -> tuple[float, ...]:
    """The noisy frequency of every label, (labels,), after its event was taken. A label is part of its record."""
    noise_multiplier = plan.take_gaussian(LABEL_COUNTS)
    counts = count()
    (noisy,) = release_counts(
        counts,
        noise_stds=[noise_multiplier * counts.sensitivities[0]],
        noise_multiplier=noise_multiplier,
        randomness=randomness,
    )
    return frequencies_from(noisy)


def counts_of_column(table: EncodedTable, place: int, *, width: int) -> PrivateSum:
    """How many rows have each value of this column. Private."""
    return label_counts(
        table.codes[:, place],
        categories=width,
        unit_starts=table.unit_starts,
        max_rows_per_unit=table.max_rows_per_unit,
    )


def counts_of_classes(images: EncodedImages) -> PrivateSum:
    """How many images each class has. Private."""
    return label_counts(
        images.labels.astype(np.uint16),
        categories=max(1, images.classes),
        unit_starts=images.unit_starts,
        max_rows_per_unit=images.max_images_per_unit,
    )


def drawn_labels(
    frequencies: tuple[float, ...] | None, count: int, randomness: SecureRandom, device: torch.device
) -> Tensor | None:
    """Labels by noisy frequencies, never by rows; None where there are none."""
    return None if frequencies is None else drawn_by(frequencies, count, randomness).to(device)


def drawn_by(frequencies: tuple[float, ...], count: int, randomness: SecureRandom) -> Tensor:
    """(count,) places in a list, each as often as its frequency says."""
    cumulative = torch.tensor(frequencies, dtype=torch.float64).cumsum(0)
    drawn = torch.searchsorted(cumulative, randomness.uniforms(count) * cumulative[-1])
    return drawn.clamp(max=len(cumulative) - 1)
