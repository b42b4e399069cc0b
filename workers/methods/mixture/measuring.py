"""Measured mixture: noisy moments of the images of every class, a Gaussian for each class or cell. No training.

Private records are read by `measure` only, which takes its events from the plan; the rest is post-processing.

0. How images of every class lean, unless the order says whether they are to be deskewed first.
1. Counts and sums of records clipped to a norm give every class a mean.
2. How bright pixels are, all classes together.
3. One sum of d·dᵀ over all records, with d the record less its class's mean, clipped: centring first is what makes the
   clipping harmless. Its eigenvectors above the noise's own are the directions in which images vary; all that follows
   is measured in them, where the noise has far fewer dimensions.
4. Where ε and n are large enough, every class is parted into cells: k-means on images *drawn from what is known so far*,
   then a few rounds of Lloyd's on counts and sums.
5. Counts, sums and sums of d·dᵀ of every cell. What they say beyond the noise about a class's covariance moves it away
   from that of all classes, and what they say about a cell's moves that away from its class's.
6. Numbers of drawn images are mapped to those that real ones have, by a curve from step 2: Gaussians blur, which leaves
   grey where there was black and white.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from service.base.errors import InvalidOrder
from service.base.lazy import lazy
from service.methods.mixture.order import MixtureOrder
from service.methods.mixture.price import (
    CELL_MEANS,
    CELL_MOMENTS,
    CLASS_MEANS,
    LEANINGS,
    SHARED_MOMENTS,
    TONES,
    mixture_events,
)
from workers.checkpoints import Checkpoint, position_of, resume
from workers.encoding.images import EncodedImages, cosine_basis
from workers.encoding.slant import MOST_SLANT, deskewed, slant_codes, with_slant
from workers.mechanism import PrivateSum
from workers.mechanism.image_moments import (
    Coefficients,
    Units,
    first_moments,
    leaning_counts,
    nearest_cells,
    scale_for,
    second_moments,
    shared_moments,
    tone_counts,
)
from workers.mechanism.secure_random import SecureRandom
from workers.methods.mixture.tones import TONE_BINS, tone_curve
from workers.methods.whole_sums import clear_shifts, release_whole
from workers.networks.gaussian_mixture import GaussianMixture, Movement
from workers.plan import Plan

if TYPE_CHECKING:
    from sklearn import cluster
else:
    cluster = lazy("sklearn.cluster")

_DRAWN_PER_CELL = 200
_DRAWN_FOR_TONES = 2_000
_LEAST_MEAN_LENGTH = 1.0
"""Directions that class means reach less far into, in all, are left out."""
SHRUNK_NOISE = 0.5
"""What a covariance says beyond a wider one is shrunk as if the noise were this part of what it is.

