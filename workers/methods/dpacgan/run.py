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
    from torch import nn

    from workers.mechanism import CriticBatch


class AuxiliaryImages(PublicImages):
    """With a critic of two heads."""

    def make_critic(self) -> nn.Module:
        if self.sizes.layers == "perceptrons":
            return AuxiliaryPerceptron(math.prod(self.seen), self.sizes.critic_hidden, self.classes)
        return AuxiliaryCritic(self.seen, self.sizes.critic_channels, self.classes)

    def _critic_batch(self, units: np.ndarray) -> CriticBatch:
        batch = super()._critic_batch(units)
        fake = batch.fake.clone()
        fake[:, -self.classes :] = 0.0
        return dataclasses.replace(batch, fake=fake)


class Run(IdpganRun):
    """The loop of `idpgan`, for images."""

    of_images = AuxiliaryImages
