"""Adaptive clipping thresholds (ACTS, corrected): noisy histograms of gradient norms on a grid fixed in advance."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from workers.mechanism import PrivateSum


def geometric_grid(*, smallest: float, largest: float, bins: int) -> Tensor:
    """(bins + 1,) edges in geometric progression; public, never from the batch (docs/privacy.md, Lemma 2)."""
    return torch.logspace(math.log10(smallest), math.log10(largest), bins + 1, dtype=torch.float64)


def norm_histogram(tensor_norms: Tensor, edges: Tensor) -> PrivateSum:
    """For each critic tensor, how many units' gradient norms fall in each cell of the grid.

    Adjacency:   zero-out one unit.
    Sensitivity: joint L2 √M: every unit adds one count to each of the M tensors' histograms.
    Shapes:      tensor_norms (U, M); returns one int64 tensor (M, bins + 2), under- and overflow at the ends.
    Source:      docs/privacy.md, One private step; the paper's √2 with bins up to the batch maximum has no finite ε.
    Edge cases:  no units -> zeros; a norm on an edge belongs to the cell below it.
    """
    tensors = tensor_norms.shape[1]
    cells = len(edges) + 1
    cell = torch.bucketize(tensor_norms, edges.to(tensor_norms.device))  # (U, M) in [0, cells)
    flat = cell + cells * torch.arange(tensors, device=cell.device)
    counts = torch.bincount(flat.flatten(), minlength=tensors * cells).reshape(tensors, cells)
    # The next float up: a rounded root may fall short.
    return PrivateSum((counts,), ((0,),), (math.nextafter(math.sqrt(tensors), math.inf),))


def thresholds_from(
    histogram: Tensor, edges: Tensor, *, rule: Literal["mode", "quantile"], quantile: float
) -> tuple[float, ...]:
    """One clip threshold per tensor from a noisy histogram (M, bins + 2): post-processing.

    mode: the upper edge of the fullest cell (the paper's rule); quantile: the edge under which that part of the
    noisy counts lies. Underflow gives the smallest edge, overflow the largest.
    """
    upper_edges = torch.cat((edges, edges[-1:]))  # (bins + 2,)
    if rule == "mode":
        cell = histogram.argmax(dim=1)
    else:
        below = histogram.clamp(min=0.0).cumsum(dim=1)
        cell = (below < quantile * below[:, -1:]).sum(dim=1).clamp(max=len(edges))
    return tuple(upper_edges[cell.cpu()].tolist())
