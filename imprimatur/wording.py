"""What a certificate says of a mechanism, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from imprimatur.replies import Estimate

_PARAMETERS = {
    "noise_multiplier": "noise multiplier",
    "noise_scale": "noise scale",
    "epsilon": "ε",
    "mean": "mean number of runs",
    "shape": "shape",
    "sampling_probability": "sampling probability",
}


def estimate_in_words(estimate: Estimate) -> str:
    """The estimated work of an order in words: about 40 s on a CPU worker, 0.6 GB."""
    words = f"about {duration_in_words(estimate['seconds_on_a_cpu'])} on a CPU worker"
    on_a_gpu = estimate["seconds_on_a_gpu"]
    if on_a_gpu is not None:
        words += f", {duration_in_words(on_a_gpu)} on a GPU"
    return f"{words}, {estimate['memory_bytes'] / 1e9:.1f} GB"


def duration_in_words(seconds: float) -> str:
    """A duration to two digits, in the unit that fits: 40 s, 12 min, 3.5 h, 12 days."""
    return " ".join(duration_in_two(seconds))


def duration_in_two(seconds: float) -> tuple[str, str]:
    """A duration as number and unit, which another language writes in its own way."""
    for unit, length, most in (("s", 1.0, 120.0), ("min", 60.0, 120.0), ("h", 3_600.0, 48.0)):
        if seconds < most * length:
            return _two_digits(seconds / length), unit
    return _two_digits(seconds / 86_400.0), "days"


def _two_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 10.0 else f"{value:.2g}"


def run_in_words(run: Mapping[str, Any], *, digits: int) -> str:
    """How often, and with which original parameters."""
    numbers = [
        f"{name} {run[key]:.{digits}g}" for key, name in _PARAMETERS.items() if isinstance(run.get(key), int | float)
    ]
    parts = [run["base"]] if "base" in run else run.get("parts", run.get("lists", []))
    lists = ["[" + "; ".join(run_in_words(each, digits=digits) for each in part) + "]" for part in parts]
    return f"{run['count']} × " + ", ".join([*numbers, *lists])
