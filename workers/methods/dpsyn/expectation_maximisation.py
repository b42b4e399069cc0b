"""Mixtures of Gaussians from noisy sums of responsibilities, codes and products of codes (DP-EM). Reads no record.

Source: Park, Foulds, Chaudhuri, Welling 2017. Whole numbers become codes here: `scale` of them are 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from service.base.lazy import lazy
from workers.mechanism.image_moments import WEIGHT

if TYPE_CHECKING:
    from sklearn import cluster
else:
    cluster = lazy("sklearn.cluster")

SMALLEST_COUNT = 30.0
"""Responsibilities of a Gaussian that was measured to be nearly empty count as so many records."""
SMALLEST_SHARE = 0.01
SMALLEST_VARIANCE = 0.01
"""Of codes in any direction."""
DRAWN_PER_GAUSSIAN = 200
WIDE = 1e12
"""A variance beyond any: the first round clips to the norm alone."""
HALVES_APART = math.sqrt(2.0 / math.pi)
"""Means of the halves of a normal distribution, in standard deviations from its own."""
WORTH_IT = 2.0
SPREADS_INSIDE = 2.0
"""Roots of the widest Gaussian's total variance."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Mixture:
    """M Gaussians for each class, one class after the other. Public."""

    labels: NDArray[np.int64]  # (K,)
    counts: Floats  # (K,) at least 0
    means: Floats  # (K, d)
    covariances: Floats  # (K, d, d)

    @classmethod
    def to_begin(cls, classes: int, width: int) -> Mixture:
        """One Gaussian for each class, that takes all its records."""
        wide = np.broadcast_to(WIDE * np.eye(width), (classes, width, width))
        return cls(np.arange(classes), np.ones(classes), np.zeros((classes, width)), wide)

    @property
    def shares(self) -> Floats:
        """(classes, M), each row sums to 1."""
        by_class = self.counts.reshape(len(np.unique(self.labels)), -1)
        by_class = np.where(by_class.sum(axis=1, keepdims=True) > 0.0, by_class, 1.0)
        shares: Floats = by_class / by_class.sum(axis=1, keepdims=True)
        return shares

    def radius(self, norm: float) -> float:
        """The norm to which codes less their Gaussian's mean are clipped in the next round: most lie inside, and noise grows with its square."""
        widest = float(np.trace(self.covariances, axis1=1, axis2=2).max())
        return min(norm, SPREADS_INSIDE * math.sqrt(widest))

    def factors(self) -> Floats:
        """(K, d, d): covariance = factorᵀ·factor."""
        values, vectors = np.linalg.eigh(self.covariances)
        factors: Floats = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
        return factors

    def log_weights(self, labels: NDArray[np.int64], scale: float) -> Callable[[slice, Floats], Floats]:
        """E step: of codes in whole numbers, log(share · density) up to a constant; -inf for Gaussians of other classes.

        labels (n,) of all records. A row of what it gives is a function of one record, its place and public numbers.
        """
        values, vectors = np.linalg.eigh(self.covariances)
        values = np.maximum(values, SMALLEST_VARIANCE / 2.0)
        # One that noise has emptied may still win records back.
        constants = np.log(np.maximum(self.shares.ravel(), SMALLEST_SHARE)) - 0.5 * np.log(values).sum(axis=1)
        whiten = vectors / np.sqrt(values)[:, None, :]  # (K, d, d)

        def weigh(rows: slice, codes: Floats) -> Floats:
            found = np.full((len(codes), len(self.labels)), -np.inf)
            for k, label in enumerate(self.labels):
                own = labels[rows] == label
                white = (codes / scale - self.means[k]) @ whiten[k]
                found[:, k] = np.where(own, constants[k] - 0.5 * np.square(white).sum(axis=1), -np.inf)
            return found

        return weigh


@dataclass(frozen=True)
class Moments:
    """Noisy sums of one round about `centres`, as codes and records, with the standard deviation of the noise on each."""

    counts: Floats  # (K,)
    sums: Floats  # (K, d)
    products: Floats  # (K, d, d)
    product_noise: float

    @classmethod
    def of_whole(cls, noisy: tuple[Floats, ...], scale: float, noise_std: float) -> Moments:
        """noise_std: of the products, in whole numbers."""
        counts, sums, products = noisy
        square = WEIGHT * scale**2
        return cls(counts / WEIGHT, sums / WEIGHT / scale, products / square, noise_std / square)


