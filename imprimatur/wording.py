"""What a certificate says of a mechanism, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_PARAMETERS = {
    "noise_multiplier": "noise multiplier",
    "noise_scale": "noise scale",
    "epsilon": "ε",
    "mean": "mean number of runs",
    "shape": "shape",
    "sampling_probability": "sampling probability",
}


def run_in_words(run: Mapping[str, Any], *, digits: int) -> str:
    """How often, and with which original parameters."""
    numbers = [
        f"{name} {run[key]:.{digits}g}" for key, name in _PARAMETERS.items() if isinstance(run.get(key), int | float)
    ]
    parts = [run["base"]] if "base" in run else run.get("parts", [])
    lists = ["[" + "; ".join(run_in_words(each, digits=digits) for each in part) + "]" for part in parts]
    return f"{run['count']} × " + ", ".join([*numbers, *lists])
