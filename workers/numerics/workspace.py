"""Memory that is taken once and used again at every step."""

from __future__ import annotations

import ctypes
import math

import torch
from torch import Tensor

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
MOST_BYTES = 32 * 2**20
"""Largest piece that the C library takes from memory it keeps; a limit of its own (mallopt(3))."""


def keep_freed_memory() -> None:
    """Tell the C library not to give freed memory back to the system, where it can be told so; for one training a process.

    A step's temporaries would otherwise be given back and taken again, page by page: 9,000 pages a step of an image
    critic, a twentieth of its time.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, MOST_BYTES)
        mallopt(M_TRIM_THRESHOLD, 2**30)


class Workspace:
    """Named buffers. One that is too small is made anew, so a run stops allocating once it has seen its largest batch.

    Asking for a name again hands out the same memory: the earlier tensor must no longer be in use.
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


class Staging:
    """A buffer that a CUDA GPU fetches from by itself, after what it was told before, while the processor goes on."""

    def __init__(self) -> None:
        self._held = torch.empty(0, dtype=torch.uint8)
        self._fetched: torch.cuda.Event | None = None

    def take(self, count: int, dtype: torch.dtype) -> Tensor:
        """Numbers to be written, once those sent before have been fetched."""
        if self._fetched is not None:
            self._fetched.synchronize()
        size = count * dtype.itemsize
        if len(self._held) < size:
            self._held = torch.empty(size, dtype=torch.uint8, pin_memory=True)
        return self._held[:size].view(dtype)

    def send(self, numbers: Tensor, device: torch.device) -> Tensor:
        """What `take` gave, on the device."""
        there = numbers.to(device, non_blocking=True)
        self._fetched = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._fetched.record()
        return there
