"""`method: dpgm`: its knobs, and those of everything that trains an autoencoder for each part of the records."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.idpgan.order import MAX_STEPS
from service.methods.knobs import DEFAULT_NUMERIC_BINS, ClipNorm, Knobs, LearningRate, LesserShare, Order, SamplingRate
from service.privacy.calibration import MOST_RELEASES

MOST_ROUNDS = MOST_RELEASES - 2
"""Of k-means or of EM, each a release of whole numbers: one more is the counts of all parts, and one is kept for every order. A report takes another."""


class Autoencoder(Knobs):
    """The network of one part of the records: one hidden layer on either side of a few numbers."""

    hidden_units: Annotated[int, Field(ge=1, le=1_024, description="Of the hidden layer on either side.")] = 64
    latent_numbers: Annotated[
        int, Field(ge=1, le=64, description="Numbers that a record is encoded as, and that a new one begins with.")
    ] = 8
    numeric_bins: Annotated[
        int, Field(ge=2, le=256, description="Bins of a numeric field that declares none; tables only.")
    ] = DEFAULT_NUMERIC_BINS


class AutoencoderOrder(Order):
    """What every order has that trains autoencoders by joint private steps."""

    steps: Annotated[int, Field(ge=1, le=MAX_STEPS, description="Private steps; each serves all autoencoders.")] = 1_000
    sampling_probability: SamplingRate = None
    clip_norm: Annotated[ClipNorm, Field(description="L2 clip norm of one unit's gradient, over all autoencoders.")] = (
        1.0
    )
    learning_rate: Annotated[LearningRate, Field(description="Of Adam.")] = 3e-3
    latent_weight: Annotated[
        float,
        Field(ge=0.0, le=1e3, description="How strongly latent numbers are pulled to a standard normal distribution."),
    ] = 0.3
    count_precision_share: Annotated[
        LesserShare,
        Field(description="Part of the release's Gaussian precision that counts the records of every part."),
    ] = 0.02
    autoencoder: Annotated[Autoencoder, Field(description="Sizes of the networks.")] = Autoencoder()

    @property
    def numeric_bins(self) -> int:
        """Bins of a numeric field that declares none."""
        return self.autoencoder.numeric_bins


class DpgmOrder(AutoencoderOrder):
    """A comparison: clusters by private k-means, and a variational autoencoder for each (DPGM, Acs et al. 2018)."""

    method: Literal["dpgm"]
    clusters: Annotated[int, Field(ge=1, le=64, description="Clusters of the records, with an autoencoder each.")] = 4
    cluster_rounds: Annotated[
        int,
        Field(
            ge=1,
            le=32,
            description=f"Rounds of private k-means, at most {MOST_ROUNDS}, one less with a `report`; none with one cluster.",
        ),
    ] = 5
    cluster_precision_share: Annotated[
        LesserShare,
        Field(description="Part of the release's Gaussian precision that all rounds of k-means have together."),
    ] = 0.1
    features: Annotated[
        int, Field(ge=2, le=1_024, description="Random Fourier features that records are clustered in.")
    ] = 64
    kernel_width: Annotated[
        float,
        Field(
            ge=1e-3,
            le=1e3,
            description="Of the Gaussian kernel that they stand for, in units of √columns, or of 0.3·√pixels.",
        ),
    ] = 1.0
    feature_norm: Annotated[
        float, Field(gt=0.0, le=2.0, description="Features less their cluster's centre are clipped to this norm.")
    ] = 1.0

    @property
    def rounds(self) -> int:
        """Of k-means, that are bought."""
        return self.cluster_rounds if self.clusters > 1 else 0
