"""GANobfuscator (Xu et al. 2019): WGAN-GP whose clip norm is, at every step, the mean gradient norm of a few public images.

The public images are `PUBLIC` training images set aside; the run never draws them. Rates adapt by Adam.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.paper.methods.idpgan import NONE
from service.methods.idpgan.order import IdpganOrder
from workers.encoding.images import EncodedImages
from workers.mechanism.clusters import ClipGroups
from workers.methods.idpgan.images import ImageIdpgan

PUBLIC = 600
_LOOKED_AT = 32


class Run(ImageIdpgan):
    """Gets all images, keeps the last `PUBLIC` out of what is private."""

    def __init__(self, order: IdpganOrder, plan: Any, images: EncodedImages, *rest: Any) -> None:
        private = EncodedImages(images.pixels[:-PUBLIC], images.labels[:-PUBLIC], images.shape, images.classes)
        super().__init__(order, plan, private, *rest)
        self.public = EncodedImages(images.pixels[-PUBLIC:], images.labels[-PUBLIC:], images.shape, images.classes)

    def critic_step(self) -> None:
        private, self.images = self.images, self.public
        looked_at = np.sort(np.random.default_rng(self.plan.position).choice(PUBLIC, _LOOKED_AT, replace=False))
        gradients = self.gradients.gradients(self._critic_batch(looked_at), self.loss)
        norm = float(gradients.tensor_norms.square().sum(dim=1).sqrt().mean())
        self.images = private
        self.clip_groups = ClipGroups((tuple(range(len(self.tensors))),), (max(norm, 1e-6),))
        super().critic_step()


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**NONE, **order})
