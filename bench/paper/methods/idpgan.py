"""IDPGAN: decaying noise, thresholds from noised histograms, clustered clipping; and its ablation, one knob at a time."""

from __future__ import annotations

from typing import Any

from service.methods.idpgan.order import IdpganOrder
from workers.methods.idpgan.images import ImageIdpgan

DECAY = {"noise_decay": {"kind": "exponential"}}
THRESHOLDS = {"thresholds": {"kind": "adaptive"}}
CLUSTERS = {"clusters": {"kind": "dbscan"}}
NONE: dict[str, Any] = {
    "noise_decay": {"kind": "constant"},
    "thresholds": {"kind": "fixed", "clip_norm": 1.0},
    "clusters": {"kind": "none"},
    "critic_weight_bound": None,
}

KNOBS = {**NONE, **DECAY, **THRESHOLDS, **CLUSTERS}

ABLATION: dict[str, dict[str, Any]] = {
    "none of the three": NONE,
    "decaying noise alone": {**NONE, **DECAY},
    "adaptive thresholds alone": {**NONE, **THRESHOLDS},
    # Thresholds must differ before anything can be clustered.
    "thresholds and clusters": {**NONE, **THRESHOLDS, **CLUSTERS},
    "all three (IDPGAN)": KNOBS,
    "all three, separate fake term": {**KNOBS, "critic_loss": "separate"},
    "all three, adaptive critic steps": {**KNOBS, "adaptive_critic_steps": {}},
    "all three, critic's weights bounded": {**KNOBS, "critic_weight_bound": 0.1},
}


class Run(ImageIdpgan):
    """The service's own."""


def knobs(order: dict[str, Any]) -> IdpganOrder:
    """The order of a run."""
    return IdpganOrder.model_validate({**KNOBS, **order})
