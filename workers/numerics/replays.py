"""What a GPU does again and again, as a CUDA graph: launched as one, where each kernel by itself costs Python 20 µs.

A function of tensors is run once for each key, and what it did is replayed ever after: it must do the same whatever the
tensors hold, and may neither wait for the device nor bring numbers from the processor. Elsewhere it is just called.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.numerics.workspace import Workspace

MOST_HELD = 16
"""Graphs; a key more, and all are made anew."""

Function = Callable[[Sequence[Tensor], Workspace], tuple[Tensor, ...]]


@dataclass(frozen=True)
class Replay:
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    graph: torch.cuda.CUDAGraph


class Replays:
    """The functions of one training on its device. All graphs share memory, as large as the largest of them needs."""

    def __init__(self) -> None:
        self._held: dict[Hashable, Replay] = {}

    @torch.no_grad()
    def run(
        self, key: Hashable, function: Function, inputs: Sequence[Tensor], lengths: Sequence[int]
    ) -> tuple[Tensor, ...]:
        """function(inputs), each padded with zeros to its length; the next run overwrites what comes back."""
        if inputs[0].device.type != "cuda":
            return function(_padded(inputs, lengths), Workspace())
        found = self._held.get(key)
        if found is None:
            if len(self._held) == MOST_HELD:
                self._held.clear()
            found = self._held[key] = self._capture(function, _padded(inputs, lengths))
        for held, given in zip(found.inputs, inputs, strict=True):
            held[: len(given)].copy_(given)
            held[len(given) :].zero_()
        found.graph.replay()
        return found.outputs

    def _capture(self, function: Function, inputs: tuple[Tensor, ...]) -> Replay:
        """Run it once, so that libraries have what they need, and once more to learn what it does."""
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            function(inputs, Workspace())
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        pool = next((held.graph.pool() for held in self._held.values()), None)
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            outputs = function(inputs, Workspace())
        return Replay(inputs, outputs, graph)


def _padded(inputs: Sequence[Tensor], lengths: Sequence[int]) -> tuple[Tensor, ...]:
    """Each (length, …), of its own."""
    padded = []
    for given, length in zip(inputs, lengths, strict=True):
        padded.append(given.new_zeros(length, *given.shape[1:]))
        padded[-1][: len(given)] = given
    return tuple(padded)
