"""Knobs that orders of trained generators share: clip norms, clip groups, where networks begin, their sizes, optimisers."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, ValidationInfo, field_validator, model_validator

from service.base.messages import Message
from service.methods.knobs import (
    Channels,
    ClipNorm,
    Knobs,
    LearningRate,
    PrecisionShare,
    ShareOrNothing,
    Widths,
)

MOST_WEIGHT_BOUND = 1e3
WeightBound = Annotated[
    float | None,
    Field(
        gt=0.0,
        le=MOST_WEIGHT_BOUND,
        description="After every step each number of the critic is put back between minus this and this.",
    ),
]


class AdaptiveThresholds(Knobs):
    """Clip norms from noisy histograms of per-tensor gradient norms on a fixed geometric grid (ACTS, corrected)."""

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
        float, Field(ge=0.0, lt=1.0, description="Exponential average of noisy histograms (post-processing).")
    ] = 0.9
    initial_clip_norm: Annotated[float, Field(gt=0.0, le=1e6, description="Whole-gradient clip norm at step 0.")] = 1.0

    @model_validator(mode="after")
    def _ordered(self) -> AdaptiveThresholds:
        if self.smallest >= self.largest:
            raise ValueError(Message("thresholds.smallest must be below thresholds.largest"))
        return self


class FixedThresholds(Knobs):
    """One public clip norm for the whole gradient, shared evenly by the tensors."""

    kind: Literal["fixed"] = "fixed"
    clip_norm: Annotated[ClipNorm, Field(description="L2 clip norm of one unit's whole gradient.")] = 1.0


class DbscanClusters(Knobs):
    """Weight clustering (WC): DBSCAN over log-thresholds groups the tensors that are clipped together."""

    kind: Literal["dbscan"] = "dbscan"
    eps: Annotated[float, Field(gt=0.0, le=100.0, description="DBSCAN radius, in natural log of the threshold.")] = 0.5
    min_samples: Annotated[int, Field(ge=1, le=100, description="DBSCAN core size.")] = 1


class OneGroup(Knobs):
    """Flat clipping: all tensors in one group."""

    kind: Literal["none"] = "none"


class TablesFirst(Knobs):
    """Noisy one- and two-way tables are measured first, as by `marginals`; both networks begin near them, for free."""

    kind: Literal["tables"] = "tables"
    precision_share: Annotated[
        PrecisionShare, Field(description="Part of the release's Gaussian precision spent on the tables.")
    ] = 0.8
    pairs: Annotated[
        Literal["auto", "all", "chosen", "none"],
        Field(description="Which pairs of columns are measured, as in `marginals`."),
    ] = "auto"
    tree_precision_share: Annotated[
        ShareOrNothing | None,
        Field(
            ge=0.0,
            lt=0.5,
            description="Part of what the tables cost, spent as in `marginals`, but on values within equal cells alone.",
        ),
    ] = None
    generator_steps: Annotated[
        int, Field(ge=0, le=100_000, description="Free steps that fit the generator to the tables.")
    ] = 800
    generator_learning_rate: Annotated[
        LearningRate, Field(description="Learning rate of Adam in these steps; it falls to zero.")
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
        PrecisionShare, Field(description="Part of the release's Gaussian precision spent on the mixture.")
    ] = 0.5
    cells: Annotated[
        int | None, Field(ge=1, le=32, description="As of `method: mixture`. Default: by n and by what is spent.")
    ] = None
    hidden: Annotated[Widths, Field(description="Widths of the perceptron that learns to correct its samples.")] = (
        256,
    )
    upright: Annotated[
        bool | None,
        Field(
            description="Whether the mixture is of deskewed images, as of `method: mixture`; null: a first measurement decides."
        ),
    ] = False
    generator: Annotated[
        Literal["corrected", "trained"],
        Field(
            description="corrected: the mixture itself, followed by a perceptron; trained: the networks of `image_networks`, both of them "
            "first trained on its free samples."
        ),
    ] = "corrected"
    free_steps: Annotated[
        int,
        Field(ge=1, le=100_000, description="Critic steps on free samples; used with `generator: trained`."),
    ] = 2_000


class Augmentation(Knobs):
    """Images: a unit's gradient is the mean over copies of its images, each shifted by itself, and is clipped as one (De et al. 2022)."""

    copies: Annotated[
        Literal[2, 4, 8, 16, 32],
        Field(description="Copies of every image that is drawn; work grows by as much, the price does not."),
    ] = 4
    shift: Annotated[
        int, Field(ge=0, le=8, description="Pixels that a copy is shifted by, at most, down and across.")
    ] = 1


