"""What the paper's own settings cost: by its formulas (equations 13 to 17), and by accounting that holds. Nothing is trained.

Settings of its section 4.1, MNIST: q = 64/60000, five critic steps for each generator step, σ_t = 10·exp(-0.02·t) with t = 0.01·t₁,
σ_c = 4, δ = 1e-5. σ_t is taken for the noise of the *sum* of clipped gradients, as its accounting does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import binom, norm

from service.base.errors import Unpriceable
from service.privacy.accounting import epsilon_of
from service.privacy.events import SampledStepEvent

Q, CRITIC_STEPS, DELTA = 64 / 60_000, 5, 1e-5
FIRST_NOISE, RATE, HISTOGRAM_NOISE = 10.0, 0.02, 4.0
SPAN = 100
"""Generator steps while t = 0.01·t₁ grows by one."""
MOST_MOMENT, SPLITS = 100, 10
CLUSTERS, TENSORS = 4, 10
KERNELS = ((1, 64), (64, 128), (128, 256))
"""Channels of the critic of MNIST of Gulrajani et al. 2017: 5 × 5 kernels, then 4·4·256 numbers to one."""


def scalars() -> int:
    """Weights of that critic, biases not counted: the histograms of ACTS as the paper means it."""
    return sum(5 * 5 * before * after for before, after in KERNELS) + 4 * 4 * KERNELS[-1][1]


@dataclass(frozen=True)
class Price:
    """ε at δ = 1e-5."""

    epsilon: float
    """An upper bound, or the number by tight accounting."""
    at_least: float | None = None

    def __str__(self) -> str:
        if math.isinf(self.epsilon):
            return "none finite"
        if self.at_least is not None:
            return f"between {self.at_least:,.0f} and {self.epsilon:,.0f}"
        return f"{self.epsilon:.2f}"


def noise_levels(generator_steps: int) -> list[tuple[float, int]]:
    """(σ_t, critic steps) in order."""
    spans = range(math.ceil(generator_steps / SPAN))
    return [
        (FIRST_NOISE * math.exp(-RATE * span), CRITIC_STEPS * min(SPAN, generator_steps - span * SPAN))
        for span in spans
    ]


def by_the_paper(generator_steps: int) -> float:
    """Equations 13 to 17: moments at whole λ up to 100, both mechanisms of a step joined by Hölder with ten j's.

    Orders λ/j + 1 that are not whole are rounded up, which the moments allow: they grow with the order.
    """
    splits = [(place + 0.5) / SPLITS for place in range(SPLITS)]
    moments = range(1, MOST_MOMENT + 1)
    levels = noise_levels(generator_steps)
    sigmas, steps = (np.array(column, dtype=np.float64) for column in zip(*levels, strict=True))
    orders = sorted({math.ceil(moment / j) + 1 for moment in moments for j in splits})
    divergences = {order: sampled_divergences(order, np.append(sigmas, HISTOGRAM_NOISE)) for order in orders}
    least = math.inf
    for moment in moments:
        # j·α(λ/j) = λ·ρ(λ/j + 1)
        joined = [
            divergences[math.ceil(moment / j) + 1][-1] + divergences[math.ceil(moment / rest) + 1][:-1]
            for j, rest in zip(splits, reversed(splits), strict=True)
        ]
        total = moment * float(steps @ np.min(joined, axis=0))
        least = min(least, (total - math.log(DELTA)) / moment)
    return least


def sampled_divergences(order: int, sigmas: np.ndarray) -> np.ndarray:
    """Rényi divergence of whole order α of the sampled Gaussian at each σ: ln(Σ_k C(α, k)(1 - q)^(α - k) q^k e^(k(k - 1)/2σ²))/(α - 1)."""
    k = np.arange(order + 1)
    ways = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    fixed = ways + (order - k) * math.log1p(-Q) + k * math.log(Q)
    return np.asarray(logsumexp(fixed + (k * (k - 1) / 2.0) / sigmas[:, None] ** 2, axis=1) / (order - 1))


def honest(generator_steps: int, *, clusters: int = 1, histograms: int = 0) -> float:
    """Clusters of σ_t·c_k each, histograms of noise √2·σ_c with fixed bins, both on one Poisson draw (docs/privacy.md, Lemmas 1 to 3)."""
    per_histogram = histograms / (math.sqrt(2.0) * HISTOGRAM_NOISE) ** 2
    events = tuple(
        SampledStepEvent(Q, (clusters / sigma**2 + per_histogram) ** -0.5, None, steps)
        for sigma, steps in noise_levels(generator_steps)
    )
    try:
        return epsilon_of(events, delta=DELTA)
    except Unpriceable:
        return math.inf


def per_scalar(generator_steps: int) -> Price:
    """ACTS over all scalar weights, bins fixed in advance: a Rényi bound above, and a bound that an attack proves below.

    The attack looks at the summed histograms along the one record's direction, step by step, and counts steps in which they pass a
    threshold. P(k steps or more) ≥ ... with the record, at most C(T, k)·Φ(-x)^k without it.
    """
    multiplier = math.sqrt(2.0) * HISTOGRAM_NOISE / math.sqrt(scalars())
    steps = CRITIC_STEPS * generator_steps
    distance, slack = 1.0 / multiplier, 3.0
    seen = Q * float(norm.cdf(slack))
    below = 0.0
    for count in range(1, steps + 1):
        chance = float(binom.sf(count - 1, steps, seen))
        if chance <= 2.0 * DELTA:
            break
        ways = float(gammaln(steps + 1) - gammaln(count + 1) - gammaln(steps - count + 1))
        without = ways + count * float(norm.logsf(distance - slack))
        below = max(below, math.log(chance - DELTA) - without)
    # A step without the record costs ln(1/(1 - q)); with it N(1/(2σ²), 1/σ²). So many steps have it, except with probability δ/2.
    most = int(binom.isf(DELTA / 2, steps, Q))
    spread = float(norm.isf(DELTA / 2)) * math.sqrt(most) * distance
    above = most * distance**2 / 2.0 + spread - (steps - most) * math.log1p(-Q)
    return Price(above, below)


def rows() -> list[tuple[str, str, Price]]:
    """What is counted, how, and ε; generator steps as the paper's MNIST run at ε = 4 would take them by its own formula."""
    return [
        *(
            (f"{steps:,} generator steps", how, Price(value))
            for steps in (12_000, 13_770)
            for how, value in (
                ("as the paper counts (equations 13 to 17)", by_the_paper(steps)),
                ("the same noise, tight accounting, thresholds for free", honest(steps)),
                (
                    f"{CLUSTERS} clusters, thresholds of {TENSORS} tensors",
                    honest(steps, clusters=CLUSTERS, histograms=TENSORS),
                ),
            )
        ),
        ("100 generator steps", f"thresholds of {scalars():,} scalar weights, bins fixed in advance", per_scalar(100)),
        ("one step", "thresholds with bins up to the batch's largest norm", Price(math.inf)),
    ]


def as_json() -> list[list[str]]:
    """The figures for the page."""
    return [[what, how, str(price)] for what, how, price in rows()]
