"""One run's releases told to another run: what follows must then be the same, unless something but a release was looked at."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from torch import Tensor

from workers.mechanism import PrivateSum


@dataclass
class Outputs:
    """What went into the releases of a run, and what came out."""

    sums: list[PrivateSum] = field(default_factory=list)
    noisy: list[tuple[Tensor, ...]] = field(default_factory=list)


@contextlib.contextmanager
def heard(*modules: ModuleType, forced: Sequence[tuple[Tensor, ...]] | None = None) -> Iterator[Outputs]:
    """Hear what these modules hand to `release` and `release_counts`. forced: what they get back instead, in order."""
    outputs = Outputs()
    real = [(module, name, getattr(module, name, None)) for module in modules for name in ("release", "release_counts")]

    def listening(function: Callable[..., tuple[Tensor, ...]]) -> Callable[..., tuple[Tensor, ...]]:
        def call(private: PrivateSum, **knobs: Any) -> tuple[Tensor, ...]:
            drawn = function(private, **knobs)  # takes as much of the stream as ever
            outputs.sums.append(private)
            outputs.noisy.append(drawn if forced is None else forced[len(outputs.noisy)])
            return outputs.noisy[-1]

        return call

    for module, name, function in real:
        if function is not None:
            setattr(module, name, listening(function))
    try:
        yield outputs
    finally:
        for module, name, function in real:
            if function is not None:
                setattr(module, name, function)
