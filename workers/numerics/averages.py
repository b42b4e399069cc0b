"""Steps of a generator along gradients, and the moving average of its weights, which is what is published. Post-processing, all of it."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TypeVar

import torch
from torch import Tensor, nn

from workers.numerics.adam import Adam

M = TypeVar("M", bound=nn.Module)


def average_of(network: M) -> M:
    """A copy that no gradient reaches, for `move_average`."""
    return copy.deepcopy(network).eval().requires_grad_(requires_grad=False)


def move_average(averaged: nn.Module, tensors: Iterable[Tensor], *, decay: float, taken: int) -> None:
    """Towards these weights, after so many steps. A short run must not end as an average of its initial weights: the decay grows with them."""
    weight = 1.0 - min(decay, (1.0 + taken) / (10.0 + taken))
    with torch.no_grad():
        torch._foreach_lerp_(list(averaged.parameters()), list(tensors), weight)


def descend(optimizer: Adam, wanted: Tensor, along: Tensor | None = None) -> None:
    """A step of the optimiser's tensors towards less of `wanted`, a number; or of many numbers, against the slope `along`.

    A critic that overflowed must not end the run: whether it did would be told by the error.
    """
    for tensor, gradient in zip(
        optimizer.tensors, torch.autograd.grad(wanted, optimizer.tensors, grad_outputs=along), strict=True
    ):
        tensor.grad = gradient.nan_to_num(0.0, 0.0, 0.0)
    optimizer.step()
