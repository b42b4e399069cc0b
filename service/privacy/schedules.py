"""Dynamic noise decay (DPBA, section 3.1 of the IDPGAN paper, equations 8 to 10): the noise multiplier as a function of the step alone.

A schedule gives multipliers *relative to σ_0*; calibration then finds σ_0. An epoch is 1/sampling_probability steps.
The schedule is held constant within a span of epochs so that a release has at most `MAX_LEVELS` different noise levels:
any function of the step is as private as any other, and fewer levels make the price cheap to compute.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

MAX_LEVELS = 32


class _Decay(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    warm_up_epochs: Annotated[int, Field(ge=0, le=10**6, description="Epochs at σ_0 before the decay begins.")] = 0


class ConstantNoise(_Decay):
    """The same noise at every step."""

    kind: Literal["constant"] = "constant"

    def level(self, epoch: float) -> float:  # noqa: ARG002 - same signature as the others
        return 1.0


class _FlooredDecay(_Decay):
    floor: Annotated[
        float, Field(ge=1e-3, le=1.0, description="The noise never falls below this part of σ_0, however long the run.")
    ] = 0.1


class ExponentialDecay(_FlooredDecay):
    """σ_0·exp(-rate·epoch), not below floor·σ_0."""

    kind: Literal["exponential"] = "exponential"
    rate: Annotated[float, Field(ge=0.0, le=100.0, description="k in σ_0·exp(-k·epoch).")] = 0.02

    def level(self, epoch: float) -> float:
        return max(self.floor, math.exp(-self.rate * epoch))


class PeriodicDecay(_FlooredDecay):
    """σ_0·factor^⌊epoch/period⌋, not below floor·σ_0."""

    kind: Literal["periodic"] = "periodic"
    factor: Annotated[float, Field(gt=0.0, le=1.0, description="k in σ_0·k^⌊epoch/period⌋.")] = 0.9
    period_epochs: Annotated[int, Field(ge=1, le=10**6, description="Epochs between two drops.")] = 10

    def level(self, epoch: float) -> float:
        return max(self.floor, math.pow(self.factor, math.floor(epoch / self.period_epochs)))


class PolynomialDecay(_Decay):
    """(σ_0 - σ_end)·(1 - epoch/period)^power + σ_end; σ_end after the period."""

    kind: Literal["polynomial"] = "polynomial"
    end_ratio: Annotated[float, Field(ge=1e-3, le=1.0, description="σ_end / σ_0.")] = 0.5
    power: Annotated[float, Field(gt=0.0, le=100.0, description="Exponent of the polynomial.")] = 1.0
    period_epochs: Annotated[int | None, Field(ge=1, le=10**6, description="Default: the whole run.")] = None

    def level(self, epoch: float, period: float | None = None) -> float:
        period = float(self.period_epochs or period or 1)
        left = max(0.0, 1.0 - epoch / period)
        return (1.0 - self.end_ratio) * math.pow(left, self.power) + self.end_ratio


NoiseDecay = Annotated[ConstantNoise | ExponentialDecay | PeriodicDecay | PolynomialDecay, Field(discriminator="kind")]


def noise_levels(decay: NoiseDecay, *, steps: int, sampling_probability: float) -> tuple[tuple[float, int], ...]:
    """Piecewise-constant schedule: (level relative to σ_0, number of steps), in order; counts sum to `steps`."""
    epochs = max(1, math.ceil(steps * sampling_probability))
    spans = 1 if isinstance(decay, ConstantNoise) else min(epochs, MAX_LEVELS, steps)
    pieces: list[tuple[float, int]] = []
    for span in range(spans):
        first, end = span * steps // spans, (span + 1) * steps // spans
        epoch = max(0.0, math.floor(first * sampling_probability) - decay.warm_up_epochs)
        level = decay.level(epoch, epochs) if isinstance(decay, PolynomialDecay) else decay.level(epoch)
        if pieces and pieces[-1][0] == level:
            pieces[-1] = (level, pieces[-1][1] + end - first)
        else:
            pieces.append((level, end - first))
    return tuple(pieces)