Chosen on held-out training images of MNIST (docs/results/images.md).
"""
LEANING_BINS = 9
LEAST_LEANING = 0.15
"""Standard deviation of the slants of a class whose images lean variously, in columns a row. Handwritten digits have 0.21 to 0.31 in every class;
of clothes, sandals and sneakers alone have more than this (docs/results/images.md)."""
_DOUBT = 2.0
"""Standard deviations of the noise by which that must be exceeded."""
JITTER_SHIFT, JITTER_DEGREES = 0.02, 3.5
"""How drawn images are moved, where they were deskewed and the order does not say."""
_SMALLEST_COUNT = 30.0
"""A cell that was measured to be nearly empty is treated as holding this many records."""

Floats = NDArray[np.float64]
Pixels = Callable[[], NDArray[np.uint8]]
"""Of all images, as they are measured; private."""


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
        if order.cells is None:
            raise InvalidOrder("cells must be resolved before anything is measured")
        self.order, self.plan, self.images, self.randomness = order, plan, images, randomness
        self.cells = order.cells
        self.is_private = randomness.is_private
        self.classes = max(1, images.classes)
        self.basis = cosine_basis(images.shape, order.coefficients)  # (pixels, d)
        # Radii are declared per pixel's root, so that one default serves every size.
        root = math.sqrt(math.prod(images.shape))
        self.record_norm, self.centred_norm = order.record_norm * root, order.centred_norm * root
        starts, most = images.unit_starts, images.max_images_per_unit
        self.units = None if starts is None else Units(starts, most)
        # Of units, not of records, whose number is private where a unit may have several.
        self.scale = scale_for(images.units, max(self.record_norm, self.centred_norm), most=most)
        self.measured: Gaussians | None = None
        self.tones = np.zeros(0)

    # -- private

    def measure(self) -> None:
        """Every release that is on the plan. A plan that is not this order's is refused before the first."""
        self.plan.expect(mixture_events(self.order, noise_multiplier=1.0))
        pixels = self._as_measured()
        none = np.zeros((self.classes, self.basis.shape[1]))
        counts, sums = self._release(
            CLASS_MEANS,
            partial(self._of_classes, first_moments, pixels, none, self.record_norm),
            (self.order.count_share, 1.0 - self.order.count_share),
        )
        means = np.rint(sums / np.maximum(counts, _SMALLEST_COUNT)[:, None])
        tones = partial(tone_counts, self.images.pixels, self.images.labels, bins=TONE_BINS, units=self.units)
        (self.tones,) = self._release(TONES, tones, (1.0,))
        (products,) = self._release(
            SHARED_MOMENTS, partial(self._of_classes, shared_moments, pixels, means, self.centred_norm), (1.0,)
        )
        spread, directions = self._directions(products, means, self._count(counts))

        self.basis = self.basis @ directions  # (pixels, k): orthonormal like the first
        cells = self._part(means @ directions, spread)
        while self.plan.upcoming() == CELL_MEANS:
            moved = partial(self._of_cells, first_moments, pixels, cells)
            counts, sums = self._release(CELL_MEANS, moved, (self.order.mean_share, 1.0 - self.order.mean_share))
            shifts = self._shifts(counts, sums)
            cells = Cells(cells.labels, np.rint(cells.centres + shifts), cells.radius)
        rest = 1.0 - self.order.count_share - self.order.mean_share
        counts, sums, products = self._release(
            CELL_MOMENTS,
            partial(self._of_cells, second_moments, pixels, cells),
            (self.order.count_share, self.order.mean_share, rest),
        )
        shifts = self._shifts(counts, sums, place=1)
        factors = self._factors(counts, shifts, products, cells.labels)
        means = (cells.centres + shifts) / self.scale
        self.measured = Gaussians(cells.labels, np.maximum(counts, 0.0), means, factors / self.scale)

    def _as_measured(self) -> Pixels:
        """The images, deskewed where that is ordered or where most of them are of classes that lean differently.

        Nothing is deskewed before the event that it is for was taken.
        """
        if self.order.upright is False:
            return lambda: self.images.pixels
        stood: Pixels = cache(partial(deskewed, self.images.pixels, self.images.shape))
        if self.plan.upcoming() == LEANINGS:
            (counts,) = self._release(LEANINGS, partial(self._leanings, stood), (1.0,))
            if not _most_lean(counts, self._last_noise[0]):
                return lambda: self.images.pixels
        self.basis = with_slant(self.basis)
        return stood

    def _leanings(self, stood: Pixels) -> PrivateSum:
        return leaning_counts(
            slant_codes(stood()), self.images.labels, classes=self.classes, bins=LEANING_BINS, units=self.units
        )

    def _of_classes(
        self, moments: Callable[..., PrivateSum], pixels: Pixels, centres: Floats, norm: float
    ) -> PrivateSum:
        records, radius = Coefficients(pixels(), self.basis, self.scale), self._whole(norm)
        return moments(records, self.images.labels, centres=centres, radius=radius, units=self.units)

    def _of_cells(self, moments: Callable[..., PrivateSum], pixels: Pixels, cells: Cells) -> PrivateSum:
        records, centres = Coefficients(pixels(), self.basis, self.scale), cells.centres
        places = nearest_cells(records, self.images.labels, centres=centres, centre_labels=cells.labels)
        return moments(records, places, centres=centres, radius=self._whole(cells.radius), units=self.units)

    def _release(self, purpose: str, sums: Callable[[], PrivateSum], shares: tuple[float, ...]) -> tuple[Floats, ...]:
        """Takes the event, then calls `sums`: these with noise; `shares` of the precision 1/σ² for each of them, 1 together."""
        noisy = release_whole(self.plan, purpose, sums, shares, randomness=self.randomness)
        self._last_noise = noisy.drawn_stds
        return noisy.released

    # -- post-processing

    def _count(self, counts: Floats) -> float:
        """How many records there are: n where each is a unit, else what noisy counts say."""
        if self.units is None:
            return float(self.images.units)
        return float(np.clip(counts.sum(), min(_SMALLEST_COUNT, self.images.most_images), self.images.most_images))

    @property
    def rows_per_unit(self) -> float | None:
        """Mean images of a unit by noisy counts, where a unit may have several."""
        if self.units is None:
            return None
        return self._count(self._done.counts) / self.images.units

    def _directions(self, products: Floats, means: Floats, n: float) -> tuple[Floats, Floats]:
        """Variance along each shared direction that stands out of the noise (r,), and an orthonormal (d, k) of these.

        After those r, the directions of class means outside them; a single class has a mean too.
        """
        values, vectors = np.linalg.eigh((products + products.T) / 2.0 / n)
        edge = _noise_edge(len(products), self._last_noise[0] / n)
        kept = np.flatnonzero(values > edge)[::-1][: self.order.rank]
        found = vectors[:, kept]
        rest = means - means @ found @ found.T
        _, lengths, across = np.linalg.svd(rest, full_matrices=False)
        known = lengths > _LEAST_MEAN_LENGTH * self.scale
        directions = np.concatenate((found, across[known].T), axis=1)
        if directions.shape[1] == 0:
            directions = np.eye(len(products), 1)
        spread = np.zeros(directions.shape[1])
        spread[: len(kept)] = np.sqrt(np.square(values[kept]) - edge**2)
        return spread, directions

    def _part(self, means: Floats, spread: Floats) -> Cells:
        """k-means of every class on images drawn from its mean and the common spread; reads no record."""
        labels = np.arange(self.classes)
        if self.cells == 1:
            return Cells(labels, np.rint(means), self.centred_norm)
        rng = np.random.Generator(np.random.PCG64(self.randomness.seed()))
        centres, distances = [], []
        for mean in means / self.scale:
            drawn = mean + rng.standard_normal((_DRAWN_PER_CELL * self.cells, len(spread))) * (
                np.sqrt(spread) / self.scale
            )
            drawn = np.clip(drawn @ self.basis.T, 0.0, 1.0) @ self.basis
            found = cluster.KMeans(self.cells, n_init=1, max_iter=30, random_state=0).fit(drawn)
            centres.append(found.cluster_centers_)
            distances.append(np.linalg.norm(drawn - found.cluster_centers_[found.labels_], axis=1))
        radius = float(np.quantile(np.concatenate(distances), self.order.cell_quantile))
        return Cells(
            np.repeat(labels, self.cells), np.rint(np.concatenate(centres) * self.scale), min(radius, self.centred_norm)
        )

    def _shifts(self, counts: Floats, sums: Floats, place: int = -1) -> Floats:
        """Of every cell, its records' mean less its centre, as far as that stands out of the noise (James and Stein)."""
        return clear_shifts(counts, sums, noise_std=self._last_noise[place], least=_SMALLEST_COUNT)

    def _factors(self, counts: Floats, shifts: Floats, products: Floats, labels: NDArray[np.int64]) -> Floats:
        """(K, r, k): of every cell, a square root of its covariance, padded with zeros."""
        n = np.maximum(counts, _SMALLEST_COUNT)
        products = (products + products.transpose(0, 2, 1)) / 2.0
        products -= n[:, None, None] * shifts[:, :, None] * shifts[:, None, :]
        noise, width = self._last_noise[2], products.shape[1]
        whole = products.sum(axis=0) / n.sum()
        least = _noise_edge(width, noise * math.sqrt(len(n)) / n.sum())
        roots = []
        for label in range(self.classes):
            of = np.flatnonzero(labels == label)
            total = n[of].sum()
            covariance = _moved(whole, products[of].sum(axis=0) / total, width, noise * math.sqrt(len(of)) / total)
            for cell in of:
                own = (
                    covariance if len(of) == 1 else _moved(covariance, products[cell] / n[cell], width, noise / n[cell])
                )
                values, vectors = np.linalg.eigh(own)
                kept = values > least
                roots.append(np.sqrt(values[kept])[:, None] * vectors[:, kept].T)
        rank = max(1, *(len(root) for root in roots))
        return np.stack([np.pad(root, ((0, rank - len(root)), (0, 0))) for root in roots])

    def build(self) -> GaussianMixture:
        """The generator; histogram matching fits its brightness to numbers that it draws itself."""
        means, factors = torch.from_numpy(self._done.means), torch.from_numpy(self._done.factors)
        basis = torch.from_numpy(self.basis.T)
        shape, order = self.images.shape, self.order
        shift, degrees = (JITTER_SHIFT, JITTER_DEGREES) if self.upright else (0.0, 0.0)
        movement = Movement(
            most_slant=MOST_SLANT if self.upright else None,
            shift=(shift if order.jitter_shift is None else order.jitter_shift) * min(shape[:2]),
            degrees=degrees if order.jitter_degrees is None else order.jitter_degrees,
        )
        plain = GaussianMixture(means, factors, basis, shape, movement=movement).eval()
        drawn = []
        random = torch.Generator().manual_seed(0)
        for component, share in enumerate(self.component_frequencies):
            count = math.ceil(share * _DRAWN_FOR_TONES)
            noise = torch.randn(count, plain.noise_dimension, generator=random)
            drawn.append(plain.moved(plain.numbers(noise, torch.tensor([component])), noise).flatten())
        tones = tone_curve(torch.cat(drawn).double().numpy(), self.tones)
        return GaussianMixture(means, factors, basis, shape, tones, movement).eval()

    @property
    def upright(self) -> bool:
        """Whether images were deskewed: the slant is then one of the numbers that they are measured in."""
        return len(self.basis) > math.prod(self.images.shape)

    @property
    def component_labels(self) -> tuple[int, ...]:
        return tuple(self._done.labels.tolist())

    @property
    def component_frequencies(self) -> tuple[float, ...]:
        """The frequency of every component, from noisy counts; even where all came out empty."""
        counts = self._done.counts
        total = counts.sum()
        return tuple((counts / total if total > 0.0 else np.full(len(counts), 1.0 / len(counts))).tolist())

    def checkpoint(self) -> Checkpoint:
        """All that was measured; nothing of it is private any more."""
        done = self._done
        arrays = {
            "labels": done.labels,
            "counts": done.counts,
            "means": done.means,
            "factors": done.factors,
            "basis": self.basis,
            "tones": self.tones,
        }
        tensors = {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}
        return Checkpoint(tensors, position_of(self))

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from what an earlier attempt measured."""
        resume(self, checkpoint.values)
        self.take_back(checkpoint.tensors)

    def take_back(self, tensors: Mapping[str, torch.Tensor]) -> None:
        """What was measured, from a checkpoint's tensors."""
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        self.basis, self.tones = arrays.pop("basis"), arrays.pop("tones")
        self.measured = Gaussians(**arrays)

    @property
    def _done(self) -> Gaussians:
        if self.measured is None:
            raise RuntimeError("nothing has been measured")
        return self.measured

    def _whole(self, norm: float) -> int:
        return max(1, math.floor(norm * self.scale))


