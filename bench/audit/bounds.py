"""From how often an adversary guesses right to a lower bound on ε, at 95 % confidence.

Two bounds on the same errors, both with Clopper-Pearson limits:
    direct   an (ε, δ)-DP mechanism has 1 - β ≤ e^ε·α + δ and 1 - α ≤ e^ε·β + δ (Kairouz et al. 2015), whatever it is.
             Near the claim only with a threshold far out in the tail, so with millions of trials.
    curve    the claim is more than one (ε, δ): it is the whole trade-off curve f of its event list (Dong et al. 2022).
             Errors below the curve of a list with noise s·σ refute every such list; the smallest refuted s, as ε at the
             claimed δ, is what the adversary has shown (Nasr et al. 2023, §4). One threshold in the middle suffices.
And for one run with many canaries the p-value of Steinke, Nasr, Jagielski 2023.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from dp_accounting.gaussian_mechanism import get_sigma_gaussian
from scipy import stats

from service.privacy.accounting import epsilon_of, loss_of
from service.privacy.events import DrawnPartEvent, Event, Events, GaussianEvent, SampledStepEvent

CONFIDENCE = 0.95
EPSILON_GRID = np.concatenate((np.linspace(0.0, 3.0, 61), np.linspace(3.1, 30.0, 120)))
MIDDLE_DELTA = 1e-4
"""δ(ε) is most exact there; from above everywhere."""


@dataclass(frozen=True)
class Errors:
    """Upper limits of both error rates of one fixed test; together they hold with 95 %."""

    false_positive: float
    false_negative: float

    @classmethod
    def of(cls, without: np.ndarray, with_canary: np.ndarray, threshold: float) -> Errors:
        return cls(
            clopper_pearson_upper(int((without > threshold).sum()), len(without)),
            clopper_pearson_upper(int((with_canary <= threshold).sum()), len(with_canary)),
        )


def clopper_pearson_upper(successes: int, trials: int, *, failure: float = (1.0 - CONFIDENCE) / 2.0) -> float:
    """Upper limit for a binomial proportion, wrong with probability `failure`: half of what is allowed, as there are two rates to bound."""
    if successes >= trials:
        return 1.0
    return float(stats.beta.isf(failure, successes + 1, trials - successes))


def direct_epsilon(errors: Errors, delta: float) -> float:
    alpha, beta = errors.false_positive, errors.false_negative
    ratios = ((1.0 - beta - delta) / alpha, (1.0 - alpha - delta) / beta)
    return max(0.0, *(math.log(ratio) if ratio > 0.0 else 0.0 for ratio in ratios))


def gaussian_signal(errors: Errors) -> float:
    """μ of the Gaussian trade-off curve through these errors: how good a threshold is, whatever the mechanism."""
    return float(stats.norm.isf(errors.false_positive) + stats.norm.isf(errors.false_negative))


def curve_epsilon(errors: Errors, events: Events, delta: float) -> float:
    """Largest ε at δ among the lists with noise s·σ that these errors refute.

    Refuted: β < f_s(α). More noise (larger s) is a stronger claim and is refuted first, so s is found by bisection.
    """
    low, high = math.log(0.05), math.log(20.0)
    if not _refuted(errors, scaled(events, math.exp(high))):
        return 0.0
    while high - low > 2e-3:
        middle = (low + high) / 2.0
        low, high = (low, middle) if _refuted(errors, scaled(events, math.exp(middle))) else (middle, high)
    return claimed_epsilon(scaled(events, math.exp(high)), delta)


def claimed_epsilon(events: Events, delta: float) -> float:
    return epsilon_of(events, delta=delta)


def scaled(events: Events, factor: float) -> Events:
    """The list with every noise multiplier multiplied by a factor."""

    def one(event: GaussianEvent | SampledStepEvent | DrawnPartEvent) -> Event:
        if not isinstance(event, SampledStepEvent):
            return replace(event, noise_multiplier=event.noise_multiplier * factor)
        histogram = event.histogram_noise_multiplier
        return SampledStepEvent(
            event.sampling_probability,
            event.gradient_noise_multiplier * factor,
            None if histogram is None else histogram * factor,
            event.count,
        )

    return tuple(one(event) for event in events)


def _refuted(errors: Errors, events: Events) -> bool:
    """Whether these errors are impossible under the list: below its trade-off curve in either direction."""
    alpha, beta = errors.false_positive, errors.false_negative
    precision = _gaussian_precision(events)
    if precision is not None:
        curve = float(stats.norm.cdf(stats.norm.isf(alpha) - math.sqrt(precision)))
        return beta < curve
    # f(α) = sup_ε max(1 - δ(ε) - e^ε·α, e^-ε·(1 - δ(ε) - α)); δ(ε) is from above, so f is from below.
    loss = loss_of(events, delta=MIDDLE_DELTA)
    delta = np.asarray([loss.delta(float(epsilon)) for epsilon in EPSILON_GRID])
    growth = np.exp(EPSILON_GRID)
    return beta < float(max((1.0 - delta - growth * alpha).max(), ((1.0 - delta - alpha) / growth).max()))


def _gaussian_precision(events: Events) -> float | None:
    """μ² of a list that is one Gaussian, where nothing is sampled."""
    if any(event.sampling_probability < 1.0 for event in events):
        return None
    return sum(event.count * event.joint_noise_multiplier**-2 for event in events)


def gaussian_noise_for(epsilon: float, delta: float) -> float:
    """σ of the one Gaussian release with this (ε, δ)."""
    return float(get_sigma_gaussian(epsilon, delta))


# -- one run ----------------------------------------------------------------------------------------------------------


def one_run_p_value(*, canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Chance of so many right guesses under (ε, δ)-DP: Steinke, Nasr, Jagielski 2023, Theorem 5.2 and Appendix D.

    Each canary is in by a fair coin; β is the binomial tail of ε-DP randomised response, α the price of δ:
    P[correct ≥ v] ≤ β + 2mδ·max_i P[v > Binomial ≥ v - i]/i.
    """
    accuracy = 1.0 / (1.0 + math.exp(-epsilon))
    beta = float(stats.binom.sf(correct - 1, guesses, accuracy))
    shares = np.cumsum(stats.binom.pmf(np.arange(correct - 1, -1, -1), guesses, accuracy)) / np.arange(1, correct + 1)
    alpha = float(shares.max()) if correct else 0.0
    return min(1.0, beta + 2.0 * canaries * delta * alpha)


def one_run_epsilon(*, canaries: int, guesses: int, correct: int, delta: float) -> float:
    """Largest ε that the guesses refute at 95 %."""
    return _largest(
        lambda epsilon: (
            one_run_p_value(canaries=canaries, guesses=guesses, correct=correct, epsilon=epsilon, delta=delta)
            < 1.0 - CONFIDENCE
        )
    )


def _largest(refuted: Callable[[float], bool]) -> float:
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, 1.0
    while refuted(high):
        low, high = high, 2.0 * high
    while high - low > 1e-4:
        middle = (low + high) / 2.0
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
