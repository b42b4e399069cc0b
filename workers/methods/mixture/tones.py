"""The curve that gives drawn numbers the brightness that real pixels have. Post-processing of a noisy histogram."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

TONE_BINS = 32
_KNOTS = 33
_RANGE = (-0.25, 1.25)

Floats = NDArray[np.float64]
Curve = tuple[tuple[float, ...], tuple[float, ...]]


def tone_curve(drawn: Floats, noisy_counts: Floats) -> Curve:
    """Rising places and values in [0, 1]: the q-th quantile of `drawn` becomes the q-th of the noisy histogram.

    Brightness in the first and the last bin is taken as black and white.
    """
    shares = np.maximum(noisy_counts, 0.0)
    places = np.linspace(*_RANGE, _KNOTS)
    if not shares.sum() > 0.0:
        return (0.0, 1.0), (0.0, 1.0)
    reached = np.concatenate(([0.0], np.cumsum(shares) / shares.sum()))  # (bins + 1,)
    below = np.searchsorted(np.sort(drawn), places, side="right") / len(drawn)
    edges = np.linspace(0.0, 1.0, len(reached))
    values = np.interp(below, reached + np.arange(len(reached)) * 1e-12, edges)
    values[below <= reached[1]] = 0.0
    values[below >= reached[-2]] = 1.0
    return tuple(places.tolist()), tuple(np.maximum.accumulate(values).tolist())
