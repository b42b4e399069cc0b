"""How far off an order's counts will be, and the least ε that gives what is wanted: parts of a quote."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from imprimatur.model import Model, Readers


@dataclass(frozen=True, eq=False)
class Spread(Model):
    """Over marginals."""

    smallest: float
    median: float
    largest: float


@dataclass(frozen=True, eq=False)
class Expected(Model):
    """What is expected, and between what it was for four fifths of the tables of the calibration."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Counts(Model):
    """Marginals of one kind: how noisy a count is, and how far they are off by noise alone."""

    marginals: int
    count_std: Spread
    off_by: float
    """Rows, at most, 19 times in 20."""
    smallest_group: int
    """Rows of the smallest group that can be told apart from an empty one."""
    total_variation: Expected

    _read: ClassVar[Readers] = {"count_std": Spread.of, "total_variation": Expected.of}


@dataclass(frozen=True, eq=False)
class Experience(Model):
    """What classifiers lost beside ones trained on real data, on so many public data sets. No promise."""

    tables: int
    low: float
    median: float
    high: float
    one_way_tv: Expected | None = None
    """Total variation of synthetic from real rows in tables of one column: noise and all that adds to it."""
    two_way_tv: Expected | None = None
    """The same of two columns, measured or not."""
    runs: int = 0
    """On these data sets, at every ε that is near,"""
    earlier: int = 0
    """and those of them with an earlier version of the method."""

    _read: ClassVar[Readers] = {"one_way_tv": Expected.of, "two_way_tv": Expected.of}


@dataclass(frozen=True, eq=False)
class Forecast(Model):
    """How far off what is published will be, from schema, n, unit and order alone."""

    sentences: tuple[str, ...]
    pairs: str | None = None
    """Which pairs of columns are measured: all, few_or_all, chosen or none."""
    one_way: Counts | None = None
    with_condition: Counts | None = None
    two_way: Counts | None = None
    experience: Experience | None = None

    _read: ClassVar[Readers] = {
        "sentences": tuple,
        "one_way": Counts.of,
        "with_condition": Counts.of,
        "two_way": Counts.of,
        "experience": Experience.of,
    }

    def __str__(self) -> str:
        return "\n".join(self.sentences)


@dataclass(frozen=True, eq=False)
class Wanted(Model):
    """The least ε that gives what was wanted; None where none that can still be paid does."""

    epsilon: float | None
    largest: float
    says: str

    def __str__(self) -> str:
        return self.says
