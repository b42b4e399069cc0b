"""Weight clustering (WC): tensors with similar thresholds are clipped together. Post-processing of noisy thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from service.base.lazy import lazy

if TYPE_CHECKING:
    from sklearn import cluster
else:  # with scipy.stats it takes longer to import than all the rest of a training but torch
    cluster = lazy("sklearn.cluster")


@dataclass(frozen=True, slots=True)
class ClipGroups:
    """A partition of the critic's tensors and the clip norm of each part."""

    groups: tuple[tuple[int, ...], ...]
    clip_norms: tuple[float, ...]


def one_group(thresholds: Sequence[float]) -> ClipGroups:
    """Flat clipping: everything together, c = √Σc²."""
    return ClipGroups((tuple(range(len(thresholds))),), (_joint(thresholds),))


def dbscan_groups(thresholds: Sequence[float], *, is_bias: Sequence[bool], eps: float, min_samples: int) -> ClipGroups:
    """DBSCAN over the log-thresholds of the weights; all biases are one group; a group's clip norm is √Σc².

    Source: IDPGAN, Algorithm 3. A tensor that DBSCAN calls noise is a group of its own.
    """
    weights = [tensor for tensor, bias in enumerate(is_bias) if not bias]
    logs = np.log([[thresholds[tensor]] for tensor in weights])
    labels = cluster.DBSCAN(eps=eps, min_samples=min_samples).fit_predict(logs)
    parts: dict[object, list[int]] = {}
    for tensor, label in zip(weights, labels.tolist(), strict=True):
        parts.setdefault(("alone", tensor) if label < 0 else label, []).append(tensor)
    groups = [*parts.values(), [tensor for tensor, bias in enumerate(is_bias) if bias]]
    kept = tuple(tuple(group) for group in groups if group)
    return ClipGroups(kept, tuple(_joint([thresholds[tensor] for tensor in group]) for group in kept))


def _joint(thresholds: Sequence[float]) -> float:
    return math.sqrt(sum(c * c for c in thresholds))
