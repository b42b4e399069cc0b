"""Releases of single face images as they were published, and two attacks: broken, and here only to show that they are.

LAP, LRA, SRA and ESRA take images as they come and call two of them neighbours that differ in one column of pixels. LRM and MM, to
which they were compared, are private as their own authors wrote them: a *public* workload is factored, and the image is multiplied by it.
Nothing here makes a release that may be published: noise comes from numpy's generator, with a seed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dger

from workers.methods.image_release.repair import falling

Floats = NDArray[np.float64]
Release = Callable[[Floats, np.random.Generator], Floats]

WHITE = 255.0
LEAST_SCALE = 1e-9


def largest_column(matrix: Floats) -> float:
    """What all four take for a sensitivity: the largest L1 norm of a column of the matrix itself."""
    return float(np.abs(matrix).sum(axis=0).max())


def lap(image: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """LAP (eq. 5): Laplace noise on every pixel, as large as the image's own largest column."""
    return image + rng.laplace(0.0, largest_column(image) / epsilon, image.shape)


def lra(image: Floats, epsilon: float, rng: np.random.Generator, *, passes: int = 100) -> Floats:
    """LRA (§3.2.1): A ≈ B·L by stochastic gradients over raw pixels, k = rank(A), noise on L alone.

    Pixels are divided by 255, without which the published step 0.01 diverges; updates are made a column at a time.
    """
    scaled, rate, weight = np.asfortranarray(image / WHITE), 0.01, 0.1
    k = int(np.linalg.matrix_rank(scaled))
    left = np.asfortranarray(rng.normal(0.0, 0.1, (len(scaled), k)))
    right = np.asfortranarray(rng.normal(0.0, 0.1, (k, scaled.shape[1])))
    for _ in range(passes):
        noise = rng.laplace(0.0, largest_column(right) / epsilon, right.shape[::-1])
        for column in range(scaled.shape[1]):
            noisy = right[:, column] + noise[column]
            error = scaled[:, column] - left @ noisy
            step = rate / max(1.0, float(noisy @ noisy))  # the published one overflows under much noise
            right[:, column] += rate * (error @ left / len(error) - weight * right[:, column])
            left *= 1.0 - step * weight
            left = dger(step, error, noisy, a=left, overwrite_a=1)  # left + step * outer(error, noisy), in place
    noisy = right + rng.laplace(0.0, largest_column(right) / epsilon, right.shape)
    released: Floats = WHITE * (left @ noisy)
    return released


@lru_cache(maxsize=512)
def _parts(pixels: bytes, rows: int) -> tuple[Floats, Floats, Floats]:
    left, values, right = np.linalg.svd(np.frombuffer(pixels).reshape(rows, -1), full_matrices=False)
    return left, values, right


def parts(image: Floats) -> tuple[Floats, Floats, Floats]:
    """The singular value decomposition, kept: benches release the same images again and again."""
    return _parts(np.ascontiguousarray(image, dtype=np.float64).tobytes(), len(image))


@lru_cache(maxsize=16)
def _inverse(numbers: bytes, rows: int) -> Floats:
    return np.asarray(np.linalg.pinv(np.frombuffer(numbers).reshape(rows, -1)))


def inverse(matrix: Floats) -> Floats:
    """The pseudo-inverse of a public matrix, kept."""
    return _inverse(np.ascontiguousarray(matrix, dtype=np.float64).tobytes(), len(matrix))


def sra(image: Floats, epsilon: float, rng: np.random.Generator, *, r: int) -> Floats:
    """SRA (§3.2.2): noise on the first r singular values; the vectors are published as they are."""
    left, values, right = parts(image)
    noisy = values[:r] + rng.laplace(0.0, values[0] / epsilon, r)
    released: Floats = (left[:, :r] * noisy) @ right[:r]
    return released


def esra_weights(image: Floats, epsilon: float) -> Floats:
    """ESRA's probabilities of r = 1, 2, … (eq. 11, 12, theorem 5); the sensitivity of the score is read from the image, too."""
    left, values, right = parts(image)
    count = len(values)
    r = np.arange(1, count + 1)
    left_out = np.sqrt(np.append(np.cumsum((values**2)[::-1])[::-1][1:], 0.0))
    kept = np.sqrt(np.cumsum(values**2))
    score = np.sqrt(len(left) - r) + left_out + np.sqrt(right.shape[1] - r) + math.sqrt(2.0) * kept / epsilon
    moved = largest_column(left) + 2.0 * float(values.max()) + largest_column(right)
    exponent = -epsilon * score / (2.0 * moved)
    weights: Floats = np.exp(exponent - exponent.max())
    return weights / weights.sum()