def fitted(before: Mixture, moments: Moments, *, norm: float) -> Mixture:
    """M step: means inside the clip norm, covariances symmetric with eigenvalues from SMALLEST_VARIANCE to norm².

    A covariance moves away from its class's by as much as stands out of the noise.
    """
    n = np.maximum(moments.counts, SMALLEST_COUNT)
    shifts = moments.sums / n[:, None]
    means = before.means + shifts
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    means = means * np.minimum(1.0, norm / np.maximum(lengths, 1e-12))
    products = (moments.products + moments.products.transpose(0, 2, 1)) / 2.0
    products -= n[:, None, None] * shifts[:, :, None] * shifts[:, None, :]
    covariances = np.empty_like(products)
    for label in np.unique(before.labels):
        of = np.flatnonzero(before.labels == label)
        common = products[of].sum(axis=0) / n[of].sum()
        for k in of:
            own = common + _clear(products[k] / n[k] - common, moments.product_noise / n[k])
            values, vectors = np.linalg.eigh(own)
            covariances[k] = (vectors * np.clip(values, SMALLEST_VARIANCE, norm**2)) @ vectors.T
    return Mixture(before.labels, np.maximum(moments.counts, 0.0), means, covariances)


def _clear(difference: Floats, noise_std: float) -> Floats:
    """What of a noisy symmetric matrix stands out of its noise: an eigenvalue w was pushed out from about √(w² - edge²) (Wigner)."""
    values, vectors = np.linalg.eigh(difference)
    edge = 2.0 * math.sqrt(len(difference)) * noise_std / math.sqrt(2.0)
    kept = np.sign(values) * np.sqrt(np.clip(np.square(values) - edge**2, 0.0, None))
    clear: Floats = (vectors * kept) @ vectors.T
    return clear


def split(begun: Mixture, gaussians: int, rng: np.random.Generator) -> Mixture:
    """Every class's Gaussian in so many: k-means on codes *drawn from it*, which reads no record."""
    if gaussians == 1:
        return begun
    width = begun.means.shape[1]
    means, covariances = [], []
    for mean, factor in zip(begun.means, begun.factors(), strict=True):
        drawn = mean + rng.standard_normal((DRAWN_PER_GAUSSIAN * gaussians, width)) @ factor
        found = cluster.KMeans(gaussians, n_init=1, max_iter=30, random_state=0).fit(drawn)
        means.append(found.cluster_centers_)
        away = drawn - found.cluster_centers_[found.labels_]
        within = away.T @ away / len(drawn) + SMALLEST_VARIANCE * np.eye(width)
        covariances.append(np.broadcast_to(within, (gaussians, width, width)))
    counts = np.repeat(begun.counts / gaussians, gaussians)
    labels = np.repeat(begun.labels, gaussians)
    return Mixture(labels, counts, np.concatenate(means), np.concatenate(covariances))


def moved_apart(mixture: Mixture) -> Mixture:
    """In each class one pair of Gaussians becomes one where one would do, and another Gaussian becomes two where it should be two.

    Judged by the variance within all of them, from noisy moments alone; at most once for each class.
    """
    counts, means, covariances = mixture.counts.copy(), mixture.means.copy(), mixture.covariances.copy()
    for label in np.unique(mixture.labels):
        of = np.flatnonzero(mixture.labels == label)
        if len(of) < 3:
            continue
        n = np.maximum(counts[of], SMALLEST_COUNT)
        apart = np.square(means[of][:, None] - means[of][None]).sum(axis=2)
        costs = n[:, None] * n[None] / (n[:, None] + n[None]) * apart
        costs[np.tril_indices(len(of))] = np.inf
        first, second = np.unravel_index(costs.argmin(), costs.shape)
        values, vectors = np.linalg.eigh(covariances[of])
        gains = HALVES_APART**2 * n * values[:, -1]
        gains[[first, second]] = -np.inf
        widest = int(gains.argmax())
        if gains[widest] < WORTH_IT * costs[first, second]:
            continue
        a, b, wide = of[first], of[second], of[widest]
        share = n[first] / (n[first] + n[second])
        between = means[a] - means[b]
        covariances[a] = share * covariances[a] + (1.0 - share) * covariances[b]
        covariances[a] += share * (1.0 - share) * np.outer(between, between)
        means[a] = share * means[a] + (1.0 - share) * means[b]
        counts[a] += counts[b]
        axis = math.sqrt(values[widest, -1]) * vectors[widest][:, -1]
        means[wide], means[b] = means[wide] + HALVES_APART * axis, means[wide] - HALVES_APART * axis
        covariances[wide] = covariances[wide] - HALVES_APART**2 * np.outer(axis, axis)
        covariances[b] = covariances[wide]
        counts[wide] = counts[b] = counts[wide] / 2.0
    return Mixture(mixture.labels, counts, means, covariances)


def shares_of_precision(responsibilities: float, means: float) -> tuple[float, float, float]:
    """The shares of a round's precision: responsibilities, means, and what is left for products."""
    rest = 1.0 - responsibilities - means
    if not (rest > 0.0 and math.isfinite(rest)):
        raise ValueError("the shares leave nothing for the products")
    return responsibilities, means, rest
