"""Orders: one class per method, told apart by `method`. Every knob has a default and a sentence; none reads a row."""

from __future__ import annotations

import json
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from service.base.errors import InvalidOrder
from service.base.text import sentence_of
from service.privacy.schedules import ExponentialDecay, NoiseDecay

MAX_EPSILON = 1_000.0
DEFAULT_EXPECTED_BATCH = 512
NEAR_TABLES: dict[str, Any] = {"steps": 1_000, "critic_steps_per_generator_step": 8}
"""Of a run on a table that begins near bought tables, where the order names none (docs/results/idpgan-on-tables.md)."""
FROM_NOTHING: dict[str, Any] = {"critic_weight_bound": 0.1}
"""The same of a run on a table whose networks begin at random."""
MAX_DEFAULT_SAMPLING_PROBABILITY = 0.25
MAX_STEPS = 1_000_000
SMALLEST_SHARE = 1e-6
"""Of precision: what gets less says nothing, and its noise soon exceeds what counts can hold (`workers.mechanism.noise`)."""

COMPONENTS = 2_048
"""Of the mixture of each value of a condition, and of one that networks begin near."""


def _is_nothing_or_worth_it(share: float) -> float:
    if 0.0 < share < SMALLEST_SHARE:
        raise ValueError(f"give 0, or at least {SMALLEST_SHARE:g}")
    return share


_ShareOrNothing = Annotated[float, AfterValidator(_is_nothing_or_worth_it)]
Probability = Annotated[float, Field(gt=0.0, le=1.0)]
Width = Annotated[int, Field(ge=1, le=4_096)]
Channels = Annotated[int, Field(ge=1, le=512)]


