"""`python -m bench.images [--quick]`: the mixture of digits and of clothes, judged on real test images.

MNIST and Fashion-MNIST in one folder each under `--data`; 28×28 as they are, 14×14 as the mean of 2×2 pixels. Accuracy is
that of a small network trained on as many synthetic images as there are real ones, for a fixed number of epochs; FID,
precision and recall by `bench.image_scores`. Writes the section TAG of `bench/results/images.md`, and a picture for each row to `bench/runs`.
Quick: 14×14 MNIST and one seed, about five minutes on two quiet cores. `--validate` chooses settings: it tests on a sixth
of the training images.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import numpy as np
import torch
from PIL import Image

from bench.image_data import DATA, Digits, held_out, load
from bench.image_scores import (
    Classifier,
    accuracy,
    features,
    frechet_distance,
    inception_score,
    precision_and_recall,
    train_classifier,
)
from bench.orders import budget_of_one_release, resolve_order
from bench.pages import keep, run_file
from service.domain.shapes import ImageShape
from service.methods.mixture.order import MixtureOrder
from service.methods.pricing import price_order
from workers.encoding.images import EncodedImages
from workers.generators.released import ImageRelease
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.sources import GivenImages
from workers.training import make_release

DELTA = 1e-5
SHOWN = 12
"""Images of every class in a picture."""


@dataclass
class Row:
    """Scores of all seeds of one setting."""

    name: str
    side: int
    source: str
    epsilon: str
    cells: str
    scores: dict[str, list[float]] = field(default_factory=dict)

    def add(self, **scores: float) -> None:
        for name, score in scores.items():
            self.scores.setdefault(name, []).append(score)

    def text(self) -> str:
        columns = [
            self._mean("accuracy", 100.0),
            self._mean("fid"),
            self._mean("precision"),
            self._mean("recall"),
            self._mean("inception"),
            self._mean("seconds"),
        ]
        start = [self.name, f"{self.side}×{self.side}", self.source, self.epsilon, self.cells]
        return "| " + " | ".join([*start, *columns]) + " |"

    def _mean(self, name: str, scale: float = 1.0) -> str:
        values = self.scores.get(name)
        if not values:
            return "–"
        spread = f" ({scale * statistics.stdev(values):.2f})" if len(values) > 1 else ""
        return f"{scale * statistics.mean(values):.2f}{spread}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with a folder of files per data set")
    parser.add_argument("--names", nargs="+", default=["mnist", "fashion_mnist"])
    parser.add_argument("--sides", type=int, nargs="+", default=[28])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--count", type=int, help="synthetic images; default as many as real ones")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--knobs", nargs="*", default=[], metavar="NAME=VALUE", help="of the order, to try other ones")
    parser.add_argument("--quick", action="store_true", help="14×14 MNIST, one seed")
    parser.add_argument("--validate", action="store_true", help="test on held-out training images; write nothing")
    parser.add_argument("--no-file", action="store_true", help="print only")
    parser.add_argument("--tag", default="", help="name of the section; default: of the data and the sides")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.names, arguments.sides, arguments.seeds = ["mnist"], [14], 1
    arguments.no_file |= arguments.validate
    torch.set_num_threads(arguments.threads)

    rows = []
    for name in arguments.names:
        for side in arguments.sides:
            data = load(arguments.data / name, side)
            rows += measure_all(name, held_out(data) if arguments.validate else data, arguments)
    text = report(arguments, rows)
    print(text)
    if not arguments.no_file:
        keep("images", text, section(arguments))


def measure_all(name: str, data: Digits, arguments: argparse.Namespace) -> list[Row]:
    """The real images and the mixture at every ε."""
    knobs = {key: float(value) if "." in value else int(value) for key, value in pairs(arguments.knobs)}
    side, count = data.train.shape[1], arguments.count or len(data.train)
    judge = train_classifier(data.train[:count], data.labels[:count], epochs=arguments.epochs, seed=0)
    real = Row(name, side, "real images", "–", "–")
    real.add(**judged(judge, judge, data.train, data))
    print(real.text(), flush=True)
    rows = [real]
    for epsilon in arguments.epsilons:
        row = Row(name, side, "mixture", f"{epsilon:g}", "")
        for seed in range(arguments.seeds):
            began = time.process_time()
            measured, cells = measure(data.train, data.labels, epsilon, seed, knobs)
            row.cells = str(cells)
            row.add(seconds=time.process_time() - began)
            images, drawn = draw(measured, count, seed)
            network = train_classifier(images, drawn, epochs=arguments.epochs, seed=seed)
            row.add(**judged(judge, network, images, data))
            if seed == 0 and not arguments.no_file:
                picture(images, drawn, run_file(f"images-{section(arguments)}-{name}-{side}-{epsilon:g}.png"))
            print(row.text(), flush=True)
        rows.append(row)
    return rows


def judged(judge: Classifier, network: Classifier, images: np.ndarray, data: Digits) -> dict[str, float]:
    """All scores of a set of images and of the classifier trained on it."""
    real, fake = features(judge, data.test), features(judge, images)
    precision, recall = precision_and_recall(real, fake)
    return {
        "accuracy": accuracy(network, data.test, data.test_labels),
        "fid": frechet_distance(real, fake),
        "precision": precision,
        "recall": recall,
        "inception": inception_score(judge, images),
    }


def measure(
    train: np.ndarray, labels: np.ndarray, epsilon: float, seed: int, knobs: dict[str, float]
) -> tuple[ImageRelease, int]:
    """A release of the whole budget, priced and run as the service would; the number of cells."""
    units, side = len(train), train.shape[1]
    budget = budget_of_one_release(epsilon, DELTA)
    order = resolve_order(
        MixtureOrder(method="mixture", epsilon=epsilon, **knobs),
        units=units,
        shape=ImageShape(side, side, 1, classes=10),
        budget=budget,
    )
    plan = Plan(price_order(order, budget).events)
    images = EncodedImages(train.reshape(units, -1), labels, (side, side, 1), 10)
    made = make_release(order, plan, GivenImages(images), SecureRandom.from_test_seed(seed))
    return cast("ImageRelease", made), order.cells


def draw(measured: ImageRelease, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` images (count, side, side) uint8 and their labels, as the service draws them."""
    rng, generator = np.random.default_rng(seed), measured.generator
    components = rng.choice(len(measured.component_labels), size=count, p=measured.component_frequencies)
    images = np.empty((count, *generator.shape[:2]), dtype=np.uint8)
    with torch.no_grad():
        for one in np.unique(components):
            rows = np.flatnonzero(components == one)
            noise = torch.from_numpy(rng.standard_normal((len(rows), measured.noise_dimension), dtype=np.float32))
            component = torch.full((1 if measured.one_a_run else len(rows),), int(one))
            images[rows] = (generator(noise, component)[..., 0] * 255.0).round().numpy()
    return images, np.array(measured.component_labels)[components]


