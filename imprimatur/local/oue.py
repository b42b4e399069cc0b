"""Optimised unary encoding: one bit for each declared value, each bit randomised by itself (Wang et al. 2017)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from imprimatur.local.coins import (
    DIGITS,
    WHOLE,
    PermanentCoins,
    at_least,
    check_secret,
    digest_of,
    epsilon_of,
    fresh,
    new_secret,
)
from imprimatur.local.estimates import Estimates, InvalidReport, add_bits, bits_of, text_of

MOST_VALUES = 100_000
LARGEST_EPSILON = 40.0
"""Beyond it the coins of a bit, multiples of 2^-64, would be coarse."""


class OUE:
    """The settings, which are public: the list of values and ε; and a name of the question, where a device has several.

    The bit of the own value is kept with probability ½, every other one is set with probability 1/(e^ε + 1), rounded up.
    """

    def __init__(self, values: Sequence[str], epsilon: float, *, question: str = "") -> None:
        self.values = tuple(values)
        if not 2 <= len(self.values) <= MOST_VALUES or len(set(self.values)) < len(self.values):
            raise ValueError(f"give 2 to {MOST_VALUES} different values")
        if not 0.0 < epsilon <= LARGEST_EPSILON:
            raise ValueError(f"epsilon is above 0 and at most {LARGEST_EPSILON:g}")
        self.flip_part = _flip_part(epsilon)
        if self.flip >= 0.5:
            raise ValueError("with so small an epsilon reports say nothing")
        self._place = {value: place for place, value in enumerate(self.values)}
        self.purpose = f"oue {self.flip_part} {digest_of(self.values)}{question and ' '}{question}"
        """Of permanent coins: other settings toss others, since two reports from the same ones would tell more than the sum of their ε. So do other
        questions with the same list: from the same coins, equal answers would be equal texts."""

    @property
    def flip(self) -> float:
        """Probability that the bit of another value is set."""
        return self.flip_part / WHOLE

    @property
    def epsilon(self) -> float:
        """The ε of one report, and of all reports of one value where they are memoised, by the coins that are really tossed; rounded up."""
        return epsilon_of(Fraction(WHOLE - self.flip_part, self.flip_part))

    def __str__(self) -> str:
        return (
            f"OUE of {len(self.values)} values. One report: ε = {self.epsilon:.4g}. All reports of one value, for ever: "
            f"ε = {self.epsilon:.4g} where reports are memoised (the default); else {self.epsilon:.4g} more with each report. "
            "Each further value that a device reports costs as much again. Which memoised reports are of one value is not hidden."
        )

    def reporter(self, secret: bytes | None = None, *, memoised: bool = True) -> OueReporter:
        """What runs on a device. Keep `OueReporter.secret` there: a new one is a new first report of every value."""
        return OueReporter(self, new_secret() if secret is None else check_secret(secret), memoised=memoised)

    def place(self, value: str) -> int:
        """The place of a declared value; ValueError for any other."""
        if value not in self._place:
            raise ValueError("this value was not declared; declare one such as 'other' and report that")
        return self._place[value]

    def is_report(self, report: object) -> bool:
        """Whether a device with these settings may have sent this; by its form alone, so one of other settings may pass."""
        try:
            bits_of(report, len(self.values))
        except InvalidReport:
            return False
        return True

    def estimate(self, reports: Iterable[str]) -> Estimates:
        """Raises `InvalidReport` (`is_report`). Counts of all values, unbiased; Var = N·4e^ε/(e^ε - 1)², and for a value that many have up to N/4·(…) more."""
        counts, total = [0] * len(self.values), 0
        for report in reports:
            add_bits(counts, bits_of(report, len(self.values)))
            total += 1
        flip = Fraction(self.flip_part, WHOLE)
        scale = Fraction(1, 2) - flip
        found = {value: float((counts[i] - total * flip) / scale) for i, value in enumerate(self.values)}
        return Estimates(
            total, found, {value: self.std(total, max(0.0, min(float(total), found[value]))) for value in self.values}
        )

    def std(self, reports: int, count: float = 0.0) -> float:
        """The standard deviation of the estimated count of a value that `count` of `reports` reports are about."""
        own, other = 0.25, self.flip * (1.0 - self.flip)
        return math.sqrt(count * own + (reports - count) * other) / (0.5 - self.flip)


def _flip_part(epsilon: float) -> int:
    """The least multiple of 2^-64 that is no less than 1/(e^ε + 1): an ε that is larger than what was asked for would break the promise.

    That of the float, as earlier versions had it, where it is large enough: with another one, memoised reports would be drawn anew.
    """
    below = DIGITS.exp(Decimal(epsilon)).next_minus(DIGITS)
    return max(at_least(1 / (Fraction(below) + 1)), at_least(1.0 / (math.exp(epsilon) + 1.0)))


class OueReporter:
    """One device."""

    def __init__(self, settings: OUE, secret: bytes, *, memoised: bool) -> None:
        self._settings, self.secret, self._memoised = settings, secret, memoised

    def report(self, value: str) -> str:
        """Hexadecimal digits to be sent. Memoised: one value always gives the same report, so that repeating it tells nothing more."""
        own, flip = self._settings.place(value), self._settings.flip_part
        toss = PermanentCoins(self.secret, self._settings.purpose, value).toss if self._memoised else fresh
        return text_of(toss(WHOLE // 2 if place == own else flip) for place in range(len(self._settings.values)))