class _Knobs(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AdaptiveThresholds(_Knobs):
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


class FixedThresholds(_Knobs):
    """One public clip norm for the whole gradient, shared evenly by the tensors."""

    kind: Literal["fixed"] = "fixed"
    clip_norm: Annotated[float, Field(gt=0.0, le=1e6, description="L2 clip norm of one unit's whole gradient.")] = 1.0


class DbscanClusters(_Knobs):
    """Weight clustering (WC): DBSCAN over log-thresholds groups the tensors that are clipped together."""

    kind: Literal["dbscan"] = "dbscan"
    eps: Annotated[float, Field(gt=0.0, le=100.0, description="DBSCAN radius, in natural log of the threshold.")] = 0.5
    min_samples: Annotated[int, Field(ge=1, le=100, description="DBSCAN core size.")] = 1


class OneGroup(_Knobs):
    """Flat clipping: all tensors in one group."""

    kind: Literal["none"] = "none"


class TablesFirst(_Knobs):
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
        _ShareOrNothing | None,
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


class MixtureFirst(_Knobs):
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


class FromNothing(_Knobs):
    """Both networks begin at random."""

    kind: Literal["none"] = "none"


class Networks(_Knobs):
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


class ImageNetworks(_Knobs):
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


class AdaptiveCriticSteps(_Knobs):
    """Ever more critic steps per generator step as the critic falls behind (Bie, Kamath, Zhang 2023). Reads no data.

    The number climbs 1, 2, 5, 10, 20, 50, 100, 200 whenever the moving average of the critic's accuracy on generated
    records, the part of them that it scores below zero, falls under `threshold`.
    """

    threshold: Annotated[float, Field(gt=0.0, lt=1.0, description="Least average accuracy on generated records.")] = 0.6
    average_decay: Annotated[float, Field(ge=0.0, lt=1.0, description="Of the moving average of the accuracy.")] = 0.99


class Optimizer(_Knobs):
    """Adam for both networks; the generator's weights are averaged (post-processing)."""

    critic_learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 3e-3
    generator_learning_rate: Annotated[float, Field(gt=0.0, le=1.0)] = 5e-4
    beta1: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    beta2: Annotated[float, Field(gt=0.0, lt=1.0)] = 0.9
    moving_average_decay: Annotated[float, Field(ge=0.0, lt=1.0, description="Of the generator's weights.")] = 0.995


class _Order(_Knobs):
    """What every order names, whatever its method."""

    epsilon: Annotated[
        float | None, Field(gt=0.0, le=MAX_EPSILON, description="ε of this release; or give `share`.")
    ] = None
    share: Annotated[
        Annotated[float, Field(gt=0.0, le=1.0)] | Literal["rest"] | None,
        Field(description="Share of the dataset's whole budget, or `rest`; instead of epsilon."),
    ] = None
    condition_on: Annotated[
        str | None,
        Field(
            max_length=200,
            description="A categorical field: rows are made for each of its values, and how frequent these are is measured as part of the release. Default: the schema's `target`, if it has at most 64, unless `purpose` is `tables`.",
        ),
    ] = None
    purpose: Annotated[
        Literal["classifiers", "tables"] | None,
        Field(
            description="What rows of a table are for. `classifiers`: all is counted within each value of a condition, which a classifier "
            "will predict; what a schema with a `target` gets. `tables`: no condition, so that the counts of all rows, and what any two columns say of each other, are nearer."
        ),
    ] = None
    device: Annotated[Literal["auto", "cpu", "cuda"], Field(description="auto: a GPU where the worker has one.")] = (
        "auto"
    )

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        if (self.epsilon is None) == (self.share is None):
            raise ValueError("give exactly one of epsilon and share")
        return self

    @model_validator(mode="after")
    def _one_purpose(self) -> Self:
        if self.purpose == "tables" and self.condition_on is not None:
            raise ValueError("purpose: rows for `tables` have no condition; leave out purpose or condition_on")
        return self


class _ChosenOrder(_Order):
    """An order of a method that `auto` may choose."""

    chosen_because: Annotated[
        str | None, Field(max_length=1_000, description="Filled in by `method: auto`; may not be ordered.")
    ] = None


class AutoOrder(_Order):
    """The default: the method that measured best on such tables, chosen from schema and n alone."""

    NUMERIC_BINS: ClassVar[int] = 32

    method: Literal["auto"] = "auto"


class MarginalsOrder(_ChosenOrder):
    """One measurement of one- and two-way tables, within each value of the condition unless said, and a mixture fitted to it."""

    method: Literal["marginals"]
    numeric_bins: Annotated[
        int, Field(ge=2, le=256, description="Cells of the public grid of a numeric field that declares none.")
    ] = 32
    pair_cells: Annotated[
        int,
        Field(
            ge=2,
            le=256,
            description="In two-way tables a column has at most this many cells: neighbouring ones are counted together. "
            "Fewer where the table is wide.",
        ),
    ] = 64
    numeric_cells: Annotated[
        Literal["counted", "declared"] | None,
        Field(
            description="Cells of a numeric field or date that declares neither `bins` nor `edges`: equal ones, or cut where "
            "one-way tables that are measured first say that rows are. Default: counted with `pairs: auto` where pairs are measured, "
            "unless noise leaves only chosen ones of all rows; else declared."
        ),
    ] = None
    pair_groups: Annotated[
        Literal["counted", "declared"] | None,
        Field(
            description="What two-way tables count: the cells as they are declared, or groups of them, in which rare cells are "
            "together, found from one-way tables that are measured first. Default: counted with `pairs: auto`, unless noise is "
            "small beside the declared cells and no range is open; else declared."
        ),
    ] = None
    grouping_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.5,
            description="Part of the Gaussian precision spent on one-way tables before all pairs, where their cells are grouped by them: "
            "half of it on those of all rows, or all of it where pairs are of all rows.",
        ),
    ] = 0.2
    pairs: Annotated[
        Literal["auto", "all", "few_or_all", "chosen", "none"],
        Field(
            description="Which pairs of columns are measured: all; few, if noised scores say that these explain nearly all others, "
            "and else all; those whose noised scores say that they depend on each other; or none, only columns, of all rows and "
            "within each value of the condition; auto: by the noise at this n."
        ),
    ] = "auto"
    pairs_within: Annotated[
        Literal["condition", "table"] | None,
        Field(
            description="Whether pairs of columns are measured within each value of the condition, as single columns always are, or "
            "in all rows together, where noise is smaller. Default: condition, but table for few pairs. `pairs: auto` takes table, too, where "
            "the condition has more than two values and noise within each would allow only chosen pairs, none, or coarse groups; and "
            "where no pairs can be chosen within the values, but some of all rows."
        ),
    ] = None
    selection_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.25,
            description="Part of the Gaussian precision spent on scores where pairs are chosen; as much again is spent on one-way tables "
            "before them, unless these are of all rows.",
        ),
    ] = 0.075
    few_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.5,
            description="Part of the Gaussian precision spent on scores with `pairs: few_or_all`.",
        ),
    ] = 0.01
    all_rows_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=0.5,
            description="Part of the Gaussian precision spent on one-way tables of all rows, beside those within each value of the "
            "condition, where no pairs are measured or pairs of all rows are chosen.",
        ),
    ] = 0.25
    values_precision_share: Annotated[
        _ShareOrNothing | None,
        Field(
            ge=0.0,
            lt=0.25,
            description="Part of the Gaussian precision spent on finding single values that many rows share, such as 4.99 or 40 hours, "
            "among those that open ranges may hold; 0: none, and values are drawn evenly within a cell. Default: by the noise at this n, "
            "from 0.005 to 0.04, or 0.",
        ),
    ] = None
    one_way_weight: Annotated[
        float | None,
        Field(
            ge=1e-3,
            le=1e3,
            description="Precision of one-way tables relative to two-way ones of their size. Default: 20 where pairs are chosen, or noise "
            "within the condition allows all of them in coarse groups only; 5 where cells are grouped by counts, or `pairs: auto` chooses pairs "
            "of all rows of more than seven columns besides the condition; else 1.",
        ),
    ] = None
    precision_exponent: Annotated[
        float, Field(ge=0.0, le=2.0, description="The precision of a table grows with its cells to this power.")
    ] = 2 / 3
    components: Annotated[
        int | None,
        Field(
            ge=2,
            le=8_192,
            description="Product distributions in the mixture of each value of the condition; a power of two; fewer where it has few rows. "
            "Default: 2,048, and 4,096 without a condition where all columns have at most 2,048 cells.",
        ),
    ] = None
    steps: Annotated[int, Field(ge=1, le=100_000, description="Fitting steps; they read no row and cost nothing.")] = (
        800
    )
    learning_rate: Annotated[float, Field(gt=0.0, le=10.0, description="Adam's, falling to zero.")] = 0.2

    @model_validator(mode="after")
    def _power_of_two(self) -> Self:
        if self.components is not None and self.components & (self.components - 1):
            raise ValueError("components must be a power of two")
        return self

    @property
    def counts_values(self) -> bool:
        """Whether single values of ranges are counted."""
        return bool(self.values_precision_share)

    @property
    def cuts_cells_by_counts(self) -> bool:
        """Whether cells of open ranges are found from one-way tables that are measured first."""
        return self.pairs != "none" and self.looks_at_single_columns_first and self.numeric_cells == "counted"

    @property
    def looks_at_single_columns_first(self) -> bool:
        """Whether one-way tables are measured before others: before it is known what else is, or of all rows before slices."""
        if self.pairs == "none":
            return self.condition_on is not None
        in_counted_cells = "counted" in {self.pair_groups, self.numeric_cells}
        return self.pairs in {"chosen", "few_or_all"} or (self.pairs == "all" and in_counted_cells)


