"""Scores of synthetic images: a classifier trained on them and tested on real ones; FID, precision, recall, Inception score.

The feature extractor is the same small network, trained on *real* training images by the bench; features are its 64
numbers before the last layer. FID values are therefore comparable with each other, and not with those of Inception-v3.
"""

from __future__ import annotations

import numpy as np
import torch
from scipy import linalg
from torch import Tensor, nn
from torch.nn import functional as F

BATCH = 128
LEARNING_RATE = 2e-3
FEATURES = 64
NEIGHBOURS = 3
JUDGED = 10_000
MOST_COMPARED = 5_000
SMALLEST_VARIANCE = 1e-6


class Classifier(nn.Module):
    """Two convolutions, one hidden layer of `FEATURES`, ten classes."""

    def __init__(self, side: int) -> None:
        super().__init__()
        quarter = side // 4
        self.body = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(32 * quarter * quarter, FEATURES),
            nn.ReLU(),
        )
        self.head = nn.Linear(FEATURES, 10)

    def forward(self, pixels: Tensor) -> Tensor:
        return self.head(self.body(pixels))  # type: ignore[no-any-return]


def train_classifier(images: np.ndarray, labels: np.ndarray, *, epochs: int, seed: int) -> Classifier:
    """For a fixed number of epochs; never chosen by a score."""
    torch.manual_seed(seed)
    network = Classifier(images.shape[1])
    steps = epochs * (len(images) // BATCH)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    pixels, wanted = _tensor(images), torch.from_numpy(labels)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            optimizer.zero_grad()
            F.cross_entropy(network(pixels[batch]), wanted[batch]).backward()
            optimizer.step()
            schedule.step()
    return network.eval()


@torch.no_grad()
def accuracy(network: Classifier, images: np.ndarray, labels: np.ndarray) -> float:
    guessed = torch.cat([network(part) for part in _tensor(images).split(2_000)]).argmax(dim=1).numpy()
    return float((guessed == labels).mean())


@torch.no_grad()
def features(judge: Classifier, images: np.ndarray) -> np.ndarray:
    """(n, FEATURES) of the first `JUDGED` images."""
    return torch.cat([judge.body(part) for part in _tensor(images[:JUDGED]).split(2_000)]).double().numpy()


@torch.no_grad()
def inception_score(judge: Classifier, images: np.ndarray) -> float:
    """exp of the mean divergence of p(y|x) from p(y), by a classifier trained on real images (Salimans et al. 2016)."""
    logits = torch.cat([judge(part) for part in _tensor(images[:JUDGED]).split(2_000)])
    shares = logits.double().softmax(dim=1)
    mean = shares.mean(dim=0)
    return float((shares * (shares.clamp(min=1e-12).log() - mean.log())).sum(dim=1).mean().exp())


def frechet_distance(first: np.ndarray, second: np.ndarray) -> float:
    """Between the Gaussians of two sets of features (Heusel et al. 2017)."""
    a, b = np.cov(first.T), np.cov(second.T)
    # A little on the diagonal: a feature that never moves would make the root inexact.
    a, b = (matrix + SMALLEST_VARIANCE * np.eye(len(matrix)) for matrix in (a, b))
    root = linalg.sqrtm(a @ b)
    gap = first.mean(axis=0) - second.mean(axis=0)
    return float(gap @ gap + np.trace(a) + np.trace(b) - 2.0 * np.trace(root.real))


def precision_and_recall(real: np.ndarray, fake: np.ndarray) -> tuple[float, float]:
    """Part of the fakes within reach of a real image, and of the real ones within reach of a fake (Kynkäänniemi 2019)."""
    real, fake = real[:MOST_COMPARED], fake[:MOST_COMPARED]
    return _covered(real, fake), _covered(fake, real)


def _covered(by: np.ndarray, points: np.ndarray) -> float:
    """A point is covered if it is nearer to some image of `by` than that one's third neighbour is."""
    radii = np.sort(_distances(by, by), axis=1)[:, NEIGHBOURS]  # the first is itself
    return float((_distances(points, by) <= radii[None, :]).any(axis=1).mean())


def _distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    squared = np.square(first).sum(1)[:, None] + np.square(second).sum(1)[None, :] - 2.0 * first @ second.T
    return np.sqrt(np.maximum(squared, 0.0))


def _tensor(images: np.ndarray) -> Tensor:
    return torch.from_numpy(images.astype(np.float32)).unsqueeze(1) / 255.0


def js_divergence(real: np.ndarray, fake: np.ndarray, *, seed: int) -> float:
    """Between real and synthetic images, in bits, by a fresh discriminator on images it was not trained on.

    A lower bound: 1 - its cross entropy in bits, where both kinds are equally many.
    """
    size = min(len(real), len(fake), JUDGED)
    images = np.concatenate((real[:size], fake[:size]))
    labels = np.repeat([0, 1], size)
    order = np.random.default_rng(seed).permutation(2 * size)
    half = size  # half of all
    network = train_classifier(images[order[:half]], labels[order[:half]], epochs=2, seed=seed)
    with torch.no_grad():
        logits = network(_tensor(images[order[half:]]))[:, :2]
        loss = F.cross_entropy(logits, torch.from_numpy(labels[order[half:]]))
    return max(0.0, 1.0 - float(loss) / float(np.log(2.0)))
