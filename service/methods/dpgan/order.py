"""`method: dpgan`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.idpgan.knobs import FixedThresholds, Optimizer, PublicStartOrder, WeightBound
from service.methods.idpgan.order import PlainGanOrder
from service.methods.knobs import ClipNorm, Penalty

OPTIMIZERS = {
    "dpgan": Optimizer(kind="rmsprop", critic_learning_rate=1e-3, generator_learning_rate=5e-4, beta2=0.99),
    "ppgan": Optimizer(kind="sgd", critic_learning_rate=0.1, generator_learning_rate=0.1),
}
"""Kinds as published; learning rates for gradients that are clipped and noisy, not tuned."""


class DpganOrder(PublicStartOrder, PlainGanOrder):
    """A comparison: a Wasserstein critic with bounded weights and no penalty, constant noise (DPGAN, Xie et al. 2018)."""

    method: Literal["dpgan"]
    published_as: Annotated[
        Literal["dpgan", "ppgan"] | None,
        Field(
            description="The optimiser of a paper, but for what the order names of it: RMSProp (DPGAN) or gradient descent (PPGAN, Liu et al. 2019). "
            "Default: Adam."
        ),
    ] = None
    clip_norm: Annotated[ClipNorm, Field(description="L2 clip norm of one unit's whole gradient.")] = 1.0
    gradient_penalty: Annotated[Penalty, Field(description="λ of a WGAN-GP penalty; DPGAN has none.")] = 0.0
    critic_weight_bound: WeightBound = 0.05

    @property
    def thresholds(self) -> FixedThresholds:
        return FixedThresholds(clip_norm=self.clip_norm)
