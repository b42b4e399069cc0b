"""From an attack's guesses to what they prove, beside what was paid: an advantage, and ε from below. All at 95 % (Clopper-Pearson).

    advantage   TPR - FPR ≤ (e^ε - 1 + 2δ)/(e^ε + 1)
    ε_LB        ln((TPR_lo - δ)/FPR_hi), or the same of the other answer

Of k copies of a row, group privacy: kε, and δ·(e^kε - 1)/(e^ε - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from bench.audit.bounds import Errors, clopper_pearson_upper, direct_epsilon
from workers.reports.attacks import most_advantage

TUNED_ON = 0.2
"""The part of the runs on which thresholds are chosen; errors are counted on the others."""


@dataclass(frozen=True)
class Price:
    """What was paid for what the attack sees."""

    epsilon: float
    delta: float
    copies: int = 1
    releases: int = 1

    @property
    def whole_epsilon(self) -> float:
        """The ε of all copies and releases together."""
        return self.epsilon * self.copies * self.releases

    @property
    def whole_delta(self) -> float:
        """The δ of all copies and releases together; 1 where nothing is promised any more."""
        one = math.expm1(self.epsilon)
        return min(1.0, self.releases * self.delta * (math.expm1(self.copies * self.epsilon) / one if one else 1.0))

    @property
    def most_advantage(self) -> float:
        """No test of such a release has more."""
        return most_advantage(self.whole_epsilon, self.whole_delta)


@dataclass(frozen=True)
class Finding:
    """What one attack has shown of one kind of release."""

    attack: str
    target: str
    made_by: str
    is_control: bool
    price: Price
    runs: int
    """Counted ones, of both worlds together."""
    advantage: float
    advantage_lower: float
    """Its lower limit."""
    epsilon_lower: float

    @property
    def epsilon_of_a_copy(self) -> float:
        return self.epsilon_lower / (self.price.copies * self.price.releases)

    @property
    def is_beyond_its_price(self) -> bool:
        """Whether it refutes what was promised."""
        return self.advantage_lower > self.price.most_advantage or self.epsilon_lower > self.price.whole_epsilon


@dataclass(frozen=True)
class Guesses:
    """(runs,) bool, `in` guessed: of releases without the row, and with it."""

    without: np.ndarray
    with_row: np.ndarray

    @property
    def errors(self) -> Errors:
        return Errors(
            clopper_pearson_upper(int(self.without.sum()), len(self.without)),
            clopper_pearson_upper(int((~self.with_row).sum()), len(self.with_row)),
        )


@dataclass(frozen=True)
class Thresholds:
    """One for the advantage, one for ε: the best is in the middle for one, often in the tail for the other."""

    for_advantage: float
    for_epsilon: float


def thresholds_of(without: np.ndarray, with_row: np.ndarray, delta: float) -> Thresholds:
    """The best for these scores, which may not be counted then."""
    scores = np.unique(np.concatenate([without, with_row]))
    candidates = np.concatenate([[scores[0] - 1.0], (scores[1:] + scores[:-1]) / 2.0, [scores[-1] + 1.0]])
    advantages = [float((with_row > one).mean() - (without > one).mean()) for one in candidates]
    best = float(candidates[int(np.argmax(advantages))])
    proven = [direct_epsilon(Errors.of(without, with_row, one), delta) for one in candidates]
    return Thresholds(best, float(candidates[int(np.argmax(proven))]) if max(proven) > 0.0 else best)


def finding_of(
    attack: tuple[str, str], made_by: tuple[str, bool], price: Price, guesses: tuple[Guesses, Guesses]
) -> Finding:
    """attack: its name and its target. made_by: a maker's name, and whether it is a control. guesses: for the advantage, for ε."""
    for_advantage, for_epsilon = guesses
    errors = for_advantage.errors
    return Finding(
        *attack,
        *made_by,
        price,
        runs=len(for_advantage.without) + len(for_advantage.with_row),
        advantage=float(for_advantage.with_row.mean() - for_advantage.without.mean()),
        advantage_lower=1.0 - errors.false_negative - errors.false_positive,
        epsilon_lower=direct_epsilon(for_epsilon.errors, price.whole_delta),
    )


def finding_of_scores(
    attack: tuple[str, str], made_by: tuple[str, bool], price: Price, scores: tuple[np.ndarray, np.ndarray]
) -> Finding:
    """scores: of releases without the row and with it, from independent runs; high ones speak for the row."""
    without, with_row = scores
    first, second = (max(2, int(TUNED_ON * len(one))) for one in scores)
    chosen = thresholds_of(without[:first], with_row[:second], price.whole_delta)
    without, with_row = without[first:], with_row[second:]
    guesses = [Guesses(without > one, with_row > one) for one in (chosen.for_advantage, chosen.for_epsilon)]
    return finding_of(attack, made_by, price, (guesses[0], guesses[1]))
