"""Clip everything that one drawn part says at a step, as one vector."""

from __future__ import annotations

import torch
from torch import Tensor

from workers.mechanism import PrivateSum

SHRINK = 1.0 - 1e-6
"""Room for the float64 rounding of norm and factor."""


def clip_jointly(values: Tensor, *, clip_norm: float) -> PrivateSum:
    """A matrix of any origin, scaled to an L2 norm of all its entries (Frobenius) of at most clip_norm.

    Adjacency:   zero-out one unit, which may change the whole matrix.
    Sensitivity: L2 2·clip_norm: two matrices within a ball are at most its diameter apart.
    Shapes:      values (rows, columns); returns one float64 tensor of that shape.
    Source:      docs/privacy.md, One part of many; Chen, Orekondy, Fritz 2020 clip each row, which bounds rows only.
    Edge cases:  entries that are not finite count as zeros; zeros stay zeros.
    """
    finite = values.double().nan_to_num(0.0, 0.0, 0.0)
    largest = finite.abs().max().clamp(min=torch.finfo(torch.float64).tiny)
    norm = largest * (finite / largest).square().sum().sqrt()  # squares of large entries would overflow
    factor = (clip_norm * SHRINK / norm).clamp(max=1.0)
    return PrivateSum((finite * factor,), ((0,),), (2.0 * clip_norm,))
