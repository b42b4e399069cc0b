"""`python -m bench.images [--quick]`: the mixture of digits, judged by a classifier trained on synthetic, tested on real.

MNIST as IDX files in one folder (`--data`); 28×28 as it is, 14×14 as the mean of 2×2 pixels. A small convolutional network
is trained for a fixed number of epochs on as many synthetic images as there are real ones; it is never chosen by its score.
Writes `bench/results/images-DATE.md`. Quick: 14×14 and one seed, about five minutes on two quiet cores.
"""

from __future__ import annotations

import argparse
import datetime as dt
import gzip
import platform
import statistics
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional as F

from service.privacy.calibration import price_order
from service.privacy.choices import resolve_order
from service.privacy.filters import open_budget
from service.privacy.mixture import ImageShape
from service.privacy.orders import MixtureOrder
from workers.encoding.images import EncodedImages
from workers.image_measuring import MeasuredImages, measure_images
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan

ROOT = Path(__file__).parents[1]
DELTA = 1e-5
BATCH = 128
LEARNING_RATE = 2e-3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=ROOT.parent / "shared" / "data" / "mnist", help="folder of IDX files"
    )
    parser.add_argument("--sides", type=int, nargs="+", default=[14, 28])
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--knobs", nargs="*", default=[], metavar="NAME=VALUE", help="of the order, to try other ones")
    parser.add_argument("--quick", action="store_true", help="14×14, one seed")
    parser.add_argument("--no-file", action="store_true", help="print only")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sides, arguments.seeds = [14], 1
    torch.set_num_threads(arguments.threads)
    knobs = {
        name: float(value) if "." in value else int(value)
        for name, _, value in (k.partition("=") for k in arguments.knobs)
    }

    lines = []
    for side in arguments.sides:
        train, labels, test, test_labels = load(arguments.data, side)
        lines.append(
            row(side, "real images", "–", "–", [accuracy(train, labels, test, test_labels, arguments.epochs, 0)], [])
        )
        for epsilon in arguments.epsilons:
            scores, seconds, cells = [], [], 0
            for seed in range(arguments.seeds):
                began = time.process_time()
                measured, cells = measure(train, labels, epsilon, seed, knobs)
                seconds.append(time.process_time() - began)
                images, drawn = draw(measured, len(train), seed)
                scores.append(accuracy(images, drawn, test, test_labels, arguments.epochs, seed))
                print(
                    f"{side}×{side} ε={epsilon:g} seed {seed}: {100 * scores[-1]:.2f} %, {seconds[-1]:.1f} s",
                    flush=True,
                )
            lines.append(row(side, "mixture", f"{epsilon:g}", str(cells), scores, seconds))
    text = report(arguments, lines)
    print(text)
    if not arguments.no_file:
        (ROOT / "bench" / "results" / f"images-{dt.datetime.now(dt.UTC).date().isoformat()}.md").write_text(
            text, encoding="utf-8"
        )


def load(folder: Path, side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training pixels (n, side, side) and labels, test pixels and labels."""
    arrays = []
    for part in ("train", "t10k"):
        pixels = idx(folder / f"{part}-images-idx3-ubyte.gz", 16).reshape(-1, 28, 28)
        if side == 14:
            pixels = np.rint(pixels.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))).astype(np.uint8)
        arrays += [pixels, idx(folder / f"{part}-labels-idx1-ubyte.gz", 8).astype(np.int64)]
    return arrays[0], arrays[1], arrays[2], arrays[3]


def idx(path: Path, header: int) -> np.ndarray:
    return np.frombuffer(gzip.decompress(path.read_bytes()), dtype=np.uint8)[header:]


def measure(
    train: np.ndarray, labels: np.ndarray, epsilon: float, seed: int, knobs: dict[str, float]
) -> tuple[MeasuredImages, int]:
    """A release of the whole budget, priced and run as the service would; the number of cells."""
    units, side = len(train), train.shape[1]
    # A release of share 1 is calibrated to half of the dataset's δ.
    budget = open_budget(epsilon, 2 * DELTA)
    order = resolve_order(
        MixtureOrder(method="mixture", epsilon=epsilon, **knobs),
        units=units,
        shape=ImageShape(side, side, 1, classes=10),
        budget=budget,
    )
    plan = Plan(price_order(order, units=units, budget=budget).events)
    images = EncodedImages(train.reshape(units, -1), labels, (side, side, 1), 10)
    return measure_images(order, plan, images, SecureRandom.from_test_seed(seed)), order.cells


def draw(measured: MeasuredImages, count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """`count` images (count, side, side) uint8 and their labels, as the service draws them."""
    rng, generator = np.random.default_rng(seed), measured.generator
    component = rng.choice(len(measured.component_labels), size=count, p=measured.component_frequencies)
    images = np.empty((count, *generator.shape[:2]), dtype=np.uint8)
    with torch.no_grad():
        for one in np.unique(component):
            rows = np.flatnonzero(component == one)
            noise = torch.from_numpy(rng.standard_normal((len(rows), generator.noise_dimension), dtype=np.float32))
            images[rows] = (generator(noise, torch.tensor([one]))[..., 0] * 255.0).round().numpy()
    return images, np.array(measured.component_labels)[component]


def accuracy(
    images: np.ndarray, labels: np.ndarray, test: np.ndarray, test_labels: np.ndarray, epochs: int, seed: int
) -> float:
    """Of a small convolutional network, trained on `images`, on `test`."""
    torch.manual_seed(seed)
    quarter = images.shape[1] // 4
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(16, 32, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(32 * quarter * quarter, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 10),
    )
    steps = epochs * (len(images) // BATCH)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    pixels, wanted = torch.from_numpy(images).float().unsqueeze(1) / 255.0, torch.from_numpy(labels)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            optimizer.zero_grad()
            F.cross_entropy(network(pixels[batch]), wanted[batch]).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        guessed = network(torch.from_numpy(test).float().unsqueeze(1) / 255.0).argmax(dim=1).numpy()
    return float((guessed == test_labels).mean())


def row(side: int, source: str, epsilon: str, cells: str, scores: list[float], seconds: list[float]) -> str:
    spread = f" ({100 * statistics.stdev(scores):.2f})" if len(scores) > 1 else ""
    time_ = f"{statistics.mean(seconds):.1f}" if seconds else "–"
    return f"| {side}×{side} | {source} | {epsilon} | {cells} | {100 * statistics.mean(scores):.2f}{spread} | {time_} |"


def report(arguments: argparse.Namespace, lines: list[str]) -> str:
    head = (
        f"# Images\n\n{dt.datetime.now(dt.UTC).date().isoformat()}, {platform.machine()}, 2 cores, 24 GiB; `python -m bench.images`"
        f"{' --quick' if arguments.quick else ''}; MNIST, δ = {DELTA:g}, {arguments.seeds} seed(s): accuracy on the 10,000 real test\n"
        f"images, in %, mean (standard deviation), of a small convolutional network trained for {arguments.epochs} epochs on 60,000 images.\n"
        "Seconds are processor time of measuring and building.\n\n"
        "| size | trained on | ε | cells | accuracy | seconds |\n|---|---|---|---|---|---|\n"
    )
    return head + "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
