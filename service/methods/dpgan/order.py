"""`method: dpgan`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.idpgan.knobs import FixedThresholds
from service.methods.idpgan.order import PlainGanOrder


class DpganOrder(PlainGanOrder):
    """A comparison: a Wasserstein critic with bounded weights and no penalty, constant noise (DPGAN, Xie et al. 2018)."""

    method: Literal["dpgan"]
    clip_norm: Annotated[float, Field(gt=0.0, le=1e6, description="L2 clip norm of one unit's whole gradient.")] = 1.0
    gradient_penalty: Annotated[float, Field(ge=0.0, le=1e4, description="λ of a WGAN-GP penalty; DPGAN has none.")] = (
        0.0
    )
    critic_weight_bound: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=1e3,
            description="After every step each number of the critic is put back between minus this and this.",
        ),
    ] = 0.05

    @property
    def thresholds(self) -> FixedThresholds:
        return FixedThresholds(clip_norm=self.clip_norm)
