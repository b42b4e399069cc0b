"""Two attacks on each release: neighbours told apart, and the original found among all images; and the person, by other photographs.

None has a knob that was tuned: a release is matched with what its published form leaves in it (subspaces, scale, column space), or by
likelihood where only the noise is between.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bench.audit import faces
from bench.faces.images import GREY, Floats, low_pass
from bench.faces.releases import LRM, PIXELS, SRA, ours

TOLD, ORIGINAL, PERSON = "neighbours told apart", "original among all", "person, by other photographs"
TOLD_AT, FOUND_AT = 0.001, (1e-6, 0.1)
LRA_FOUND_AT = (0.1, 1.3)
"""Below 10⁻⁵ its iterations overflow."""
OURS_TOLD_AT = (0.1, 1.0)
Scores = Callable[[Floats], Floats]
"""Of a release, one for every candidate: the lowest is taken."""


@dataclass(frozen=True)
class Attack:
    """run: per cent of tries that succeed, by what is found out."""

    release: str
    epsilon: float
    tries: int
    run: Callable[[], dict[str, float]]

    @property
    def name(self) -> str:
        return f"{self.release}, ε = {self.epsilon:g}, {self.tries} tries"


def may_be_told(epsilon: float) -> float:
    """Per cent of fair coins that anyone can name from an (ε, 0)-private release."""
    return 100.0 / (1.0 + math.exp(-epsilon))


def attacks(images: Floats, attacked: int, trials: int) -> Iterator[tuple[str, Attack]]:
    """What is found out, and the attack; each attack runs when it is called."""
    yield from ((TOLD, attack) for attack in _of_neighbours(images, trials))
    yield from ((ORIGINAL, attack) for attack in _of_originals(images, attacked))


def _of_neighbours(images: Floats, trials: int) -> Iterator[Attack]:
    """An image, and the same with a column of grey; of LAP and LRA with one white beside all black, and one of rank 1."""
    image = images[0, 0]
    height, width = image.shape
    changed = image.copy()
    changed[:, width * 2 // 5] = GREY
    pair, few = [image, changed], max(2, trials // 10)
    black = np.zeros((24, 16))
    white = black.copy()
    white[:, 3] = 255.0
    stripes = np.tile(np.linspace(20.0, 230.0, 24)[:, None], (1, 16))
    broken = stripes.copy()
    broken[::2, 3] = GREY

    def told(
        release: Callable[..., Floats], score: Callable[[Floats], float], two: list[Floats], count: int, **knobs: object
    ) -> Callable[[], dict[str, float]]:
        return lambda: {
            TOLD: 100.0
            * faces.told_apart(
                lambda one, rng: release(one, epsilon=TOLD_AT, rng=rng, **knobs), score, two, trials=count, seed=1
            )
        }

    of_scale, of_rank = faces.scale_score([black, white], TOLD_AT), faces.rank_score([stripes, broken])
    of_subspaces, likely = faces.subspace_score(pair), faces.likelihood_score(pair)
    eye, boxes = np.eye(height), faces.boxes(height)
    for name, count, run in (
        ("LAP (a white column, or none)", trials, told(faces.lap, of_scale, [black, white], trials)),
        ("LRA (rank 1, or 2)", few, told(faces.lra, of_rank, [stripes, broken], few, passes=5)),
        (SRA, trials, told(faces.sra, of_subspaces, pair, trials, r=5)),
        ("ESRA", trials, told(faces.esra, of_subspaces, pair, trials)),
        (PIXELS, trials, told(faces.by_strategy, likely, pair, trials, strategy=eye)),
        (LRM, few, told(faces.by_low_rank, likely, pair, few, workload=boxes, rank=min(16, len(boxes)))),
    ):
        yield Attack(name, TOLD_AT, count, run)
    yield from _of_neighbours_of_ours(images, changed, trials)


def _of_neighbours_of_ours(images: Floats, changed: Floats, trials: int) -> Iterator[Attack]:
    rounds = 2 * max(1, round(trials / (2 * images[:, :, 0, 0].size)))
    tries = rounds * images[:, :, 0, 0].size
    for name, knobs in (
        ("image_release, k = 3", {}),
        ("image_release, k = 3, Laplace", {"noise": "laplace"}),
        ("image_release, k = 3, singular values", {"singular_values_share": 0.2}),
    ):
        for epsilon in OURS_TOLD_AT:

            def run(epsilon: float = epsilon, knobs: dict[str, object] = knobs) -> dict[str, float]:  # type: ignore[assignment]
                return {TOLD: 100.0 * ours_told_apart(images, changed, epsilon, rounds, **knobs)}

            yield Attack(name, epsilon, tries, run)


def ours_told_apart(images: Floats, changed: Floats, epsilon: float, rounds: int, **knobs: object) -> float:
    """Copies of one of the two images are released at once, each with noise of its own, and judged one by one by likelihood."""
    right = []
    two = [images[0, 0], changed]
    score = faces.likelihood_score([low_pass(one[None, None], 3)[0, 0] for one in two])
    for number in range(rounds):
        which = number % 2
        copies = np.broadcast_to(two[which], images.shape)
        made = ours(copies, epsilon, number, coefficients=3, **knobs)  # type: ignore[arg-type]
        right += [(score(one) < 0.0) == (which == 0) for one in made.reshape(-1, *images.shape[2:])]
    return statistics.fmean(right)


class Candidates:
    """All images, as the adversary has them, in any order; and which of them are of one person."""

    def __init__(self, images: Floats) -> None:
        self.flat = images.reshape(-1, *images.shape[2:])
        self.each = images.shape[1]
        self.low = low_pass(images, 3).reshape(self.flat.shape)

    @cached_property
    def vectors(self) -> tuple[Floats, Floats]:
        """Singular vectors, as rows."""
        left, _, right = np.linalg.svd(self.flat, full_matrices=False)
        return np.ascontiguousarray(left.transpose(0, 2, 1)), right

    @cached_property
    def norms(self) -> Floats:
        return np.asarray(np.linalg.norm(self.flat, axis=(1, 2)))

    def found(self, made: dict[int, Floats], scores: Scores) -> dict[str, float]:
        """Per cent of releases whose own original is the nearest; and whose nearest other image is of the same person."""
        same, person = [], []
        for index, released in made.items():
            of_all = scores(released)
            same.append(int(of_all.argmin()) == index)
            of_all[index] = np.inf
            person.append(int(of_all.argmin()) // self.each == index // self.each)
        return {ORIGINAL: 100.0 * statistics.fmean(same), PERSON: 100.0 * statistics.fmean(person)}

    def outside_subspaces(self, r: int | None) -> Scores:
        """How much of a release is outside the first r singular subspaces; r: as many as the release has."""

        def scores(released: Floats) -> Floats:
            rank = r or max(1, int(np.linalg.matrix_rank(released)))
            left, right = (vectors[:, :rank] for vectors in self.vectors)
            inside = left @ released @ right.transpose(0, 2, 1)
            return np.asarray(np.square(released).sum() - np.square(inside).sum(axis=(1, 2)))

        return scores

    def by_scale(self, epsilon: float) -> Scores:
        """LAP: the likelihood, with the scale that each candidate's noise would have."""
        scales = np.array([faces.largest_column(one) / epsilon for one in self.flat])
        return lambda released: np.asarray(
            np.abs(released - self.flat).sum(axis=(1, 2)) / scales + released.size * np.log(scales)
        )

    def outside_columns(self) -> Scores:
        """LRA: how much of each candidate is outside the column space of the release, which is that of B."""

        def scores(released: Floats) -> Floats:
            left, values, _ = np.linalg.svd(released)
            rest = left[:, int((values > 1e-9 * values[0]).sum()) :]
            return np.asarray(np.linalg.norm(rest.T @ self.flat, axis=(1, 2)) / self.norms)

        return scores

    def by_likelihood(self) -> Scores:
        return lambda released: np.asarray(np.linalg.norm(self.low - released, axis=(1, 2)))


