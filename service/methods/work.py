"""How much a job is, before it begins: what it computes and holds, and the seconds that takes. From an order and declarations alone.

Methods count their loops (`Method.estimate`); what a count costs on a machine is fitted to measured runs by `python -m bench.jobs`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import pairwise

CODES_IN_MEMORY = 32 << 20
"""Bytes of codes beyond which a worker maps them from a file (`workers.encoding.table`)."""

FLOAT = 4
"""Bytes of a number in a network."""


@dataclass(frozen=True)
class Work:
    """Loops of one job, by kind. Adding two gives both in turn: memory is that of the larger one."""

    products: float = 0.0
    """Multiplications and additions in products of matrices."""
    convolutions: float = 0.0
    """The same in convolutions."""
    elements: float = 0.0
    """Numbers that loops over arrays read or write."""
    draws: float = 0.0
    """Random numbers: noise, and what generators begin with."""
    calls: float = 0.0
    """Rounds of a loop in Python, each of a few dozen calls of a library."""
    memory_bytes: float = 0.0
    """What is held at once, beside the libraries."""

    def __add__(self, other: Work) -> Work:
        added = {kind: getattr(self, kind) + getattr(other, kind) for kind in KINDS}
        return Work(**added, memory_bytes=max(self.memory_bytes, other.memory_bytes))

    def times(self, rounds: float) -> Work:
        """The same work done `rounds` times, in the same memory."""
        return Work(**{kind: rounds * getattr(self, kind) for kind in KINDS}, memory_bytes=self.memory_bytes)

    def holding(self, memory_bytes: float) -> Work:
        """The same work with `memory_bytes` more held all the time."""
        return Work(**{kind: getattr(self, kind) for kind in KINDS}, memory_bytes=self.memory_bytes + memory_bytes)

    @property
    def flops(self) -> float:
        return self.products + self.convolutions + self.elements + self.draws


KINDS = tuple(field.name for field in fields(Work) if field.name != "memory_bytes")


@dataclass(frozen=True)
class Machine:
    """Seconds of a kind's unit, and what every job takes: starting a process, reading rows, writing what is published."""

    seconds: Work
    """Of one multiplication, number, draw or call of each kind; its memory says nothing."""
    start_seconds: float
    start_bytes: float
    """Of the libraries."""

    def seconds_of(self, work: Work) -> float:
        each: list[float] = [getattr(work, kind) * getattr(self.seconds, kind) for kind in KINDS]
        return self.start_seconds + sum(each)

    def memory_of(self, work: Work) -> float:
        return self.start_bytes + work.memory_bytes


CPU = Machine(
    Work(products=1.6e-11, convolutions=1.9e-11, elements=3e-10, draws=5e-8, calls=1.5e-3),
    start_seconds=5.0,
    start_bytes=280e6,
)
"""One thread of a server's processor, as `python -m bench.jobs` fitted it (bench/results/jobs.md)."""

GPU: Machine | None = Machine(
    Work(products=6.5e-14, convolutions=6.5e-14, elements=4.6e-11, draws=8.5e-10, calls=1.7e-3),
    start_seconds=CPU.start_seconds + 0.4,
    start_bytes=CPU.start_bytes,
)
"""The same of an NVIDIA H200, by `python -m bench.jobs --device cuda`. Convolutions were too few to be told from the rest and count
as products (bench/results/jobs.md)."""

ROUNDING_DIGITS = 2


@dataclass(frozen=True)
class Estimate:
    """The estimate of one job, rounded: it is right within a small factor at best."""

    seconds_on_a_cpu: float
    seconds_on_a_gpu: float | None
    memory_bytes: int
    flops: float

    @property
    def as_json(self) -> dict[str, float | int | None]:
        return {
            "seconds_on_a_cpu": self.seconds_on_a_cpu,
            "seconds_on_a_gpu": self.seconds_on_a_gpu,
            "memory_bytes": self.memory_bytes,
            "flops": self.flops,
        }

    @classmethod
    def of(cls, work: Work, *, speed: float = 1.0) -> Estimate:
        """speed: of the installation's processors beside the one that was measured."""
        gpu = None if GPU is None else _rounded(GPU.seconds_of(work))
        return cls(
            seconds_on_a_cpu=_rounded(CPU.seconds_of(work) / speed),
            seconds_on_a_gpu=gpu,
            memory_bytes=int(_rounded(CPU.memory_of(work))),
            flops=_rounded(work.flops),
        )


def _rounded(value: float) -> float:
    if value <= 0.0 or not math.isfinite(value):
        return value
    return round(value, ROUNDING_DIGITS - 1 - math.floor(math.log10(value)))


# -- what several methods count


def perceptron_weights(widths: Iterable[int]) -> int:
    """The number of weights of layers between these widths, biases included. A record takes as many multiplications."""
    return sum((before + 1) * after for before, after in pairwise(widths))


def coded_rows(rows: float, columns: int, columns_of_values: int) -> Work:
    """Reading and encoding a table: codes of two bytes, and of some columns places of four."""
    size = rows * (2.0 * columns + 4.0 * columns_of_values)
    return Work(elements=20.0 * rows * (columns + columns_of_values), memory_bytes=min(size, CODES_IN_MEMORY))
