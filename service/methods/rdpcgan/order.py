"""`method: rdpcgan`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.idpgan.knobs import FixedThresholds, WeightBound
from service.methods.idpgan.order import MAX_STEPS, PlainGanOrder
from service.methods.knobs import ClipNorm, Knobs, LearningRate, PrecisionShare, Width, Widths


class AutoencoderKnobs(Knobs):
    """Encoder and decoder, which learn first; the generator makes codes, which the decoder turns into rows."""

    steps: Annotated[int, Field(ge=1, le=MAX_STEPS, description="Steps of the autoencoder, all of them private.")] = 500
    precision_share: Annotated[
        PrecisionShare,
        Field(description="Part of the Gaussian precision of all steps, Σ 1/σ², that is spent on the autoencoder's."),
    ] = 0.5
    layers: Annotated[
        Literal["convolutions", "perceptrons"],
        Field(description="What both are made of: 1-D convolutions along a row, as in the paper, or perceptrons."),
    ] = "perceptrons"
    latent: Annotated[Width, Field(description="Length of a code.")] = 32
    hidden: Annotated[Widths, Field(description="Widths of the encoder's perceptron; the decoder's, reversed.")] = (
        128,
    )
    clip_norm: Annotated[
        ClipNorm, Field(description="L2 clip norm of one unit's gradient, of encoder and decoder together.")
    ] = 1.0
    learning_rate: Annotated[LearningRate, Field(description="Adam's.")] = 3e-3


class RdpcganOrder(PlainGanOrder):
    """A comparison, for tables: an autoencoder is trained by private steps, then a WGAN on its codes (RDP-CGAN, Torfi et al. 2020)."""

    method: Literal["rdpcgan"]
    autoencoder: Annotated[AutoencoderKnobs, Field(description="What comes before the critic's steps.")] = (
        AutoencoderKnobs()
    )
    clip_norm: Annotated[ClipNorm, Field(description="L2 clip norm of one unit's gradient of the critic.")] = 1.0
    critic_weight_bound: WeightBound = 0.1

    @property
    def thresholds(self) -> FixedThresholds:
        return FixedThresholds(clip_norm=self.clip_norm)

    @property
    def progress_steps(self) -> int:
        return self.autoencoder.steps + self.steps