def esra(image: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """ESRA: r by `esra_weights`, noise as SRA with all of ε again, then the values put in falling order (theorem 6)."""
    weights = esra_weights(image, epsilon)
    r = int(rng.choice(len(weights), p=weights)) + 1
    left, values, right = parts(image)
    noisy = falling(values[:r] + rng.laplace(0.0, values[0] / epsilon, r))
    released: Floats = (left[:, :r] * noisy) @ right[:r]
    return released


# -- private as their authors wrote them


def haar(size: int) -> Floats:
    """Sums and differences of halves, quarters, …, (size, size or more)."""
    rows = [np.ones(size)]
    length = 1 << (size - 1).bit_length()
    while length > 1:
        for start in range(0, size, length):
            row = np.zeros(size)
            row[start : start + length // 2] = 1.0
            row[start + length // 2 : start + length] = -1.0
            rows.append(row)
        length //= 2
    return np.array(rows)


def tree(size: int) -> Floats:
    """Sums of all, halves, quarters, …, single pixels."""
    rows, length = [], 1 << (size - 1).bit_length()
    while length >= 1:
        for start in range(0, size, length):
            row = np.zeros(size)
            row[start : start + length] = 1.0
            rows.append(row)
        length //= 2
    return np.array(rows)


def boxes(size: int, width: int = 8) -> Floats:
    """A workload: sums of `width` neighbouring pixels, at every place."""
    return np.array(
        [(np.arange(size) >= start) & (np.arange(size) < start + width) for start in range(size - width + 1)], float
    )


def by_strategy(image: Floats, strategy: Floats, epsilon: float, rng: np.random.Generator) -> Floats:
    """MM (Li et al. 2010): noise on strategy·A, then least squares. A column of pixels moves it by at most 127.5·Σ|strategy| in L1, once grey is taken off."""
    half = image - WHITE / 2.0
    measured = strategy @ half
    measured = measured + rng.laplace(0.0, WHITE / 2.0 * float(np.abs(strategy).sum()) / epsilon, measured.shape)
    released: Floats = inverse(strategy) @ measured + WHITE / 2.0
    return released


def by_low_rank(image: Floats, workload: Floats, rank: int, epsilon: float, rng: np.random.Generator) -> Floats:
    """LRM (Yuan et al. 2012, in its singular-value form): the workload W = B·L of this rank, noise on L·A, the answers B·(L·A + noise), then pixels from these."""
    left, values, right = np.linalg.svd(workload, full_matrices=False)
    factor, strategy = left[:, :rank] * values[:rank], right[:rank]
    half = image - WHITE / 2.0
    measured = strategy @ half
    measured = measured + rng.laplace(0.0, WHITE / 2.0 * float(np.abs(strategy).sum()) / epsilon, measured.shape)
    released: Floats = inverse(workload) @ (factor @ measured) + WHITE / 2.0
    return released


# -- the attacks


def distance_to_subspaces(released: Floats, candidate: Floats) -> float:
    """How much of a release lies outside the singular subspaces of a candidate, of as many dimensions as the release has: 0 if it was made from it."""
    r = max(1, int(np.linalg.matrix_rank(released)))
    left, _, right = parts(candidate)
    left, right = left[:, :r], right[:r]
    inside = left @ (left.T @ released @ right.T) @ right
    return float(np.linalg.norm(released - inside) / max(np.linalg.norm(released), 1e-300))


def told_apart(
    release: Release, score: Callable[[Floats], float], images: Sequence[Floats], *, trials: int, seed: int
) -> float:
    """How often the first of two images is told from the second, by a score that is lower for releases of the first: 0.5 is chance."""
    rng = np.random.default_rng(seed)
    right = 0
    for trial in range(trials):
        which = trial % 2
        said = score(release(images[which], rng))
        right += (said < 0.0) == (which == 0)
    return right / trials


def subspace_score(images: Sequence[Floats]) -> Callable[[Floats], float]:
    """Which of two images has the subspaces of the release."""
    first, second = images
    return lambda released: distance_to_subspaces(released, first) - distance_to_subspaces(released, second)


def scale_score(images: Sequence[Floats], epsilon: float) -> Callable[[Floats], float]:
    """LAP: the likelihood of either image; the scale of the noise is the image's own."""

    def surprise(released: Floats, image: Floats) -> float:
        scale = max(largest_column(image) / epsilon, LEAST_SCALE)
        return float(np.abs(released - image).sum() / scale + released.size * math.log(scale))

    return lambda released: surprise(released, images[0]) - surprise(released, images[1])


def rank_score(images: Sequence[Floats]) -> Callable[[Floats], float]:
    """LRA: a release has the rank of its image."""
    first, second = (int(np.linalg.matrix_rank(image)) for image in images)

    def score(released: Floats) -> float:
        rank = int(np.linalg.matrix_rank(released, tol=1e-9 * float(np.abs(released).max())))
        return abs(rank - first) - abs(rank - second)

    return score


def likelihood_score(images: Sequence[Floats]) -> Callable[[Floats], float]:
    """Which of two images is closer to a release, where the noise on coefficients does not depend on the image."""
    first, second = images
    return lambda released: float(np.linalg.norm(released - first) - np.linalg.norm(released - second))


def originals_found(
    releases: Sequence[Floats], candidates: Sequence[Floats], score: Callable[[Floats, Floats], float]
) -> list[int]:
    """For each release, the candidate with the lowest score."""
    return [int(np.argmin([score(released, candidate) for candidate in candidates])) for released in releases]
