"""What follows noise and reads no image: singular values in falling order, and images from coefficients."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def falling(values: Floats) -> Floats:
    """The nearest sequence (least squares) that does not rise: λ_t = max over j ≥ t of min over i ≤ t of mean(i…j). {10, 14, 9} -> {12, 12, 9}.

    Source: Robertson, Wright and Dykstra 1988 (pooling neighbours that are out of order). Zhang, Fu, Meng 2020 print for theorem 6 the formulas of
    sequences that do not fall, with maximum and minimum exchanged; their example is of this one.
    """
    means: list[float] = []
    sizes: list[int] = []
    for value in values.tolist():
        means.append(value)
        sizes.append(1)
        while len(means) > 1 and means[-2] < means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2] = (means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size
            sizes[-2] = size
            means.pop()
            sizes.pop()
    return np.repeat(means, sizes)


def with_values(coefficients: Floats, values: Floats) -> Floats:
    """Noisy coefficients (k, k) with these singular values, put in falling order and none below zero, instead of their own."""
    left, _, right = np.linalg.svd(coefficients)
    repaired = np.clip(falling(values), 0.0, None)
    found: Floats = (left * repaired) @ right
    return found
