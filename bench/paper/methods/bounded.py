"""IDPGAN as the service orders it: all three strategies, and by default a critic whose weights stay within a bound."""

from __future__ import annotations

from typing import Any

from bench.paper.methods.idpgan import CLUSTERS, DECAY, THRESHOLDS
from service.methods.idpgan.order import IdpganOrder
from workers.methods.idpgan.images import ImageIdpgan


class Run(ImageIdpgan):
    """The service's own."""


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**DECAY, **THRESHOLDS, **CLUSTERS, **order})
