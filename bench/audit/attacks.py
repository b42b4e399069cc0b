"""One attack per mechanism. Each returns scores without and with the canary, from independent runs of the real code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch

from bench.audit.acts import epochs_scores, outlier_scores, public_bins_scores
from bench.audit.bounds import (
    Errors,
    claimed_epsilon,
    curve_epsilon,
    direct_epsilon,
    gaussian_noise_for,
    gaussian_signal,
    one_run_epsilon,
)
from bench.audit.worlds import (
    FIRST_UNIT,
    CanaryIdpgan,
    Wiretap,
    histogram_score,
    listening,
    make_canaries,
    null_table,
    order_for,
    spike_score,
)
from service.methods.idpgan.order import IdpganOrder
from service.privacy.events import DrawnPartEvent, Events, GaussianEvent, SampledStepEvent
from workers.mechanism.clusters import ClipGroups
from workers.mechanism.joint_clipping import clip_jointly
from workers.mechanism.noise import release
from workers.mechanism.sampling import draw_part
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.tables import TableIdpgan
from workers.plan import Plan

DELTA = 1e-5
FIRST = FIRST_UNIT


@dataclass(frozen=True)
class Finding:
    """What one attack has shown."""

    name: str
    epsilon_claimed: float
    epsilon_lower: float
    epsilon_direct: float | None
    trials: int
    method: str

    @property
    def ratio(self) -> float:
        return self.epsilon_lower / self.epsilon_claimed


Scores = tuple[np.ndarray, np.ndarray]


def judge(name: str, scores: Scores, events: Events) -> Finding:
    """Thresholds are chosen on the first fifth of the runs, errors counted on the rest."""
    cut = len(scores[0]) // 5
    pilot = [score[:cut] for score in scores]
    without, with_canary = (score[cut:] for score in scores)
    middle = _threshold(pilot, gaussian_signal, 0.15)
    tail = _threshold(pilot, lambda errors: direct_epsilon(errors, DELTA), 0.01)
    return Finding(
        name,
        claimed_epsilon(events, DELTA),
        curve_epsilon(Errors.of(without, with_canary, middle), events, DELTA),
        direct_epsilon(Errors.of(without, with_canary, tail), DELTA),
        len(without) + len(with_canary),
        "canary",
    )


def _threshold(pilot: list[np.ndarray], goodness: Callable[[Errors], float], outermost: float) -> float:
    candidates = np.quantile(np.concatenate(pilot), np.linspace(outermost, 1.0 - outermost, 71))
    return float(max(candidates, key=lambda threshold: goodness(Errors.of(pilot[0], pilot[1], threshold))))


def log_likelihood_ratio(x: float, signal: float, sampling_probability: float) -> float:
    """ln of density with the canary over density without, of one sampled Gaussian."""
    exponent = signal * x - signal**2 / 2.0
    if sampling_probability == 1.0:
        return exponent
    return math.log1p(sampling_probability * math.expm1(min(exponent, 700.0)))


def canary_scores(
    order: IdpganOrder, events: Events, *, trials: int, seed: int, groups: ClipGroups | None = None
) -> Scores:
    """Score of the whole run: the sum of the steps' log-likelihood ratios, gradients and histograms together."""
    tables = null_table(8), null_table(8, FIRST)
    method = make_canaries(order, events, tables[0], seed)
    q = method.sampling_probability
    scores = np.zeros((2, trials))
    for trial in range(trials):
        for world, table in enumerate(tables):
            method.restart(events, table)
            with listening() as heard:
                for _ in range(method.plan.steps):
                    method.clip_groups = groups or method.clip_groups
                    method.critic_step()
            scores[world, trial] = _run_score(heard, q)
    return scores[0], scores[1]


def _run_score(heard: Wiretap, sampling_probability: float) -> float:
    """Gradient and histogram of a step see the same draw, so they are one Gaussian before sampling."""
    total, position = 0.0, 0
    while position < len(heard.sums):
        x, signal = (float(value[0]) for value in spike_score(heard, position, FIRST))
        weighted, squared = x * signal, signal**2
        position += 1
        if position < len(heard.sums) and len(heard.sums[position].values) == 1:
            x, signal = histogram_score(heard, position)
            weighted, squared = weighted + x * signal, squared + signal**2
            position += 1
        joint = math.sqrt(squared)
        total += log_likelihood_ratio(weighted / joint, joint, sampling_probability)
    return total


# -- canaries, one attack each ----------------------------------------------------------------------------------------


def plain_gaussian(trials: int, seed: int = 1, epsilon: float = 4.0) -> Finding:
    events = (SampledStepEvent(1.0, gaussian_noise_for(epsilon, DELTA), None, 1),)
    return judge("plain Gaussian step", canary_scores(order_for(1.0, 1), events, trials=trials, seed=seed), events)


