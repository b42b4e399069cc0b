"""The run of `method: dpacgan`."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

from workers.methods.ganobfuscator.public import PublicImages
from workers.methods.idpgan.run import Run as IdpganRun
from workers.networks.auxiliary import AuxiliaryCritic, AuxiliaryPerceptron

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from workers.encoding.images import EncodedImages
    from workers.mechanism import CriticBatch


class AuxiliaryImages(PublicImages):
    """A run on images whose critic has a second head that names the class."""

    def make_critic(self) -> nn.Module:
        if self.sizes.layers == "perceptrons":
            return AuxiliaryPerceptron(math.prod(self.seen), self.sizes.critic_hidden, self.classes, self.activation)
        return AuxiliaryCritic(self.seen, self.sizes.critic_channels, self.classes, self.activation)

    def _batch_of(self, real: Tensor, present: Tensor, conditions: Tensor | None) -> CriticBatch:
        batch = super()._batch_of(real, present, conditions)
        return dataclasses.replace(batch, fake=self._without_class(batch.fake))

    def free_batch(self, free: EncodedImages, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        real, fake, conditions = super().free_batch(free, units)
        return real, self._without_class(fake), conditions

    def _without_class(self, fake: Tensor) -> Tensor:
        """The critic is not taught the classes of what is generated."""
        fake = fake.clone()
        fake[:, -self.classes :] = 0.0
        return fake


class Run(IdpganRun):
    """The loop of `idpgan`, for images."""

    of_images = AuxiliaryImages
