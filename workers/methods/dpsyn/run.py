"""The run of `method: dpsyn`: label counts, an autoencoder for each class, then EM on codes."""

from __future__ import annotations

import math
from functools import cache, partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
import torch.nn.functional as F

from service.methods.dpsyn.price import LATENT_MOMENTS
from service.methods.label_counts import LABEL_COUNTS
from workers.mechanism.image_moments import NO_CELL, WEIGHT, WholeVectors, scale_for, soft_moments
from workers.methods.dpgm.records import PlacedRecords, with_labels
from workers.methods.dpgm.training import AutoencoderRun
from workers.methods.dpsyn.expectation_maximisation import (
    Mixture,
    Moments,
    fitted,
    moved_apart,
    shares_of_precision,
    split,
)
from workers.networks.autoencoders import Autoencoders, clipped
from workers.networks.latent_mixture import LatentGaussians

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from service.methods.dpsyn.order import DpsynOrder
    from workers.hooks import Hooks
    from workers.mechanism import PrivateSum
    from workers.methods.dpgm.training import Floats


SETTLING_ROUNDS = 2
"""At the end, that move no Gaussian elsewhere."""


class Run(AutoencoderRun):
    """The block of a record is its label, which is part of the record."""

    is_variational: ClassVar[bool] = False
    order: DpsynOrder

    @property
    def blocks(self) -> int:
        return self.records.classes

    @property
    def latent_norm(self) -> float:
        return self.order.latent_norm * math.sqrt(self.order.autoencoder.latent_numbers)

    def measure(self) -> None:
        """How many records every class has."""
        ((counts,), *_) = self.release_whole(LABEL_COUNTS, self._sizes, (1.0,))
        self.counts = counts[:, None]

    def _sizes(self) -> PrivateSum:
        labels = self.records.labels
        return self.counted(np.where(labels == NO_CELL, self.classes, labels), self.classes)

    def members(self) -> NDArray[np.int64]:
        return np.where(self.records.labels == NO_CELL, 0, self.records.labels)

    def block_counts(self) -> Floats:
        return self.counts[:, 0]

    def gaussians(self, hooks: Hooks) -> LatentGaussians:
        """EM on codes of the finished encoder. Nothing is kept or shown between its rounds: who stops it loses them, but no step before."""
        hooks.keep(self)
        order, norm = self.order, self.latent_norm
        scale = scale_for(self.records.units * WEIGHT, norm, most=self.records.places)
        codes = cache(partial(encoded, self.averaged, self.records, norm=norm, scale=scale))
        shares = shares_of_precision(order.responsibility_share, order.mean_share)
        rng = np.random.Generator(np.random.PCG64(self.randomness.seed()))
        mixture = Mixture.to_begin(self.classes, order.autoencoder.latent_numbers)
        for place in range(order.em_rounds):
            hooks.stop_if_asked(self.plan.steps_done)
            noisy = self.release_whole(LATENT_MOMENTS, partial(self._moments, codes, mixture, scale), shares)
            mixture = fitted(mixture, Moments.of_whole(noisy.released, scale, noisy.noise_stds[2]), norm=norm)
            if place == 0:
                mixture = split(mixture, order.gaussians, rng)
            elif place < order.em_rounds - SETTLING_ROUNDS:
                mixture = moved_apart(mixture)
        return LatentGaussians(
            shares=torch.from_numpy(mixture.shares),
            blocks=torch.from_numpy(mixture.labels),
            means=torch.from_numpy(mixture.means),
            factors=torch.from_numpy(mixture.factors()),
        )

    def _moments(self, codes: Callable[[], WholeVectors], mixture: Mixture, scale: float) -> PrivateSum:
        """codes: of all places, found at the first call."""
        return soft_moments(
            codes(),
            mixture.log_weights(self.records.labels, scale),
            centres=np.rint(mixture.means * scale),
            radius=max(1, math.floor(mixture.radius(self.latent_norm) * scale)),
            units=self.records.owners,
        )


@torch.no_grad()
def encoded(networks: Autoencoders, records: PlacedRecords, *, norm: float, scale: float) -> WholeVectors:
    """Codes of all places in whole numbers; a record's is a function of that record, its place and public networks. Private."""
    found = np.empty((records.most, networks.latent), dtype=np.int32)
    for rows, given in records.everything():
        block = F.one_hot(given.labels, networks.blocks).float()
        _, _, codes = networks.encode(with_labels(given, 0), block)
        whole = torch.round(scale * clipped(codes, norm).nan_to_num(0.0, 0.0, 0.0))
        found[rows] = whole.to(torch.int32).cpu().numpy()
    return WholeVectors(found, scale * norm + math.sqrt(networks.latent))
