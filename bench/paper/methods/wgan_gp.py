"""WGAN-GP (Gulrajani et al. 2017) without privacy: the same code, with noise and clip norm that do nothing.

What it makes is of private images and may never be released; the plan says so, since it runs on a test seed.
"""

from __future__ import annotations

from typing import Any

from bench.paper.methods.idpgan import NONE
from service.methods.idpgan.order import IdpganOrder
from workers.methods.idpgan.images import ImageIdpgan

NOISE_MULTIPLIER = 1e-12


class Run(ImageIdpgan):
    """Nothing of its own."""


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**NONE, "thresholds": {"kind": "fixed", "clip_norm": 1e4}, **order})