def sampled_steps(trials: int, seed: int = 2) -> Finding:
    events = (SampledStepEvent(0.25, 0.8, None, 6),)
    scores = canary_scores(order_for(0.25, 6), events, trials=trials, seed=seed)
    return judge("six Poisson-sampled steps, q = 0.25", scores, events)


def groups_and_allocation(trials: int, allocation: str, seed: int = 3) -> Finding:
    events = (SampledStepEvent(1.0, gaussian_noise_for(4.0, DELTA), None, 1),)
    groups = ClipGroups(((0, 3), (1,), (2,), (4,)), (0.3, 2.0, 0.05, 1.0))
    order = order_for(1.0, 1, allocation=allocation)
    scores = canary_scores(order, events, trials=trials, seed=seed, groups=groups)
    return judge(f"four groups, allocation {allocation}", scores, events)


def histogram(trials: int, seed: int = 4) -> Finding:
    """The histogram carries the information: the gradient of the same step has a hundred times the noise."""
    events = (SampledStepEvent(1.0, 100.0, gaussian_noise_for(4.0, DELTA), 1),)
    order = order_for(1.0, 1, thresholds={"kind": "adaptive"})
    return judge("histogram of norms", canary_scores(order, events, trials=trials, seed=seed), events)


def label_counts(trials: int, rows_per_unit: int, seed: int = 5) -> Finding:
    """The canary's rows all carry one label; no other row has it."""
    events = (GaussianEvent("label_counts", gaussian_noise_for(4.0, DELTA)), SampledStepEvent(1.0, 1.0, None, 1))
    order = order_for(1.0, 1, condition_on="label")
    tables = [null_table(8, present, rows_per_unit=rows_per_unit) for present in (None, FIRST)]
    method = make_canaries(order, events, tables[0], seed)
    scores = np.zeros((2, trials))
    for trial in range(trials):
        for world, table in enumerate(tables):
            method.restart(events, table)
            with listening() as heard:
                method.measure()
            scores[world, trial] = heard.noisy[0][0][1].item()
    name = f"label counts, {rows_per_unit} row{'s' if rows_per_unit > 1 else ''} a unit"
    return judge(name, (scores[0], scores[1]), events[:1])


def drawn_part(trials: int, seed: int = 12) -> Finding:
    """One of four parts: a unit turns its part's slopes round, and the other parts say what that part says without it."""
    parts, steps, size = 4, 3, 2
    events = (DrawnPartEvent(1.0 / parts, 0.8, steps),)
    randomness = SecureRandom.from_test_seed(seed)
    scores = np.zeros((2, trials))
    for trial, world in product(range(trials), (0, 1)):
        plan = Plan(events)
        for _ in range(steps):
            noise_multiplier = plan.take_drawn_part(sampling_probability=1.0 / parts)
            turned = world == 1 and draw_part(parts=parts, randomness=randomness) == 0
            slopes = torch.full((size, size), 5.0 if turned else -5.0)
            private = clip_jointly(slopes, clip_norm=1.0)
            (noisy,) = release(private, noise_multiplier=noise_multiplier, randomness=randomness)
            # Along the line between the two, from the one that is not turned, in deviations of the noise.
            x = (float(noisy.sum()) / size + 1.0) / (2.0 * noise_multiplier)
            scores[world, trial] += log_likelihood_ratio(x, 1.0 / noise_multiplier, 1.0 / parts)
    return judge("three steps on a drawn part, K = 4", (scores[0], scores[1]), events)


def short_run(trials: int, seed: int = 6) -> Finding:
    """Everything at once: label counts, decaying noise, sampling, histograms that move thresholds and groups."""
    events: Events = (
        GaussianEvent("label_counts", 6.0),
        SampledStepEvent(0.5, 1.2, 4.0, 3),
        SampledStepEvent(0.5, 0.9, 3.0, 3),
    )
    order = order_for(0.5, 6, condition_on="label", thresholds={"kind": "adaptive"}, clusters={"kind": "dbscan"})
    tables = null_table(8), null_table(8, FIRST)
    method = make_canaries(order, events, tables[0], seed)
    scores = np.zeros((2, trials))
    for trial in range(trials):
        for world, table in enumerate(tables):
            method.restart(events, table)
            with listening() as heard:
                method.measure()
                noise_std = heard.noise_stds[0][0]
                label = heard.noisy[0][0][1].item() / noise_std
                del heard.sums[:], heard.noisy[:], heard.noise_stds[:]
                for _ in range(6):
                    method.critic_step()
            scores[world, trial] = log_likelihood_ratio(label, 1.0 / noise_std, 1.0) + _run_score(heard, 0.5)
    return judge("IDPGAN run: labels, decay, histograms, groups", (scores[0], scores[1]), events)


