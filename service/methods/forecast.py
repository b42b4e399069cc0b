"""What an order will give, before it is paid: how far off counts will be, from the declaration, n, the unit and the order alone.

Nothing here reads a row. docs/forecast.md says how each number is computed and how far off the forecasts themselves are.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from service.base.messages import Figure, Message, Text

SURE = 1.96
"""Standard deviations of noise that are not exceeded 19 times in 20."""

TOLD_APART = 3.29
"""A group is told apart from an empty one if its count is so many standard deviations: 19 times in 20 it exceeds what 19 of 20 empty ones have."""

USUAL_GROUP = 200
"""Rows of the group that a forecast gives as an example."""


@dataclass(frozen=True)
class Spread:
    """Over marginals."""

    smallest: float
    median: float
    largest: float


@dataclass(frozen=True)
class Expected:
    """A number that depends on the rows, too: what is expected, and between what it was for four fifths of the tables of the calibration."""

    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Counts:
    """Marginals of one number of columns, of all rows."""

    marginals: int
    """That are measured; where scores choose them, at most."""
    count_std: Spread
    """Standard deviation of the noise on one count: in the marginal where it is smallest, at the median, where it is largest."""
    off_by: float
    """Rows that a count is off by at most, 19 times in 20, in the marginal at the median."""
    smallest_group: int
    """Rows of the smallest group that can be told apart from an empty one, 19 times in 20, in the same."""
    total_variation: Expected
    """From noise alone, on average over these marginals: 0 for equal tables, 1 for tables that share nothing."""


Pairs = Literal["all", "few_or_all", "chosen", "none"]


@dataclass(frozen=True)
class Experience:
    """What classifiers reached that were trained on such rows, in the benches of this software. No promise."""

    tables: int
    low: float
    median: float
    high: float
    one_way_tv: Expected | None = None
    """Total variation of synthetic from real rows in tables of one column: noise and all that adds to it."""
    two_way_tv: Expected | None = None
    """The same of two columns, whether they are measured or not."""
    runs: int = 0
    """On these data sets, at every ε that is near,"""
    earlier: int = 0
    """and those of them with an earlier version of the method."""


@dataclass(frozen=True)
class Forecast:
    """How far off the counts of an order will be, in numbers and in sentences."""

    sentences: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    one_way: Counts | None = None
    with_condition: Counts | None = None
    """Two-way marginals of each column and the condition."""
    two_way: Counts | None = None
    """Of two other columns; None where none are measured."""
    pairs: Pairs | None = None
    """Which pairs of columns are measured; None where the method measures no tables."""
    experience: Experience | None = None

    @property
    def as_json(self) -> dict[str, Any]:
        """The numbers and sentences; warnings stand beside those of the promise."""
        said = {name: value for name, value in asdict(self).items() if name != "warnings"}
        return {
            **said,
            "sentences": [str(each) for each in self.sentences],
        }  # as JSON has it: a certificate is compared with itself read again


def usual_group(units: int) -> int:
    """Rows of the group that stands as an example: 200, or a tenth of a small table."""
    return min(USUAL_GROUP, max(1, round(units / 10)))


def in_digits(value: float) -> Text:
    """Two digits, without an exponent: 0.034, 3.4, 340."""
    if value <= 0.0:
        return Figure("0")
    if value >= 10.0:
        return Figure(f"{float(f'{value:.2g}'):,.0f}" if value >= 100.0 else f"{value:.0f}")
    return Figure(f"{value:.2g}") if value >= 1e-4 else Message("under %(least)s", least=Figure("0.0001"))
