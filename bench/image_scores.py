"""Scores of synthetic images: a classifier trained on them and tested on real ones; FID, precision, recall, Inception score.

The feature extractor is the same small network, trained on *real* training images by the bench; features are its 64
numbers before the last layer. FID values are therefore comparable with each other, and not with those of Inception-v3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from scipy import linalg
from scipy.special import expit
from torch import Tensor, nn
from torch.nn import functional as F

BATCH = 128
LEARNING_RATE = 2e-3
FEATURES = 64
NEIGHBOURS = 3
JUDGED = 10_000
MOST_COMPARED = 5_000
SMALLEST_VARIANCE = 1e-6
_CPU = torch.device("cpu")


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


def train_classifier(
    images: np.ndarray, labels: np.ndarray, *, epochs: int, seed: int, device: torch.device = _CPU
) -> Classifier:
    """Train for a fixed number of epochs, never chosen by a score. The network is on the CPU afterwards."""
    torch.manual_seed(seed)
    network = Classifier(images.shape[1]).to(device)
    steps = epochs * (len(images) // BATCH)
    optimizer = torch.optim.Adam(network.parameters(), LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.02, steps)
    pixels, wanted = _tensor(images).to(device), torch.from_numpy(labels).to(device)
    for _ in range(epochs):
        order = torch.randperm(len(images))
        for start in range(0, len(images) - BATCH + 1, BATCH):
            batch = order[start : start + BATCH]
            optimizer.zero_grad()
            F.cross_entropy(network(pixels[batch]), wanted[batch]).backward()
            optimizer.step()
            schedule.step()
    return network.eval().cpu()


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
    return inception_score_of(logits.double().softmax(dim=1).numpy())


def inception_score_of(shares: np.ndarray, weights: np.ndarray | None = None) -> float:
    """The same of p(y|x), a row for each record; with a weight for each. At most exp of the entropy of p(y)."""
    mean = np.average(shares, axis=0, weights=weights)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares > 0.0, shares * (np.log(shares) - np.log(mean)), 0.0)
    return float(np.exp(np.average(terms.sum(axis=1), weights=weights)))


def balanced_weights(labels: np.ndarray) -> np.ndarray:
    """A weight for each record, so that every class that occurs has the same total."""
    return np.asarray(1.0 / np.bincount(labels)[labels])


def most_inception_score(labels: np.ndarray) -> float:
    """exp of the entropy of the classes: what the score cannot pass where classes have these shares."""
    shares = np.bincount(labels) / len(labels)
    shares = shares[shares > 0.0]
    return float(np.exp(-(shares * np.log(shares)).sum()))


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
    """A point is covered if it is closer to some image of `by` than that one's third neighbour is."""
    radii = np.sort(_distances(by, by), axis=1)[:, NEIGHBOURS]  # the first is itself
    return float((_distances(points, by) <= radii[None, :]).any(axis=1).mean())


def _distances(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    squared = np.square(first).sum(1)[:, None] + np.square(second).sum(1)[None, :] - 2.0 * first @ second.T
    return np.sqrt(np.maximum(squared, 0.0))


def _tensor(images: np.ndarray) -> Tensor:
    return torch.from_numpy(images.astype(np.float32)).unsqueeze(1) / 255.0


class Told(NamedTuple):
    """How well a fresh discriminator tells real from synthetic images, on images it was not trained on."""

    js_bound: float
    """Bits. A lower bound of the Jensen-Shannon divergence: 1 - the discriminator's cross entropy, where both kinds are equally many."""
    from_half: float
    """Equation 19 of IDPGAN's paper, which calls it a JS divergence; see `divergence_from_half`."""


def told_apart(real: np.ndarray, fake: np.ndarray, *, seed: int) -> Told:
    """Train it on half of them, and look at the other half."""
    size = min(len(real), len(fake), JUDGED)
    images = np.concatenate((real[:size], fake[:size]))
    labels = np.repeat([0, 1], size)
    order = np.random.default_rng(seed).permutation(2 * size)
    half = size  # half of all
    network = train_classifier(images[order[:half]], labels[order[:half]], epochs=2, seed=seed)
    with torch.no_grad():
        logits = network(_tensor(images[order[half:]]))[:, :2]
        loss = F.cross_entropy(logits, torch.from_numpy(labels[order[half:]]))
    odds = (logits[:, 0] - logits[:, 1]).double().numpy()
    return Told(max(0.0, 1.0 - float(loss) / float(np.log(2.0))), divergence_from_half(odds))


def divergence_from_half(log_odds: np.ndarray) -> float:
    """Equation 19 of IDPGAN's paper: the mean over records of ½KL(Ber(d)‖Ber(½)) + ½KL(Ber(½)‖Ber(d)) = ½(d - ½)·ln(d/(1 - d)).

    d is the discriminator's share for "real"; given as ln(d/(1 - d)), which stays finite where d is 0 or 1 in floats. It is half of a
    symmetrised Kullback-Leibler divergence, so it has no upper limit, as a JS divergence has. It says how sure the discriminator is,
    right or wrong: not how far two distributions are apart.
    """
    return float(np.mean(0.5 * (expit(log_odds) - 0.5) * log_odds))