class IdpganOrder(_ChosenOrder):
    """A conditional WGAN-GP with decaying noise, adaptive thresholds and clustered clipping (IDPGAN)."""

    method: Literal["idpgan"]
    steps: Annotated[
        int,
        Field(
            ge=1, le=MAX_STEPS, description="Critic steps, all of them private. With a warm start 1,000 if not ordered."
        ),
    ] = 3_000
    sampling_probability: Annotated[
        Probability | None,
        Field(description="Poisson rate q of every unit at every step; default 512/n, at most 0.25."),
    ] = None
    critic_steps_per_generator_step: Annotated[
        int,
        Field(
            ge=1,
            le=1_000,
            description="Generator steps read no row and cost nothing. If not ordered: 8 with a warm start from tables, "
            "2 with perceptrons of images.",
        ),
    ] = 5
    adaptive_critic_steps: Annotated[
        AdaptiveCriticSteps | None,
        Field(description="A rule instead of one number of critic steps per generator step."),
    ] = None
    warm_start: Annotated[
        Annotated[TablesFirst | MixtureFirst | FromNothing, Field(discriminator="kind")] | None,
        Field(
            description="Where the networks begin: of a table near `tables`, of images from a `mixture`. Default: `tables` "
            "where `marginals` could be ordered too, else `none`."
        ),
    ] = None
    noise_decay: Annotated[NoiseDecay, Field(description="DPBA: noise multiplier by epoch.")] = ExponentialDecay()
    thresholds: Annotated[
        AdaptiveThresholds | FixedThresholds, Field(discriminator="kind", description="ACTS: clip norms.")
    ] = AdaptiveThresholds()
    clusters: Annotated[DbscanClusters | OneGroup, Field(discriminator="kind", description="WC: clip groups.")] = (
        DbscanClusters()
    )
    allocation: Annotated[
        Literal["least_noise", "equal_share", "flat"], Field(description="How the noise is shared by the groups.")
    ] = "least_noise"
    critic_loss: Annotated[
        Literal["paired", "separate"],
        Field(description="paired: D(G(z)) inside the clipped loss; separate: outside, without noise."),
    ] = "paired"
    gradient_penalty: Annotated[float, Field(ge=0.0, le=1e4, description="λ of the WGAN-GP penalty.")] = 10.0
    gradient_penalty_at: Annotated[
        Literal["interpolates", "generated"],
        Field(description="Where ‖∇D‖ is pulled to 1: between real and generated records, or at generated ones only."),
    ] = "interpolates"
    critic_weight_bound: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=1e3,
            description="After every step each number of the critic is put back between minus this and this. If not "
            "ordered: 0.1 for tables from nothing, 0.05 or 0.1 by n and ε for perceptrons of images from nothing, else none.",
        ),
    ] = None
    label_precision_share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE,
            lt=1.0,
            description="Part of the release's Gaussian precision spent on label frequencies.",
        ),
    ] = 0.02
    networks: Annotated[Networks, Field(description="Sizes of both perceptrons; tables only.")] = Networks()
    image_networks: Annotated[
        ImageNetworks | None,
        Field(description="Kind and sizes of both networks; images only. Default: by the declared size."),
    ] = None
    optimizer: Annotated[Optimizer, Field(description="Adam for both networks.")] = Optimizer()

    cuts_cells_by_counts: ClassVar[bool] = False

    @property
    def numeric_bins(self) -> int:
        return self.networks.numeric_bins

    @property
    def counts_values(self) -> bool:
        """Whether single values of ranges are counted, with the tables that it begins with."""
        return self.tables_order is not None and self.tables_order.counts_values

    @property
    def mixture_first(self) -> MixtureFirst | None:
        """The mixture that images begin from; None where there is none."""
        return self.warm_start if isinstance(self.warm_start, MixtureFirst) else None

    @property
    def tables_order(self) -> MarginalsOrder | None:
        """What buys the tables of a warm start; None where there is none. Its price is part of this order's."""
        start = self.warm_start
        if not isinstance(start, TablesFirst):
            return None
        tables = MarginalsOrder(
            method="marginals",
            share=1.0,
            condition_on=self.condition_on,
            device=self.device,
            numeric_bins=self.numeric_bins,
            pairs=start.pairs,
            values_precision_share=start.values_precision_share,
        )
        return tables.model_copy(update={"epsilon": self.epsilon, "share": self.share})