def picture(images: np.ndarray, labels: np.ndarray, path: Path) -> None:
    """A class a row."""
    rows = [np.concatenate(list(images[labels == label][:SHOWN]), axis=1) for label in range(10)]
    width = max(row.shape[1] for row in rows)
    padded = [np.pad(row, ((0, 0), (0, width - row.shape[1]))) for row in rows]
    Image.fromarray(np.concatenate(padded)).save(path, optimize=True)


def pairs(knobs: list[str]) -> list[tuple[str, str]]:
    return [(name, value) for name, _, value in (knob.partition("=") for knob in knobs)]


def section(arguments: argparse.Namespace) -> str:
    return arguments.tag or "-".join(map(str, (*arguments.names, *arguments.sides)))


def report(arguments: argparse.Namespace, rows: list[Row]) -> str:
    count = arguments.count or 60_000
    options = [*(["--quick"] if arguments.quick else []), "--names", *arguments.names]
    options += ["--knobs", *arguments.knobs] if arguments.knobs else []
    head = (
        f"{platform.machine()}, 2 cores, 24 GiB; "
        f"`python -m bench.images {' '.join(options)}`; "
        f"δ = {DELTA:g}, {arguments.seeds} seed(s): accuracy in %,\n"
        f"on the 10,000 real test images, of a small convolutional network trained for {arguments.epochs} epochs on {count:,} images;\n"
        "mean (standard deviation). FID, precision and recall between 10,000 (5,000) images and as many real test images, in the 64\n"
        "features of the network trained on real images: not comparable with FIDs of Inception-v3. IS: Inception score by that network.\n"
        "Seconds are processor time of measuring and building.\n\n"
        "| data | size | trained on | ε | cells | accuracy | FID | precision | recall | IS | seconds |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(row.text() for row in rows) + "\n"


if __name__ == "__main__":
    main()
