"""RAPPOR: a value's Bloom filter, randomised once for ever and again for every report (Erlingsson, Pihur and Korolova 2014)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from imprimatur.local.coins import (
    WHOLE,
    PermanentCoins,
    at_least,
    check_secret,
    epsilon_of,
    fresh,
    nearest,
    new_secret,
    number_below,
    places,
)
from imprimatur.local.estimates import (
    Estimates,
    Fit,
    InvalidReport,
    add_bits,
    bits_of,
    least_squares,
    non_negative_lasso,
    text_of,
)

MOST_BITS, MOST_COHORTS = 4_096, 1_024
MOST_CANDIDATES = 1_000
LEAST_DIFFERENCE = 1e-9
"""Between the chances of a 1 where the filter has the bit and where it has not: with less, floats could not tell how far off counts are."""
LASSO_STDS = 2.0
"""The penalty, in standard deviations of a candidate's product with pure noise: what lies below it is set to zero."""


@dataclass(frozen=True)
class Rappor:
    """The settings, which are public.

    bits, hashes: of the Bloom filter. f: a bit of the filter becomes 1 with probability f/2, 0 with f/2, and stays otherwise; once for each
    value (permanent response). q, p: a bit of a report is 1 with probability q where the permanent bit is 1, and p where it is 0.
    cohorts: devices of another cohort hash otherwise, so that values that meet in one do not in the next.
    question: its name, where a device with one secret answers several; from the same coins, equal answers would have equal permanent responses.
    """

    bits: int = 128
    hashes: int = 2
    f: float = 0.5
    p: float = 0.5
    q: float = 0.75
    cohorts: int = 1
    question: str = ""

    def __post_init__(self) -> None:
        if not 1 <= self.hashes <= self.bits <= MOST_BITS:
            raise ValueError(f"1 ≤ hashes ≤ bits ≤ {MOST_BITS}")
        if not 0.0 < self.f < 1.0:
            raise ValueError(
                "f lies between 0, where a value could be read off many reports, and 1, where reports say nothing"
            )
        if not 0.0 <= self.p < self.q <= 1.0:
            raise ValueError("0 ≤ p < q ≤ 1")
        one, zero = self.chances
        if one - zero < LEAST_DIFFERENCE:
            raise ValueError("p < q lie so near each other, or f so near 1, that reports say nothing")
        if not 1 <= self.cohorts <= MOST_COHORTS:
            raise ValueError(f"1 to {MOST_COHORTS} cohorts")

    @property
    def coins(self) -> tuple[int, int, int]:
        """What is really tossed, in multiples of 2^-64: f/2 (rounded up), p, q."""
        return at_least(Fraction(self.f) / 2), nearest(self.p), nearest(self.q)

    @property
    def epsilon_for_ever(self) -> float:
        """The ε of all reports of one value, however many: 2k·ln((1 - f/2)/(f/2)). They tell of the permanent response and of nothing else."""
        half, _, _ = self.coins
        return epsilon_of(Fraction(WHOLE - half, half), 2 * self.hashes)

    @property
    def epsilon_of_one_report(self) -> float:
        """k·ln(q*(1 - p*)/(p*(1 - q*))), q* and p* the probabilities of a 1 where the filter's bit is 1 or 0."""
        one, zero = self.chances
        if zero == 0 or one == 1:
            return self.epsilon_for_ever
        return epsilon_of(one * (1 - zero) / (zero * (1 - one)), self.hashes)

    @property
    def chances(self) -> tuple[Fraction, Fraction]:
        """Probability of a 1 in a report where the filter's bit is 1, and where it is 0."""
        half, p, q = (Fraction(part, WHOLE) for part in self.coins)
        return (1 - half) * q + half * p, half * q + (1 - half) * p

    def __str__(self) -> str:
        return (
            f"RAPPOR of {self.bits} bits, {self.hashes} hashes. One report: ε = {self.epsilon_of_one_report:.4g}. All reports of one value, "
            f"for ever: ε = {self.epsilon_for_ever:.4g}. Each further value that a device reports costs as much again. "
            "Many reports show which of them are of one value."
        )

    def reporter(self, secret: bytes | None = None, cohort: int | None = None) -> RapporReporter:
        """What runs on a device. Keep its `secret` there: with a new one, the permanent response is drawn again and costs again.

        cohort: the one that a device was given. Otherwise it follows from the secret: another cohort has another permanent response, too.
        """
        secret = new_secret() if secret is None else check_secret(secret)
        if cohort is None:
            cohort = number_below(self.cohorts, secret, f"rappor cohort {self.cohorts}{self._of_question}")
        if not 0 <= cohort < self.cohorts:
            raise ValueError(f"cohorts are numbered from 0 to {self.cohorts - 1}")
        return RapporReporter(self, secret, cohort)

    def purpose(self, cohort: int) -> str:
        """Of permanent coins, all that a response depends on: from the same coins, those of two settings would show which bits the filter has."""
        half, _, _ = self.coins
        return f"rappor {self.bits} {self.hashes} {half} {cohort}{self._of_question}"

    @property
    def _of_question(self) -> str:
        return f" {self.question}" if self.question else ""

    def filter_bits(self, value: str, cohort: int) -> tuple[int, ...]:
        """The bits that a value sets."""
        return places(value, cohort=cohort, hashes=self.hashes, bits=self.bits)

    def is_report(self, report: object) -> bool:
        """Whether a device with these settings may have sent this; by its form alone, so one of other settings may pass."""
        try:
            self.parsed(report)
        except InvalidReport:
            return False
        return True

    def parsed(self, report: object) -> tuple[int, int]:
        """Cohort and bits of a report; raises `InvalidReport`."""
        if not isinstance(report, Mapping):
            raise InvalidReport("a report has a cohort and bits")
        cohort = report.get("cohort")
        if type(cohort) is not int or not 0 <= cohort < self.cohorts:
            raise InvalidReport(f"cohort is a number from 0 to {self.cohorts - 1}")
        return cohort, bits_of(report.get("bits"), self.bits)

    def count(self, reports: Iterable[Mapping[str, Any]]) -> BitCounts:
        """Add up the bits of all reports; raises `InvalidReport` (`is_report`)."""
        counted = BitCounts(self, [[0] * self.bits for _ in range(self.cohorts)], [0] * self.cohorts)
        for report in reports:
            counted.add(report)
        return counted

    def estimate(
        self, reports: Iterable[Mapping[str, Any]], candidates: Sequence[str], fit: Fit = "least_squares"
    ) -> Estimates:
        """How many reports are about each candidate: see `BitCounts.estimate`."""
        return self.count(reports).estimate(candidates, fit)


