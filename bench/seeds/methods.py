"""The generators as small orders of the service: one size for all, nothing tuned, so that the whole bench is about an hour of a processor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

GANS: dict[str, dict[str, Any]] = {
    "idpgan": {"method": "idpgan"},
    "dpgan": {"method": "dpgan"},
    "ppgan": {"method": "dpgan", "published_as": "ppgan"},
    "ganobfuscator": {"method": "ganobfuscator"},
}
AUTOENCODERS: dict[str, dict[str, Any]] = {
    "dpgm": {"method": "dpgm"},
    "dpgm, 1 cluster": {"method": "dpgm", "clusters": 1},
    "dpsyn": {"method": "dpsyn"},
}
TABLES: dict[str, dict[str, Any]] = {
    "marginals": {"method": "marginals"},
    **GANS,
    **AUTOENCODERS,
    "rdpcgan": {"method": "rdpcgan"},
    "pategan": {"method": "pategan"},
    "pategan, votes as published": {"method": "pategan", "vote": "real"},
}
IMAGES: dict[str, dict[str, Any]] = {
    "mixture": {"method": "mixture"},
    **GANS,
    "dpacgan": {"method": "dpacgan"},
    **AUTOENCODERS,
    "gswgan": {"method": "gswgan"},
}
METHODS = {"adult": TABLES, "mnist": IMAGES}
REFERENCES = {"adult": ("real", "independent"), "mnist": ("real",)}
"""What no order makes: the real rows themselves, and real columns drawn one by one, without noise."""


@dataclass(frozen=True)
class Sizes:
    """What is the same for all methods of one data set."""

    train: int
    """Real rows or images, the first ones after a shuffle."""
    steps: int
    """Private steps of whatever is trained."""
    batch: int
    """Expected rows of a step."""
    made: int
    """Synthetic rows or images that scores are of."""


SIZES = {"adult": Sizes(10_000, 300, 256, 10_000), "mnist": Sizes(60_000, 600, 256, 10_000)}
SMALLEST = {"adult": Sizes(300, 4, 16, 300), "mnist": Sizes(400, 4, 16, 200)}
"""Of `--quick` and of the test."""


def order_of(data: str, name: str, sizes: Sizes, *, smallest: bool = False) -> dict[str, Any]:
    """Knobs of a method, ε apart."""
    knobs = dict(METHODS[data][name])
    method, q = knobs["method"], sizes.batch / sizes.train
    if method in {"marginals", "mixture"}:
        return knobs | ({"steps": 5, "components": 64} if smallest and method == "marginals" else {})
    if method == "pategan":
        return knobs | PATEGAN | ({"steps": 2, "teachers": 10} if smallest else {})
    if method == "gswgan":
        return knobs | (GSWGAN_SMALLEST if smallest else GSWGAN)
    knobs |= {"steps": sizes.steps, "sampling_probability": q}
    if smallest and name == "idpgan":
        knobs["warm_start"] = {"kind": "none"}
    if method == "rdpcgan":
        knobs["autoencoder"] = {"steps": sizes.steps}
    if data == "mnist" and name in {*GANS, "dpacgan"}:
        knobs["image_networks"] = {"layers": "perceptrons", "critic_hidden": [64, 64]}
        knobs["critic_steps_per_generator_step"] = 2
    return knobs


PATEGAN = {"steps": 150, "teachers": 400}
GSWGAN = {"steps": 1_500, "discriminators": 200, "start_steps": 40, "discriminator_steps": 2}
GSWGAN_SMALLEST = {"steps": 3, "discriminators": 4, "start_steps": 2}
