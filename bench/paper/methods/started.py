"""IDPGAN that begins with the measured mixture: half of the precision measures it, the rest corrects its images."""

from __future__ import annotations

from typing import Any

from bench.paper.methods.idpgan import NONE
from service.methods.idpgan.order import IdpganOrder
from workers.methods.idpgan.image_start import StartedImageIdpgan


class Run(StartedImageIdpgan):
    """The service's own."""


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**NONE, "warm_start": {"kind": "mixture"}, **order})
