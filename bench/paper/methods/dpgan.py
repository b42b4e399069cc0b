"""DPGAN (Xie et al. 2018): Wasserstein critic with clipped *weights* and noised gradients; no penalty, constant noise.

Xie et al. bound gradients by the weights' bound; here they are clipped for every image like those of the other methods, so
that the price is that of the events. Clipping weights is post-processing.
"""

from __future__ import annotations

from typing import Any

import torch

from bench.paper.methods.idpgan import NONE
from service.privacy.orders import IdpganOrder
from workers.methods.image_idpgan import ImageIdpgan

WEIGHT_BOUND = 0.05


class Run(ImageIdpgan):
    """Clips the critic's weights after every step."""

    def critic_step(self) -> None:
        super().critic_step()
        with torch.no_grad():
            for tensor in self.tensors:
                tensor.clamp_(-WEIGHT_BOUND, WEIGHT_BOUND)


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**NONE, "gradient_penalty": 0.0, **order})