class MixtureOrder(_ChosenOrder):
    """Images: one measurement of the moments of every class, and a mixture of Gaussians made from it. No training."""

    method: Literal["mixture"]
    cells: Annotated[
        int | None,
        Field(
            ge=1,
            le=32,
            description="Parts of every class with a Gaussian each; 1 skips the rounds that find them. "
            "Default: as many as n and ε are large enough for, up to 24.",
        ),
    ] = None
    coefficients: Annotated[
        int, Field(ge=1, le=1_024, description="Cosines of low frequency that images are measured in, at most.")
    ] = 256
    rank: Annotated[
        int, Field(ge=1, le=512, description="Directions, shared by all classes, in which images vary, at most.")
    ] = 96
    upright: Annotated[
        bool | None,
        Field(
            description="Images are measured without their slant, and slants as one more number of each. Default: where "
            "a first measurement says that images of most classes lean variously, as handwriting does."
        ),
    ] = None
    jitter_shift: Annotated[
        float | None,
        Field(
            ge=0.0,
            le=0.2,
            description="Drawn images are shifted: standard deviation, as a share of the side. "
            "Default: 0.02 where images are measured upright, else 0.",
        ),
    ] = None
    jitter_degrees: Annotated[
        float | None,
        Field(
            ge=0.0,
            le=45.0,
            description="Drawn images are turned: standard deviation, in degrees. "
            "Default: 3.5 where images are measured upright, else 0.",
        ),
    ] = None
    record_norm: Annotated[
        float, Field(gt=0.0, le=1.0, description="Images are clipped to this norm, divided by √pixels, for the means.")
    ] = 0.35
    centred_norm: Annotated[
        float,
        Field(gt=0.0, le=1.0, description="Images less their class mean are clipped to this norm, divided by √pixels."),
    ] = 0.26
    cell_quantile: Annotated[
        float,
        Field(gt=0.0, lt=1.0, description="Clip norm within cells: this quantile of drawn images' distances to them."),
    ] = 0.95
    means_precision_share: Annotated[
        float, Field(ge=SMALLEST_SHARE, lt=0.2, description="Part of the Gaussian precision spent on the class means.")
    ] = 0.04
    leanings_precision_share: Annotated[
        float,
        Field(ge=SMALLEST_SHARE, lt=0.2, description="Part spent on how images lean, where `upright` is not ordered."),
    ] = 0.01
    tones_precision_share: Annotated[
        float, Field(ge=SMALLEST_SHARE, lt=0.2, description="Part spent on how bright pixels are, whatever the class.")
    ] = 0.01
    directions_precision_share: Annotated[
        float, Field(ge=SMALLEST_SHARE, lt=0.4, description="Part spent on the directions that all classes share.")
    ] = 0.15
    sorting_precision_share: Annotated[
        float,
        Field(ge=SMALLEST_SHARE, lt=0.2, description="Part spent on each round that moves the cells to their records."),
    ] = 0.08
    sorting_rounds: Annotated[int, Field(ge=0, le=4, description="Such rounds; none with one cell.")] = 2
    count_share: Annotated[
        float,
        Field(ge=SMALLEST_SHARE, lt=0.4, description="Part of each measurement's precision that counts the records."),
    ] = 0.02
    mean_share: Annotated[
        float,
        Field(ge=SMALLEST_SHARE, lt=0.4, description="Part of each measurement's precision that corrects the means."),
    ] = 0.06

    @property
    def numeric_bins(self) -> int:
        """Images have no columns."""
        return AutoOrder.NUMERIC_BINS

    @property
    def steps(self) -> int:
        """Measurements, each a step of progress."""
        return 4 + (self.upright is None) + (0 if self.cells == 1 else self.sorting_rounds)

    @model_validator(mode="after")
    def _something_is_left(self) -> Self:
        spent = self.means_precision_share + self.tones_precision_share + self.directions_precision_share
        spent += self.leanings_precision_share if self.upright is None else 0.0
        if spent + self.sorting_rounds * self.sorting_precision_share > 0.95:
            raise ValueError("the precision shares leave nothing for the cells' own moments")
        return self