def _most_lean(counts: Floats, noise_std: float) -> bool:
    """Whether most records are of classes whose slants clearly vary, from noisy counts (classes, LEANING_BINS)."""
    slants = ((np.arange(LEANING_BINS) + 0.5) * 2.0 / LEANING_BINS - 1.0) * MOST_SLANT
    n = np.maximum(counts.sum(axis=1), _SMALLEST_COUNT)
    variances = counts @ np.square(slants) / n - np.square(counts @ slants / n)
    doubt = noise_std * math.sqrt(np.square(slants**2).sum()) / n
    leans = variances - _DOUBT * doubt > LEAST_LEANING**2
    return bool(n[leans].sum() > n.sum() / 2.0)


def _noise_edge(width: int, noise_std: float) -> float:
    """Near the largest eigenvalue of a symmetric matrix of noise, both triangles averaged (Wigner)."""
    return 2.0 * math.sqrt(width) * noise_std / math.sqrt(2.0)


def _moved(wider: Floats, own: Floats, width: int, noise_std: float) -> Floats:
    """The wider covariance, moved towards a noisier own one along the directions in which they clearly differ.

    An eigenvalue w of the difference was pushed out from about √(w² - edge²).
    """
    values, vectors = np.linalg.eigh(own - wider)
    edge = SHRUNK_NOISE * _noise_edge(width, noise_std)
    shrunk = np.sign(values) * np.sqrt(np.clip(np.square(values) - edge**2, 0.0, None))
    moved: Floats = wider + (vectors * shrunk) @ vectors.T
    return moved