class FromNothing(Knobs):
    """Both networks begin at random."""

    kind: Literal["none"] = "none"


class PublicStartOrder(Knobs):
    """Of orders that may begin from a dataset that is declared public."""

    public_dataset: Annotated[
        UUID | None,
        Field(
            description="Another dataset of the tenant (its id), declared public at its upload: of the same columns, or of images of the same "
            "size and as many classes. Both networks are trained on it first, without a charge; what is published may repeat its rows."
        ),
    ] = None
    public_steps: Annotated[
        int,
        Field(
            ge=1,
            le=100_000,
            description="Critic steps on the public dataset, before the private ones; used with public_dataset.",
        ),
    ] = 1_000
    public_mask_share: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=1.0,
            description="Lottery ticket: after the public steps both networks go back to their first weights. The private steps update "
            "this part of each tensor of the critic alone, the coordinates that became largest.",
        ),
    ] = None
    public_mask_rest: Annotated[
        Literal["first_weights", "zero"],
        Field(
            description="What the coordinates outside the mask stay at; used with public_mask_share. zero: pruned, as lottery tickets are."
        ),
    ] = "first_weights"

    @field_validator("public_mask_share")
    @classmethod
    def _of_public_rows(cls, share: float | None, info: ValidationInfo) -> float | None:
        if share is not None and info.data.get("public_dataset") is None:
            raise ValueError(Message("a mask is found on public rows: name a public_dataset, too"))
        return share

    @property
    def mask_share(self) -> float | None:
        return self.public_mask_share

    @property
    def prunes(self) -> bool:
        return self.public_mask_rest == "zero"

    @property
    def free_public_steps(self) -> int:
        return 0 if self.public_dataset is None else self.public_steps


def public_dataset_of(order: PublicStartOrder) -> UUID | None:
    """What such an order reads besides its own dataset."""
    return order.public_dataset


class Networks(Knobs):
    """Sizes of the two multi-layer perceptrons."""

    noise_dimension: Annotated[int, Field(ge=1, le=1_024, description="Length of the generator's input noise z.")] = 32
    generator_hidden: Annotated[Widths, Field(description="Widths of the generator's hidden layers.")] = (128, 128)
    critic_hidden: Annotated[Widths, Field(description="Widths of the critic's hidden layers.")] = (128, 128)
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
        int, Field(ge=2, le=256, description="Bins of the public grid of a numeric field that declares none.")
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
    generator_hidden: Annotated[Widths, Field(description="Widths of a perceptron generator's layers.")] = (128, 256)
    critic_hidden: Annotated[Widths, Field(description="Widths of a perceptron critic's layers.")] = (128, 128)
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
    """Of both networks; the generator's weights are averaged (post-processing)."""

    kind: Annotated[
        Literal["adam", "rmsprop", "sgd"],
        Field(description="rmsprop has beta2 alone, sgd neither beta; gradients are clipped and noisy before either."),
    ] = "adam"
    critic_learning_rate: LearningRate = 3e-3
    generator_learning_rate: LearningRate = 5e-4
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    beta2: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.9
    moving_average_decay: Annotated[float, Field(ge=0.0, lt=1.0, description="Of the generator's weights.")] = 0.995