TableOrder = IdpganOrder | MarginalsOrder
Order = TableOrder | MixtureOrder
"""What a worker executes, told apart by `method`."""

METHODS: dict[str, type[Order | AutoOrder]] = {
    "auto": AutoOrder,
    "marginals": MarginalsOrder,
    "mixture": MixtureOrder,
    "idpgan": IdpganOrder,
}


def default_sampling_probability(units: int) -> float:
    """The q of an order that names none: 512 expected units a step, at most a quarter of them."""
    return min(MAX_DEFAULT_SAMPLING_PROBABILITY, DEFAULT_EXPECTED_BATCH / units)


def parse_order(document: Any) -> Order | AutoOrder:
    """Read an order; raises `InvalidOrder` naming the knob that is wrong or unknown."""
    if not isinstance(document, dict):
        raise InvalidOrder('an order is a JSON object, for example {"epsilon": 4}', where="order")
    method = document.get("method", "auto")
    if not isinstance(method, str) or method not in METHODS:
        raise InvalidOrder(f"method: choose one of {', '.join(METHODS)}", where="method")
    try:
        # Strict, and by way of JSON: "4" and true are no numbers, while a list is still a tuple.
        return METHODS[method].model_validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "order"
        raise InvalidOrder(f"{where}: {sentence_of(first)}", where=where) from None


def parse_resolved_order(document: Any) -> Order:
    """Read an order as it was stored, after `auto` was resolved."""
    order = parse_order(document)
    if isinstance(order, AutoOrder):
        raise InvalidOrder("this order has not been resolved", where="method")
    return order
