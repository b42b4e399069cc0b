"""DPGAN (Xie et al. 2018): Wasserstein critic with clipped *weights* and noised gradients; no penalty, constant noise.

Xie et al. bound gradients by the weights' bound; here they are clipped for every image like those of the other methods, so
that the price is that of the events. Clipping weights is post-processing.
"""

from __future__ import annotations

from typing import Any

from bench.paper.methods.idpgan import NONE
from service.methods.idpgan.order import IdpganOrder
from workers.methods.idpgan.images import ImageIdpgan

WEIGHT_BOUND = 0.05


class Run(ImageIdpgan):
    """The service's own, with these knobs."""


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**NONE, "gradient_penalty": 0.0, "critic_weight_bound": WEIGHT_BOUND, **order})
