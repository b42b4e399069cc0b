"""Exposure: how far up a planted row comes among random ones, by what the generator thinks of it.

Carlini, Liu, Erlingsson, Kos, Song 2019 (*The Secret Sharer*). A canary is drawn evenly from all rows that the declaration allows, so
without a leak its rank among R rows drawn likewise is uniform, and the mean of log₂(R + 1) - log₂(rank) is 1/ln 2 = 1.44 bits.
(ε, δ)-DP allows P(exposure ≥ t) ≤ e^kε·2^-t + δ_k for k copies, so a mean of 1.44 + kε/ln 2 + δ_k·log₂(R + 1) bits. The false-positive
rate 2^-t is known, and no release without the canary is needed.

Ranked by log p as in the paper; and by log p - log p_ref, with p_ref of a few other releases, which sets aside that some rows are
likely in any case. That is the stronger attack, and what is proven is proven by it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bench.audit.bounds import clopper_pearson_upper
from bench.audit.releases.making import Maker, admissible_rows, with_copies
from bench.audit.releases.verdicts import TUNED_ON, Finding, Price
from workers.reports.attacks import CHANCE, bits

REFERENCE_ROWS = 100_000
REFERENCE_RELEASES = 5


@dataclass(frozen=True)
class Exposures:
    """Bits of every canary of one maker and number of copies."""

    bits: np.ndarray
    """By log p - log p_ref."""
    plain_bits: np.ndarray
    """By log p."""
    price: Price

    @property
    def mean(self) -> float:
        return float(self.bits.mean())

    @property
    def half_width(self) -> float:
        """Half of the mean's 95 % interval, by its standard error."""
        return float(1.96 * self.bits.std(ddof=1) / len(self.bits) ** 0.5)

    @property
    def most_mean(self) -> float:
        """What its price allows."""
        allowed = CHANCE + self.price.whole_epsilon / math.log(2.0)
        return min(math.log2(REFERENCE_ROWS + 1), allowed + self.price.whole_delta * math.log2(REFERENCE_ROWS + 1))


def exposures(maker: Maker, rows: np.ndarray, copies: int, runs: int, seed: int = 0) -> Exposures:
    """One canary a release."""
    reference, found = admissible_rows(REFERENCE_ROWS, seed + 7), []
    others = [maker(rows, 3 * 10**6 + seed + place) for place in range(REFERENCE_RELEASES)]
    usual = np.mean([one.log_density(reference) for one in others], axis=0)
    for run in range(runs):
        canary = admissible_rows(1, 10**6 + seed + run)
        held = rows if copies == 0 else with_copies(rows, canary[0], copies)
        release = maker(held, seed + run)
        rng = np.random.default_rng(2 * 10**6 + seed + run)
        own, all_others = release.log_density(canary), release.log_density(reference)
        own_usual = np.mean([one.log_density(canary) for one in others], axis=0)
        found.append((bits(own - own_usual, all_others - usual, rng)[0], bits(own, all_others, rng)[0]))
    return Exposures(*np.array(found).T, maker.paid(copies=max(1, copies)))


def proven(found: Exposures, made_by: tuple[str, bool]) -> Finding:
    """From how many canaries have t bits or more; t is chosen on the first ones."""
    tuned = max(2, int(TUNED_ON * len(found.bits)))
    first, counted, price = found.bits[:tuned], found.bits[tuned:], found.price
    grid = np.arange(0.25, math.log2(REFERENCE_ROWS + 1), 0.25)
    reached = np.array([(first >= one).mean() for one in grid])
    for_advantage = float(grid[np.argmax(reached - 2.0**-grid)])
    # Half a canary less, so that the tail where one alone is does not win.
    for_epsilon = float(grid[np.argmax(np.log(np.maximum(reached - 0.5 / tuned, 1e-9)) + grid * math.log(2.0))])

    def lower(threshold: float) -> float:
        return 1.0 - clopper_pearson_upper(int((counted < threshold).sum()), len(counted), failure=0.05)

    ratio = (lower(for_epsilon) - price.whole_delta) / 2.0**-for_epsilon
    return Finding(
        "exposure",
        f"random rows, {price.copies} cop{'y' if price.copies == 1 else 'ies'}",
        *made_by,
        price,
        runs=len(counted),
        advantage=float((counted >= for_advantage).mean() - 2.0**-for_advantage),
        advantage_lower=lower(for_advantage) - 2.0**-for_advantage,
        epsilon_lower=max(0.0, math.log(ratio)) if ratio > 0.0 else 0.0,
    )
