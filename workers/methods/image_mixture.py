"""Measured mixture: noised moments of the images of every class, a Gaussian for each class or cell. No training.

Private records are read by `measure` only, which takes its events from the plan; the rest is post-processing.

1. Counts and sums of records clipped to a norm give every class a mean.
2. Counts, sums and sums of d·dᵀ, with d the record less that mean, clipped: centring first is what makes the clipping
   harmless. The covariance's eigenvalues below the edge of the noise's own are dropped, the others shrunk.
3. Where ε and n are large enough, those were a coarse round: k-means on images *drawn from it* parts every class into
   cells, and the same moments are measured anew for each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.cluster import KMeans

from service.errors import InvalidOrder
from service.privacy.events import CELL_MOMENTS, CLASS_MEANS, CLASS_MOMENTS
from service.privacy.orders import MixtureOrder
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages, cosine_basis
from workers.mechanism import PrivateSum
from workers.mechanism.image_moments import Coefficients, first_moments, nearest_cells, scale_for, second_moments
from workers.mechanism.noise import release_counts
from workers.mechanism.secure_random import SecureRandom
from workers.networks.gaussian_mixture import GaussianMixture
from workers.plan import Plan

_DRAWN_PER_CELL = 500
_SMALLEST_COUNT = 30.0
"""A cell that was measured to be nearly empty is treated as holding this many records."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussians:
    """One Gaussian per cell, in coefficients; public."""

    labels: NDArray[np.int64]  # (K,)
    counts: Floats  # (K,), at least 0
    means: Floats  # (K, d)
    factors: Floats  # (K, r, d): covariance = factorᵀ·factor


@dataclass(frozen=True)
class Cells:
    """A public partition of every class."""

    labels: NDArray[np.int64]  # (K,)
    centres: Floats  # (K, d) whole numbers
    radius: float


