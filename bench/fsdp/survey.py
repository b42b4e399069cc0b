"""Table 5 of the survey (arXiv 2309.16398): accuracy of private classifiers as their papers claim it, beside ours at the same ε.

Theirs have networks, inputs, δ and accounting of their own. Ours have one small perceptron, one list of steps at δ = 1e-5, and the
knob of the private step that stands for the paper's idea.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Claim:
    """A row of the survey's table; accuracy in per cent."""

    method: str
    network: str
    accuracy: float
    epsilon: float
    knobs: dict[str, Any]
    """Of the private step here."""
    words: str


FREEZING = {"sparse": {"chosen_by": "coins_of_the_run"}}
CLAIMS = (
    Claim("DP-SGD, Abadi et al.", "PCA and one hidden layer", 90.0, 0.5, {}, "all tensors clipped together"),
    Claim("DP-SGD, Abadi et al.", "PCA and one hidden layer", 95.0, 2.0, {}, "the same"),
    Claim("DP-SGD, Abadi et al.", "PCA and one hidden layer", 97.0, 8.0, {}, "the same"),
    Claim("tanh, Papernot et al.", "two convolutions", 98.1, 2.93, {}, "the same; tanh is in every row"),
    Claim("DP-SSGD", "two convolutions", 97.02, 2.0, FREEZING, "half of the coordinates, by public coins, once"),
    Claim("gradient compression", "two convolutions", 98.52, 1.71, {"memory": {}}, "a tenth is applied, the rest kept"),
    Claim(
        "adaptive noise, Xiang et al.",
        "two convolutions",
        94.69,
        1.0,
        {"importance": {}},
        "by relevance of public rows",
    ),
    Claim("AdaDP, δ = 1e-4", "PCA and one hidden layer", 96.0, 1.4, {"scale": {}}, "scale from released gradients"),
    Claim("ADPPL", "two convolutions", 94.0, 1.0, {"importance": {}}, "by relevance of public rows"),
)
WITHOUT = "DPLTH (Fashion-MNIST), the dynamic budget and noise by LRP (breast cancers of Wisconsin) are in the section 300-rest: `python -m bench.fsdp.rest`."
