"""`method: dpsyn`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.dpgm.order import MOST_ROUNDS, AutoencoderOrder
from service.methods.knobs import SMALLEST_SHARE, LesserShare


class DpsynOrder(AutoencoderOrder):
    """A comparison: an autoencoder for each class, and a mixture of Gaussians on its codes by private EM (DP-SYN, Abay et al. 2018)."""

    method: Literal["dpsyn"]
    gaussians: Annotated[int, Field(ge=1, le=32, description="Gaussians on the codes of each class.")] = 3
    em_rounds: Annotated[
        int,
        Field(
            ge=1,
            le=MOST_ROUNDS,
            description="Rounds of EM, one less at most with a `report`. The first finds the mean and covariance that they begin from.",
        ),
    ] = 8
    moments_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.9,
            description="Part of the release's Gaussian precision that all rounds of EM have together.",
        ),
    ] = 0.3
    latent_norm: Annotated[
        float,
        Field(gt=0.0, le=10.0, description="Codes are clipped to this norm, times √latent_numbers."),
    ] = 1.5
    responsibility_share: Annotated[
        LesserShare, Field(description="Part of a round's precision for the sums of responsibilities.")
    ] = 0.1
    mean_share: Annotated[LesserShare, Field(description="Part of a round's precision for the sums of codes.")] = 0.3