def _of_originals(images: Floats, attacked: int) -> Iterator[Attack]:
    everyone = Candidates(images)
    flat = everyone.flat
    chosen = [int(index) for index in np.random.default_rng(0).permutation(len(flat))[:attacked]]
    ranks = [r for r in (5, 10, 20) if r < min(flat.shape[1:])]

    def on(
        name: str, epsilon: float, release: Callable[..., Floats], scores: Callable[[], Scores], tries: int
    ) -> Attack:
        def run() -> dict[str, float]:
            rng = np.random.default_rng(2)
            made = {index: release(flat[index], epsilon=epsilon, rng=rng) for index in chosen[:tries]}
            return everyone.found(made, scores())

        return Attack(name, epsilon, min(tries, len(chosen)), run)

    for epsilon in FOUND_AT:
        for r in ranks:
            yield on(f"SRA, r = {r}", epsilon, _sra(r), lambda r=r: everyone.outside_subspaces(r), attacked)  # type: ignore[misc]
        yield on("ESRA", epsilon, faces.esra, lambda: everyone.outside_subspaces(None), attacked)
        yield on("LAP, by the scale", epsilon, faces.lap, lambda e=epsilon: everyone.by_scale(e), attacked)  # type: ignore[misc]
    for epsilon in LRA_FOUND_AT:
        yield on("LRA, by the columns of B", epsilon, faces.lra, everyone.outside_columns, max(1, attacked // 4))
    for unit, epsilon in (("column", 0.1), ("column", 1.3), ("image", 0.1), ("image", 1.3)):
        for how, scores in (("subspaces", everyone.outside_subspaces(3)), ("likelihood", everyone.by_likelihood())):

            def run(
                unit: str = unit, epsilon: float = epsilon, how: str = how, scores: Scores = scores
            ) -> dict[str, float]:
                made = ours(images, epsilon, 5, unit=unit, coefficients=3).reshape(flat.shape)
                grey = GREY if how == "subspaces" else 0.0
                return everyone.found({index: made[index] - grey for index in chosen}, scores)

            yield Attack(f"image_release, k = 3, unit: {unit}, by {how}", epsilon, len(chosen), run)


def _sra(r: int) -> Callable[..., Floats]:
    return lambda image, epsilon, rng: faces.sra(image, epsilon, rng, r=r)