def record_canary(trials: int, seed: int = 7) -> Finding:
    """A real record through the real gradients: the adversary averages over the coins it does not know."""
    events = (SampledStepEvent(1.0, gaussian_noise_for(4.0, DELTA), None, 1),)
    order = order_for(1.0, 1, gradient_penalty=0.0, thresholds={"kind": "fixed", "clip_norm": 0.01})
    tables = null_table(4), null_table(4, FIRST)
    method = make_canaries(order, events, tables[1], seed, TableIdpgan)
    method.critic_adam = _NoUpdate()
    clipped = []
    with listening() as heard:
        for _ in range(200):
            method.plan = Plan(events)
            method.critic_step()
            clipped.append(np.concatenate([value.flatten().numpy() for value in heard.sums[-1].values]))
    direction = np.mean(clipped, axis=0)
    scores = np.zeros((2, trials))
    for world, table in enumerate(tables):
        method.table = table
        for trial in range(trials):
            method.plan = Plan(events)
            with listening() as heard:
                method.critic_step()
            noisy = np.concatenate([value.flatten().numpy() for value in heard.noisy[0]])
            scores[world, trial] = float(noisy @ direction)
    return judge("record canary through the real gradients", (scores[0], scores[1]), events)


class _NoUpdate:
    """Keeps the critic as it is, so that all trials attack the same step."""

    def step(self) -> None:
        """Nothing."""


# -- one run, many canaries -------------------------------------------------------------------------------------------


def one_run(canaries: int, *, sampled: bool, seed: int = 8) -> Finding:
    """Steinke, Nasr, Jagielski 2023: every canary in by a fair coin, one run, guesses for the surest twentieth."""
    events = (
        (SampledStepEvent(0.5, 0.8, None, 5),)
        if sampled
        else (SampledStepEvent(1.0, gaussian_noise_for(8.0, DELTA), None, 1),)
    )
    q = events[0].sampling_probability
    order = order_for(
        q, events[0].count, networks={"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [canaries // 8]}
    )
    secret = np.random.default_rng(seed).random(canaries) < 0.5
    method = make_canaries(order, events, null_table(canaries, np.flatnonzero(secret)), seed, CanaryIdpgan)
    scores = np.zeros(canaries)
    with listening() as heard:
        for step in range(events[0].count):
            method.critic_step()
            x, signal = spike_score(heard, step, np.arange(canaries))
            exponent = x * signal - signal**2 / 2.0
            scores += np.log1p(q * np.expm1(exponent)) if q < 1.0 else exponent
    order_of = np.argsort(scores)
    each = canaries // 20
    correct = int((~secret[order_of[:each]]).sum() + secret[order_of[-each:]].sum())
    lower = one_run_epsilon(canaries=canaries, guesses=2 * each, correct=correct, delta=DELTA)
    name = "five Poisson-sampled steps, q = 0.5" if sampled else "plain Gaussian step"
    return Finding(
        f"{name}: one run, {canaries} canaries", claimed_epsilon(events, DELTA), lower, None, canaries, "one run"
    )


# -- the paper's own histogram ----------------------------------------------------------------------------------------


def acts_one_batch(trials: int, epsilon: float, seed: int = 9) -> Finding:
    """One outlier in one batch, one weight."""
    noise = gaussian_noise_for(epsilon, DELTA)
    scores = outlier_scores(batch=64, noise_multiplier=noise, trials=trials, seed=seed)
    return judge("ACTS as published, one weight, one batch of 64", scores, (GaussianEvent("acts", noise),))


def acts_ten_weights(trials: int, seed: int = 10) -> Finding:
    """Even without an outlier: ten histograms are charged as one."""
    noise = gaussian_noise_for(1.0, DELTA)
    scores = public_bins_scores(weights=10, noise_multiplier=noise, trials=trials, seed=seed)
    return judge("ACTS, bins made harmless, ten weights charged once", scores, (GaussianEvent("acts", noise),))


def acts_epochs(trials: int, seed: int = 11) -> Finding:
    """Five epochs of the paper's own MNIST settings: q = 64/60000, σ = 10."""
    steps = SampledStepEvent(64 / 60_000, 10.0, None, 5 * 938)
    scores = epochs_scores(
        q=steps.sampling_probability,
        records=60_000,
        steps=steps.count,
        noise_multiplier=10.0,
        trials=trials,
        seed=seed,
    )
    return judge("ACTS as published, five epochs at the paper's MNIST settings", scores, (steps,))