class ImageMixture:
    """The state of one run and its two moves: measure, build."""

    def __init__(self, order: MixtureOrder, plan: Plan, images: EncodedImages, randomness: SecureRandom) -> None:
        self.order, self.plan, self.images, self.randomness = order, plan, images, randomness
        if order.cells is None:
            raise InvalidOrder("cells must be resolved before anything is measured")
        self.cells = order.cells
        self.is_private = randomness.is_private
        self.classes = max(1, images.classes)
        self.basis = cosine_basis(images.shape, order.coefficients)  # (pixels, d)
        # Radii are declared per pixel's root, so that one default serves every size.
        root = math.sqrt(math.prod(images.shape))
        self.record_norm, self.centred_norm = order.record_norm * root, order.centred_norm * root
        self.scale = scale_for(len(images.pixels), max(self.record_norm, self.centred_norm))
        self.measured: Gaussians | None = None

    # -- private

    def measure(self) -> None:
        """All private releases of the order, from the next events of the plan."""
        records = Coefficients(self.images.pixels, self.basis, self.scale)
        labels = self.images.labels
        counts, sums = self._release(
            CLASS_MEANS,
            first_moments(records, labels, count=self.classes, radius=self._whole(self.record_norm)),
            (self.order.count_share, 1.0 - self.order.count_share),
        )
        centres = np.rint(sums / np.maximum(counts, _SMALLEST_COUNT)[:, None])
        coarse = self._gaussians(CLASS_MOMENTS, records, labels, np.arange(self.classes), centres, self.centred_norm)
        if self.cells == 1:
            self.measured = coarse
            return
        cells = self._part(coarse)
        places = nearest_cells(records, labels, centres=cells.centres, centre_labels=cells.labels)
        self.measured = self._gaussians(CELL_MOMENTS, records, places, cells.labels, cells.centres, cells.radius)

    def _release(self, purpose: str, private: PrivateSum, shares: tuple[float, ...]) -> tuple[Floats, ...]:
        """The sums with noise; `shares` of the precision 1/σ² for each of them, 1 together."""
        noise_multiplier = self.plan.take_gaussian(purpose)
        noise_stds = [
            sensitivity * noise_multiplier / math.sqrt(share)
            for sensitivity, share in zip(private.sensitivities, shares, strict=True)
        ]
        noised = release_counts(
            private, noise_stds=noise_stds, noise_multiplier=noise_multiplier, randomness=self.randomness
        )
        self._last_noise = noise_stds
        return tuple(value.double().numpy() for value in noised)

    def _gaussians(
        self,
        purpose: str,
        records: Coefficients,
        cells: NDArray[np.int64],
        labels: NDArray[np.int64],
        centres: Floats,
        norm: float,
    ) -> Gaussians:
        """Measure every cell around its centre and turn the noised moments into Gaussians."""
        private = second_moments(records, cells, centres=centres, radius=self._whole(norm))
        shares = (self.order.count_share, self.order.mean_share, 1.0 - self.order.count_share - self.order.mean_share)
        counts, sums, products = self._release(purpose, private, shares)
        n = np.maximum(counts, _SMALLEST_COUNT)
        shift = sums / n[:, None]
        factors = [
            self._factor(products[k] / n[k], shift[k], noise_std=self._last_noise[2] / n[k]) for k in range(len(n))
        ]
        rank = max(1, *(len(factor) for factor in factors))
        padded = np.stack([np.pad(factor, ((0, rank - len(factor)), (0, 0))) for factor in factors])
        means = (centres + shift) / self.scale
        return Gaussians(labels, np.maximum(counts, 0.0), means, padded / self.scale)

    # -- post-processing

    def _factor(self, second: Floats, shift: Floats, *, noise_std: float) -> Floats:
        """(r, d) whose square is the covariance without what the noise alone would show; r at most `rank`.

        The mean of both triangles has noise_std/√2 off the diagonal; such a matrix has its largest eigenvalue near
        2·√d times that, and every eigenvalue w of the sum was pushed up from about √(w² - τ²).
        """
        covariance = (second + second.T) / 2.0 - np.outer(shift, shift)
        values, vectors = np.linalg.eigh(covariance)
        edge = 2.0 * math.sqrt(len(shift)) * noise_std / math.sqrt(2.0)
        kept = np.flatnonzero(values > edge)[::-1][: self.order.rank]
        shrunk = np.sqrt(np.square(values[kept]) - edge**2)
        factor: Floats = np.sqrt(shrunk)[:, None] * vectors[:, kept].T
        return factor

    def _part(self, coarse: Gaussians) -> Cells:
        """k-means on images drawn from the coarse Gaussians, clamped as they will be; reads no record."""
        rng = np.random.Generator(np.random.PCG64(self._seed()))
        centres, distances = [], []
        for mean, factor in zip(coarse.means, coarse.factors, strict=True):
            drawn = mean + rng.standard_normal((_DRAWN_PER_CELL * self.cells, len(factor))) @ factor
            drawn = np.clip(drawn @ self.basis.T, 0.0, 1.0) @ self.basis
            found = KMeans(self.cells, n_init=2, random_state=0).fit(drawn)
            centres.append(found.cluster_centers_)
            distances.append(np.linalg.norm(drawn - found.cluster_centers_[found.labels_], axis=1))
        radius = float(np.quantile(np.concatenate(distances), self.order.cell_quantile))
        return Cells(
            np.repeat(coarse.labels, self.cells),
            np.rint(np.concatenate(centres) * self.scale),
            min(radius, self.centred_norm),
        )

    def build(self) -> GaussianMixture:
        """The generator."""
        means, factors = torch.from_numpy(self._done.means), torch.from_numpy(self._done.factors)
        return GaussianMixture(means, factors, torch.from_numpy(self.basis.T), self.images.shape).eval()

    @property
    def component_labels(self) -> tuple[int, ...]:
        return tuple(self._done.labels.tolist())

    @property
    def component_frequencies(self) -> tuple[float, ...]:
        """Of every component, from noised counts; even where all came out empty."""
        counts = self._done.counts
        total = counts.sum()
        return tuple((counts / total if total > 0.0 else np.full(len(counts), 1.0 / len(counts))).tolist())

    def checkpoint(self) -> Checkpoint:
        """All that was measured; nothing of it is private any more."""
        done = self._done
        arrays = {"labels": done.labels, "counts": done.counts, "means": done.means, "factors": done.factors}
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        return Checkpoint(
            tensors, {"plan": self.plan.digest(), "position": self.plan.position, "is_private": self.is_private}
        )

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what an earlier attempt measured."""
        if checkpoint.values["plan"] != self.plan.digest():
            raise ValueError("this checkpoint is of another order")
        self.plan.resume(checkpoint.values["position"])
        self.is_private = self.is_private and bool(checkpoint.values["is_private"])
        self.measured = Gaussians(**{name: tensor.numpy() for name, tensor in checkpoint.tensors.items()})

    @property
    def _done(self) -> Gaussians:
        if self.measured is None:
            raise RuntimeError("nothing has been measured")
        return self.measured

    def _whole(self, norm: float) -> int:
        return max(1, math.floor(norm * self.scale))

    def _seed(self) -> int:
        return int(self.randomness.uniforms(1).item() * 2**53)
