"""IDPGAN of images whose networks are first trained on free samples of a measured mixture.

Part of the price list measures the mixture (`ImageMixture.measure`, by the first events of the plan). What is drawn from it then reads no
row, so both networks may be trained on it as long as the order says. Private steps follow, like any other's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from service.methods.idpgan.work import FREE_SAMPLES_AT_ONCE, free_samples
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.methods.idpgan.free_start import begin_from_free_records
from workers.methods.idpgan.image_start import MixtureFirstImages
from workers.methods.labels import drawn_by

if TYPE_CHECKING:
    from collections.abc import Callable


class SampledImageIdpgan(MixtureFirstImages):
    """A run whose networks are the ordered ones, and have seen what a mixture says of the images."""

    def _begin(self) -> None:
        if self.order.condition_on is not None:
            shares = torch.tensor(self.start.component_frequencies, dtype=torch.float64)
            labels = torch.tensor(self.start.component_labels)
            self.condition_frequencies = tuple(torch.bincount(labels, shares, self.classes).tolist())

    def warm_up(self, on_share: Callable[[float], None]) -> None:
        """Steps on what is drawn from the mixture; a run that has taken private steps is past them."""
        if not self.plan.steps_done:
            begin_from_free_records(self, self.samples(on_share), self.mixture_first.free_steps, on_share)

    @torch.no_grad()
    def samples(self, on_share: Callable[[float], None] = lambda _share: None) -> EncodedImages:
        """Images of the mixture, components by their noisy counts; reads no row. `on_share` may raise to stop."""
        mixture, shape = self.start.build(), self.images.shape
        count = free_samples(int(np.prod(shape)))
        components = drawn_by(self.start.component_frequencies, count, self.randomness)
        pixels = []
        for some in torch.split(components, FREE_SAMPLES_AT_ONCE):
            on_share(0.0)
            noise = self.randomness.normals(len(some), mixture.noise_dimension, dtype=torch.float32)
            pixels.append(mixture.mixed(noise, some).flatten(1).mul(255.0).round().to(torch.uint8))
        labels = torch.tensor(self.start.component_labels)[components]
        return EncodedImages(torch.cat(pixels).numpy(), labels.numpy(), shape, self.images.classes)

    def checkpoint(self) -> Checkpoint:
        """Everything needed to go on, with all that was measured."""
        saved = super().checkpoint()
        return Checkpoint({**saved.tensors, **self.measured_tensors()}, saved.values)

    def restore(self, checkpoint: Checkpoint) -> None:
        super().restore(Checkpoint(self.take_measured(checkpoint), checkpoint.values))