class RapporReporter:
    """One device."""

    def __init__(self, settings: Rappor, secret: bytes, cohort: int) -> None:
        self._settings, self.secret, self.cohort = settings, secret, cohort

    def permanent(self, value: str) -> tuple[bool, ...]:
        """The permanent response: never sent. The same for one value and secret, so that many reports do not average it away."""
        settings = self._settings
        half, _, _ = settings.coins
        coins = PermanentCoins(self.secret, settings.purpose(self.cohort), value)
        own = settings.filter_bits(value, self.cohort)
        # One coin a bit: 1 with probability f/2 where the filter has 0, 0 with f/2 where it has 1.
        return tuple(coins.toss(half) != (place in own) for place in range(settings.bits))

    def report(self, value: str) -> dict[str, Any]:
        """What is sent: the cohort, and hexadecimal digits."""
        _, p, q = self._settings.coins
        return {"cohort": self.cohort, "bits": text_of(fresh(q if bit else p) for bit in self.permanent(value))}


@dataclass(frozen=True)
class BitCounts:
    """How often each bit of each cohort was set; all that the reports' receiver has to keep."""

    settings: Rappor
    ones: list[list[int]]
    reports: list[int]

    def add(self, report: Mapping[str, Any]) -> None:
        """One report more; raises `InvalidReport`."""
        cohort, bits = self.settings.parsed(report)
        add_bits(self.ones[cohort], bits)
        self.reports[cohort] += 1

    def true_bits(self) -> list[list[float]]:
        """How many filters have the bit, for each bit of each cohort, unbiased: t = (c - p*·N)/(q* - p*), p* = p + fq/2 - fp/2."""
        one, zero = self.settings.chances
        return [
            [float((count - zero * total) / (one - zero)) for count in ones]
            for ones, total in zip(self.ones, self.reports, strict=True)
        ]

    def estimate(self, candidates: Sequence[str], fit: Fit = "least_squares") -> Estimates:
        """Counts of the candidates.

        least_squares: unbiased, if all values that are reported are candidates. lasso: first the candidates that a non-negative lasso
        keeps, then least squares of these; for long lists of which most do not occur. Choosing makes what is kept too large, so no standard
        deviation is given.
        """
        if not 1 <= len(candidates) <= MOST_CANDIDATES or len(set(candidates)) < len(candidates):
            raise ValueError(f"give 1 to {MOST_CANDIDATES} different candidates")
        total = sum(self.reports)
        if not total:
            return Estimates(0, dict.fromkeys(candidates, 0.0), dict.fromkeys(candidates, 0.0))
        numbers = [value for bits in self.true_bits() for value in bits]
        columns = [self._column(value) for value in candidates]
        stds = [self._std(cohort, place) for cohort, bits in enumerate(self.ones) for place in range(len(bits))]
        if fit == "lasso":
            columns, candidates, zeros = self._kept(columns, candidates, numbers, stds)
            if not candidates:
                return Estimates(total, zeros, {})
            weights, _ = least_squares(columns, numbers)
            return Estimates(total, zeros | dict(zip(candidates, weights, strict=True)), {})
        weights, maps = least_squares(columns, numbers)
        std = [math.sqrt(math.fsum((factor * stds[entry]) ** 2 for entry, factor in each.items())) for each in maps]
        return Estimates(total, dict(zip(candidates, weights, strict=True)), dict(zip(candidates, std, strict=True)))

    def _column(self, value: str) -> dict[int, float]:
        """What one report about a value adds to the true bits on average: to those of each cohort its share of the devices."""
        total = sum(self.reports)
        return {
            cohort * self.settings.bits + place: reports / total
            for cohort, reports in enumerate(self.reports)
            if reports
            for place in self.settings.filter_bits(value, cohort)
        }

    def _std(self, cohort: int, place: int) -> float:
        """Of one true bit, from the randomised bits alone."""
        one, zero = (float(chance) for chance in self.settings.chances)
        total = self.reports[cohort]
        have = min(float(total), max(0.0, (self.ones[cohort][place] - zero * total) / (one - zero)))
        return math.sqrt(have * one * (1.0 - one) + (total - have) * zero * (1.0 - zero)) / (one - zero)

    @staticmethod
    def _kept(
        columns: list[dict[int, float]], candidates: Sequence[str], numbers: Sequence[float], stds: Sequence[float]
    ) -> tuple[list[dict[int, float]], list[str], dict[str, float]]:
        noise = max(math.sqrt(sum((value * stds[entry]) ** 2 for entry, value in each.items())) for each in columns)
        weights = non_negative_lasso(columns, numbers, LASSO_STDS * noise)
        kept = [j for j, weight in enumerate(weights) if weight > 0.0]
        return [columns[j] for j in kept], [candidates[j] for j in kept], dict.fromkeys(candidates, 0.0)
