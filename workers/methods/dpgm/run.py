"""The run of `method: dpgm`: private k-means, then a variational autoencoder for each cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from service.methods.dpgm.price import CLUSTER_COUNTS, CLUSTER_MEANS, events
from workers.checkpoints import Checkpoint
from workers.mechanism.image_moments import NO_CELL, WholeVectors, first_moments, nearest_cells, scale_for
from workers.mechanism.noise import drawn_std
from workers.methods.dpgm.clusters import Fourier, first_centres, moved_centres
from workers.methods.dpgm.training import AutoencoderRun, shares_of
from workers.networks.latent_mixture import LatentGaussians

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from service.methods.dpgm.order import DpgmOrder
    from workers.hooks import Hooks
    from workers.mechanism import PrivateSum
    from workers.mechanism.secure_random import SecureRandom
    from workers.methods.dpgm.training import Floats
    from workers.plan import Plan
    from workers.sources import Source

COUNT_SHARE = 0.05
"""Of a round's precision, for the numbers of records."""


class Run(AutoencoderRun):
    """Which cluster a record is in follows from that record and from noisy centres; everything after that is joint over clusters."""

    is_variational: ClassVar[bool] = True
    order: DpgmOrder

    def __init__(
        self, order: DpgmOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        super().__init__(order, plan, source, randomness, device)
        self.features: WholeVectors | None = None
        self.centres: Floats = np.zeros((self.blocks, order.features))
        self.count_std = 0.0

    @property
    def blocks(self) -> int:
        return self.order.clusters

    @property
    def parts(self) -> int:
        return self.order.clusters

    @property
    def label_inputs(self) -> int:
        return self.records.classes if self.records.classes > 1 else 0

    def measure(self) -> None:
        """Rounds of k-means, and then the records of every cluster and label, by the centres that the steps will use."""
        self.plan.expect(events(self.order, 1.0, 1e-9)(1.0))
        fourier = self._fourier()
        rounds = self.order.rounds
        if rounds:
            self._find_centres(fourier, rounds)
        noisy = self.release_whole(CLUSTER_COUNTS, self._sizes, (1.0,))
        self.count_std = drawn_std(noisy.noise_stds[0])
        self.counts = noisy.released[0].reshape(self.classes, self.blocks)

    def _sizes(self) -> PrivateSum:
        """Of every label and cluster."""
        clusters, labels = self.members(), self.records.labels
        cells = np.where(labels == NO_CELL, self.classes * self.blocks, labels * self.blocks + clusters)
        return self.counted(cells, self.classes * self.blocks)

    def _find_centres(self, fourier: Fourier, rounds: int) -> None:
        """The first round has one cluster of all records, whose mean is where the others begin."""
        rng = np.random.Generator(np.random.PCG64(self.randomness.seed()))
        centres = np.zeros((1, self.order.features))
        for place in range(rounds):
            moments = partial(self._moments, fourier, centres)
            noisy = self.release_whole(CLUSTER_MEANS, moments, (COUNT_SHARE, 1.0 - COUNT_SHARE))
            counts, sums = noisy.released
            centres = moved_centres(centres, counts, sums, noisy.noise_stds)
            if place == 0:
                centres = first_centres(centres[0], self.blocks, fourier.scale, rng)
        self.centres = centres

    def _moments(self, fourier: Fourier, centres: Floats) -> PrivateSum:
        features, radius = self._features(fourier), max(1, int(self.order.feature_norm * fourier.scale))
        cells = self._nearest(features, centres)
        return first_moments(features, cells, centres=centres, radius=radius, units=self.records.owners)

    def members(self) -> NDArray[np.int64]:
        if self.blocks == 1:
            return np.zeros(self.records.most, dtype=np.int64)
        cells = self._nearest(self._features(self._fourier()), self.centres)
        return np.where(cells == NO_CELL, 0, cells)

    def block_counts(self) -> Floats:
        counts: Floats = self.counts.sum(axis=0)
        return counts

    def gaussians(self, hooks: Hooks) -> LatentGaussians:
        del hooks
        shares = shares_of(self.counts, least=2.0 * self.count_std)
        return LatentGaussians.standard(shares, self.order.autoencoder.latent_numbers)

    def checkpoint(self) -> Checkpoint:
        saved = super().checkpoint()
        tensors = {**saved.tensors, "centres": torch.from_numpy(self.centres)}
        return Checkpoint(tensors, {**saved.values, "count_std": self.count_std})

    def restore(self, checkpoint: Checkpoint) -> None:
        super().restore(checkpoint)
        self.centres, self.count_std = checkpoint.tensors["centres"].numpy(), checkpoint.values["count_std"]

    def _fourier(self) -> Fourier:
        order = self.order
        scale = scale_for(self.records.units, order.feature_norm, most=self.records.places)
        return Fourier.drawn(self.records, features=order.features, kernel_width=order.kernel_width, scale=scale)

    def _features(self, fourier: Fourier) -> WholeVectors:
        if self.features is None:
            self.features = fourier.of(self.records)
        return self.features

    def _nearest(self, features: WholeVectors, centres: Floats) -> NDArray[np.int64]:
        """The nearest centre of every record, whatever its label."""
        labels = np.where(self.records.labels == NO_CELL, NO_CELL, 0)
        return nearest_cells(features, labels, centres=centres, centre_labels=np.zeros(len(centres), dtype=np.int64))
