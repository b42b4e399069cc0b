"""The paper's methods as orders of the service, and the ablation of IDPGAN, one knob at a time."""

from __future__ import annotations

from typing import Any

DECAY = {"noise_decay": {"kind": "exponential"}}
THRESHOLDS = {"thresholds": {"kind": "adaptive"}}
CLUSTERS = {"clusters": {"kind": "dbscan"}}
NONE: dict[str, Any] = {
    "method": "idpgan",
    "noise_decay": {"kind": "constant"},
    "thresholds": {"kind": "fixed", "clip_norm": 1.0},
    "clusters": {"kind": "none"},
    "critic_weight_bound": None,
}
KNOBS = {**NONE, **DECAY, **THRESHOLDS, **CLUSTERS}

WITHOUT_PRIVACY = "WGAN-GP"
"""The same code with noise and a clip norm that do nothing; what it makes may never be released."""

METHODS: dict[str, dict[str, Any]] = {  # no commas: the command line takes several
    WITHOUT_PRIVACY: {**NONE, "thresholds": {"kind": "fixed", "clip_norm": 1e4}},
    "DPGAN": {"method": "dpgan"},
    "DPGAN by RMSProp": {"method": "dpgan", "published_as": "dpgan"},
    "PPGAN": {"method": "dpgan", "published_as": "ppgan"},
    "GANobfuscator": {"method": "ganobfuscator"},
    "DPACGAN": {"method": "dpacgan"},
    "IDPGAN": KNOBS,
    "IDPGAN with bounded weights": {"method": "idpgan", **DECAY, **THRESHOLDS, **CLUSTERS},
    "IDPGAN from a mixture": {**NONE, "warm_start": {"kind": "mixture"}},
}

REAL = "real data"
"""Nothing is trained but the classifier: the upper end of every table."""

ABLATION: dict[str, dict[str, Any]] = {
    "none of the three": NONE,
    "decaying noise alone": {**NONE, **DECAY},
    "adaptive thresholds alone": {**NONE, **THRESHOLDS},
    "decaying noise and thresholds": {**NONE, **DECAY, **THRESHOLDS},
    # Thresholds must differ before anything can be clustered.
    "thresholds and clusters": {**NONE, **THRESHOLDS, **CLUSTERS},
    "all three (IDPGAN)": KNOBS,
    "all three, separate fake term": {**KNOBS, "critic_loss": "separate"},
    "all three, adaptive critic steps": {**KNOBS, "adaptive_critic_steps": {}},
    "all three, critic's weights bounded": {**KNOBS, "critic_weight_bound": 0.1},
}
