"""Knobs that orders of trained generators share: clip norms, clip groups, where networks begin, their sizes, optimisers."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from service.methods.knobs import SMALLEST_SHARE, Channels, Knobs, ShareOrNothing, Width


class AdaptiveThresholds(Knobs):
    """Clip norms from noised histograms of per-tensor gradient norms on a fixed geometric grid (ACTS, corrected)."""

    kind: Literal["adaptive"] = "adaptive"
    every_steps: Annotated[int, Field(ge=1, le=10_000, description="A histogram every this many critic steps.")] = 1
    smallest: Annotated[float, Field(gt=0.0, le=1e3, description="Lower edge of the grid of gradient norms.")] = 1e-3
    largest: Annotated[float, Field(gt=0.0, le=1e6, description="Upper edge of the grid of gradient norms.")] = 1e2
    bins: Annotated[int, Field(ge=2, le=1_000, description="Geometric bins between the two edges.")] = 40
    rule: Annotated[
        Literal["mode", "quantile"], Field(description="mode: upper edge of the fullest bin (the paper); quantile.")
    ] = "mode"
    quantile: Annotated[float, Field(gt=0.0, lt=1.0, description="Used by rule quantile.")] = 0.5
    noise_ratio: Annotated[
        float, Field(gt=0.0, le=1e3, description="Histogram noise multiplier divided by the gradient's.")
    ] = 8.0
    average_decay: Annotated[
        float, Field(ge=0.0, lt=1.0, description="Exponential average of noised histograms (post-processing).")
    ] = 0.9
    initial_clip_norm: Annotated[float, Field(gt=0.0, le=1e6, description="Whole-gradient clip norm at step 0.")] = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> AdaptiveThresholds:
        if self.smallest >= self.largest:
            raise ValueError("thresholds.smallest must be below thresholds.largest")
        return self


class FixedThresholds(Knobs):
    """One public clip norm for the whole gradient, shared evenly by the tensors."""

    kind: Literal["fixed"] = "fixed"
    clip_norm: Annotated[float, Field(gt=0.0, le=1e6, description="L2 clip norm of one unit's whole gradient.")] = 1.0


class DbscanClusters(Knobs):
    """Weight clustering (WC): DBSCAN over log-thresholds groups the tensors that are clipped together."""

    kind: Literal["dbscan"] = "dbscan"
    eps: Annotated[float, Field(gt=0.0, le=100.0, description="DBSCAN radius, in natural log of the threshold.")] = 0.5
    min_samples: Annotated[int, Field(ge=1, le=100, description="DBSCAN core size.")] = 1


class OneGroup(Knobs):
    """Flat clipping: all tensors in one group."""

    kind: Literal["none"] = "none"


class TablesFirst(Knobs):
    """Noised one- and two-way tables are bought first, as by `marginals`; both networks begin near them, for free."""

    kind: Literal["tables"] = "tables"
    precision_share: Annotated[
        float,
        Field(ge=SMALLEST_SHARE, lt=1.0, description="Part of the release's Gaussian precision spent on the tables."),
    ] = 0.8
    pairs: Annotated[
        Literal["auto", "all", "chosen", "none"],
        Field(description="Which pairs of columns are measured, as in `marginals`."),
    ] = "auto"
    values_precision_share: Annotated[
        ShareOrNothing | None,
        Field(ge=0.0, lt=0.25, description="Part of what the tables cost, spent as in `marginals`."),
    ] = None
    generator_steps: Annotated[
        int, Field(ge=0, le=100_000, description="Free steps that fit the generator to the tables.")
    ] = 800
    generator_learning_rate: Annotated[
        float, Field(gt=0.0, le=1.0, description="Adam's in these steps, falling to zero.")
    ] = 1e-2
    critic_steps: Annotated[
        int,
        Field(
            ge=0, le=100_000, description="Free steps of the critic, on rows drawn from a mixture fitted to the tables."
        ),
    ] = 300
    hold: Annotated[
        float,
        Field(ge=0.0, le=1e3, description="How hard later generator steps hold on to the tables; 0: not at all."),
    ] = 20.0


class MixtureFirst(Knobs):
    """Images: a mixture is measured first, as by `mixture`; the generator begins with its samples, for free."""

    kind: Literal["mixture"] = "mixture"
    precision_share: Annotated[
        float,
        Field(ge=SMALLEST_SHARE, lt=1.0, description="Part of the release's Gaussian precision spent on the mixture."),
    ] = 0.5
    cells: Annotated[
        int | None, Field(ge=1, le=32, description="As of `method: mixture`. Default: by n and by what is spent.")
    ] = None
    hidden: Annotated[
        tuple[Width, ...],
        Field(min_length=1, max_length=8, description="Widths of the perceptron that learns to correct its samples."),
    ] = (256,)


class FromNothing(Knobs):
    """Both networks begin at random."""

    kind: Literal["none"] = "none"


class Networks(Knobs):
    """Sizes of the two multi-layer perceptrons."""

    noise_dimension: Annotated[int, Field(ge=1, le=1_024, description="Length of the generator's input noise z.")] = 32
    generator_hidden: Annotated[
        tuple[Width, ...], Field(min_length=1, max_length=8, description="Widths of the generator's hidden layers.")
    ] = (128, 128)
    critic_hidden: Annotated[
        tuple[Width, ...], Field(min_length=1, max_length=8, description="Widths of the critic's hidden layers.")
    ] = (128, 128)
    softmax_temperature: Annotated[float, Field(gt=0.0, le=10.0, description="Gumbel-softmax temperature τ.")] = 1.0
    pair_products: Annotated[
        int,
        Field(
            ge=0,
            le=4_096,
            description="The critic also sees this many fixed random sums of products of two cells of a record.",
        ),
    ] = 0
    numeric_bins: Annotated[
        int, Field(ge=2, le=256, description="Cells of the public grid of a numeric field that declares none.")
    ] = 32


class ImageNetworks(Knobs):
    """Sizes of the two networks of images. A convolution halves or doubles the sides; no layer mixes records."""

    layers: Annotated[
        Literal["convolutions", "perceptrons"],
        Field(
            description="What both networks are made of. Small images get perceptrons unless this is named; on a GPU and at a large ε (10, not 1) convolutions are better."
        ),
    ] = "convolutions"
    shrink: Annotated[
        int,
        Field(
            ge=1,
            le=4,
            description="Both networks see and make images of 1/shrink of the sides; what is made is enlarged.",
        ),
    ] = 1
    noise_dimension: Annotated[int, Field(ge=1, le=1_024, description="Length of the generator's input noise z.")] = 64
    generator_channels: Annotated[
        tuple[Channels, ...],
        Field(
            min_length=1, max_length=6, description="Channels before each doubling of the sides, smallest sides first."
        ),
    ] = (64, 32)
    critic_channels: Annotated[
        tuple[Channels, ...],
        Field(min_length=1, max_length=6, description="Channels after each halving of the sides, largest sides first."),
    ] = (32, 64)
    generator_hidden: Annotated[
        tuple[Width, ...], Field(min_length=1, max_length=8, description="Widths of a perceptron generator's layers.")
    ] = (128, 256)
    critic_hidden: Annotated[
        tuple[Width, ...], Field(min_length=1, max_length=8, description="Widths of a perceptron critic's layers.")
    ] = (128, 128)
    label_scale: Annotated[
        float, Field(gt=0.0, le=100.0, description="A perceptron critic sees a class as this number in its place.")
    ] = 4.0


class AdaptiveCriticSteps(Knobs):
    """Ever more critic steps per generator step as the critic falls behind (Bie, Kamath, Zhang 2023). Reads no data.

    The number climbs 1, 2, 5, 10, 20, 50, 100, 200 whenever the moving average of the critic's accuracy on generated
    records, the part of them that it scores below zero, falls under `threshold`.
    """

    threshold: Annotated[float, Field(gt=0.0, lt=1.0, description="Least average accuracy on generated records.")] = 0.6
    average_decay: Annotated[float, Field(ge=0.0, lt=1.0, description="Of the moving average of the accuracy.")] = 0.99


class Optimizer(Knobs):
    """Adam for both networks; the generator's weights are averaged (post-processing)."""

    critic_learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 3e-3
    generator_learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 5e-4
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    beta2: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.9
    moving_average_decay: Annotated[float, Field(ge=0.0, lt=1.0, description="Of the generator's weights.")] = 0.995
