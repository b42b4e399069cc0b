"""Memory that is taken once and used again at every step."""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Workspace:
    """Named buffers. One that is too small is made anew, so a run stops allocating once it has seen its largest batch.

    Asking for a name again hands out the same memory: whoever holds the earlier tensor must be done with it.
    """

    def __init__(self) -> None:
        self._buffers: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}

    def take(self, name: str, shape: tuple[int, ...], *, like: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """A contiguous tensor of this shape with whatever was left in it, on the device of `like`."""
        size = math.prod(shape)
        key = (name, dtype or like.dtype, like.device)
        held = self._buffers.get(key)
        if held is None or held.numel() < size:
            held = self._buffers[key] = torch.empty(size, dtype=key[1], device=like.device)
        return held[:size].view(shape)
