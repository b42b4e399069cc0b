"""A noisy table, as the rest of the method knows it. Public."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from workers.mechanism.marginals import Columns


@dataclass(frozen=True)
class Measured:
    """One noisy table."""

    columns: Columns
    counts: NDArray[np.int64] | NDArray[np.float64]
    variance: float
