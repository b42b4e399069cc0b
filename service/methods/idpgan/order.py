"""`method: idpgan`: its knobs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from service.methods.idpgan.knobs import (
    MOST_WEIGHT_BOUND,
    AdaptiveCriticSteps,
    AdaptiveThresholds,
    Augmentation,
    DbscanClusters,
    FixedThresholds,
    FromNothing,
    ImageNetworks,
    MixtureFirst,
    Networks,
    OneGroup,
    Optimizer,
    PublicStartOrder,
    TablesFirst,
    WeightBound,
)
from service.methods.idpgan.private_step import PrivateStep
from service.methods.knobs import LabelShare, Order, Penalty, SamplingRate
from service.methods.marginals.order import MarginalsOrder
from service.privacy.schedules import ConstantNoise, ExponentialDecay, NoiseDecay

MAX_STEPS = 1_000_000
NEAR_TABLES: dict[str, Any] = {"steps": 1_000, "critic_steps_per_generator_step": 8}
"""Of a run on a table that begins near noisy tables, where the order names none (docs/results/idpgan-on-tables.md)."""
FROM_NOTHING: dict[str, Any] = {"critic_weight_bound": 0.1}
"""The same of a run on a table whose networks begin at random."""


Allocation = Literal["least_noise", "equal_share", "flat"]
CriticLossTerms = Literal["paired", "separate"]
PenaltyPlace = Literal["interpolates", "generated"]


class GanOrder(Order):
    """What every trained generator's order has: how long, how many units a step, label counts, networks, optimisers."""

    steps: Annotated[
        int,
        Field(ge=1, le=MAX_STEPS, description="Critic steps, all of them private. Default with a warm start: 1,000."),
    ] = 3_000
    sampling_probability: SamplingRate = None
    critic_steps_per_generator_step: Annotated[
        int,
        Field(
            ge=1,
            le=1_000,
            description="Generator steps read no row and cost nothing. Default: 8 with a warm start from tables, "
            "2 with perceptrons of images.",
        ),
    ] = 5
    label_precision_share: LabelShare = 0.02
    networks: Annotated[Networks, Field(description="Sizes of both perceptrons; tables only.")] = Networks()
    image_networks: Annotated[
        ImageNetworks | None,
        Field(description="Kind and sizes of both networks; images only. Default: by the declared size."),
    ] = None
    optimizer: Annotated[Optimizer, Field(description="Of both networks.")] = Optimizer()
    private_step: Annotated[
        PrivateStep | None,
        Field(description="How gradients are looked at before they are clipped, and how what was released is applied."),
    ] = None

    @property
    def numeric_bins(self) -> int:
        """Bins of a numeric field that declares none."""
        return self.networks.numeric_bins

    @property
    def counts_values(self) -> bool:
        """Whether single values of ranges are counted."""
        return False

    @property
    def public_records_a_step(self) -> int:
        """Made-up records that every private step looks at besides."""
        return 0

    @property
    def names_classes(self) -> bool:
        """Whether the critic has a second head that names classes."""
        return False

    @property
    def free_public_steps(self) -> int:
        """Critic steps on public records before the first private one."""
        return 0

    @property
    def mask_share(self) -> float | None:
        """Part of the critic's coordinates that private steps update; None: all."""
        return None

    @property
    def prunes(self) -> bool:
        """Whether the other coordinates are zero."""
        return False

    @property
    def mixture_first(self) -> MixtureFirst | None:
        """The mixture that images begin from; None where there is none."""
        return None

    @property
    def corrects_mixture(self) -> bool:
        """Whether the generator is that mixture, corrected; else it is the ordered network, from nothing or from free samples."""
        return self.mixture_first is not None and self.mixture_first.generator == "corrected"

    @property
    def copies(self) -> int:
        """Of every image that a private step reads."""
        return 1

    @property
    def shift_of_copies(self) -> int:
        """Pixels that each is moved by at most."""
        return 0

    @property
    def tables_first(self) -> TablesFirst | None:
        """The marginals that a table begins with; None where there are none."""
        return None

    @property
    def tables_order(self) -> MarginalsOrder | None:
        """And their order. Its price is part of this order's."""
        return None


class PlainGanOrder(GanOrder):
    """A comparison from the literature: constant noise, one clip norm for the whole gradient, no warm start."""

    gradient_penalty: Annotated[Penalty, Field(description="λ of the WGAN-GP penalty.")] = 10.0
    critic_weight_bound: WeightBound = None

    noise_decay: ClassVar[NoiseDecay] = ConstantNoise()
    clusters: ClassVar[DbscanClusters | OneGroup] = OneGroup()
    allocation: ClassVar[Allocation] = "least_noise"
    critic_loss: ClassVar[CriticLossTerms] = "paired"
    gradient_penalty_at: ClassVar[PenaltyPlace] = "interpolates"
    adaptive_critic_steps: ClassVar[AdaptiveCriticSteps | None] = None

    @property
    def thresholds(self) -> AdaptiveThresholds | FixedThresholds:
        """One clip norm for the whole gradient, shared by the tensors."""
        return FixedThresholds()


class IdpganOrder(PublicStartOrder, GanOrder):
    """A conditional WGAN-GP with decaying noise, adaptive thresholds and clustered clipping (IDPGAN)."""

    method: Literal["idpgan"]
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
    augmentation: Annotated[
        Augmentation | None,
        Field(
            description="Images only: shifted copies of every image that is drawn, averaged before they are clipped."
        ),
    ] = None
    noise_decay: Annotated[NoiseDecay, Field(description="DPBA: noise multiplier by epoch.")] = ExponentialDecay()
    thresholds: Annotated[
        AdaptiveThresholds | FixedThresholds, Field(discriminator="kind", description="ACTS: clip norms.")
    ] = AdaptiveThresholds()
    clusters: Annotated[DbscanClusters | OneGroup, Field(discriminator="kind", description="WC: clip groups.")] = (
        DbscanClusters()
    )
    allocation: Annotated[Allocation, Field(description="How the noise is shared by the groups.")] = "least_noise"
    critic_loss: Annotated[
        CriticLossTerms,
        Field(description="paired: D(G(z)) inside the clipped loss; separate: outside, without noise."),
    ] = "paired"
    gradient_penalty: Annotated[Penalty, Field(description="λ of the WGAN-GP penalty.")] = 10.0
    gradient_penalty_at: Annotated[
        PenaltyPlace,
        Field(description="Where ‖∇D‖ is pulled to 1: between real and generated records, or at generated ones only."),
    ] = "interpolates"
    critic_weight_bound: Annotated[
        float | None,
        Field(
            gt=0.0,
            le=MOST_WEIGHT_BOUND,
            description="After every step each number of the critic is put back between minus this and this. "
            "Default: 0.1 for tables from nothing, 0.05 or 0.1 by n and ε for perceptrons of images from nothing, else none; "
            "divided by public_mask_share where that is ordered.",
        ),
    ] = None

    @property
    def copies(self) -> int:
        return 1 if self.augmentation is None else self.augmentation.copies

    @property
    def shift_of_copies(self) -> int:
        return 0 if self.augmentation is None else self.augmentation.shift

    @property
    def counts_values(self) -> bool:
        return self.tables_order is not None and self.tables_order.counts_values

    @property
    def mixture_first(self) -> MixtureFirst | None:
        return self.warm_start if isinstance(self.warm_start, MixtureFirst) else None

    @property
    def tables_first(self) -> TablesFirst | None:
        return self.warm_start if isinstance(self.warm_start, TablesFirst) else None

    @property
    def tables_order(self) -> MarginalsOrder | None:
        start = self.tables_first
        if start is None:
            return None
        tables = MarginalsOrder(
            method="marginals",
            share=1.0,
            condition_on=self.condition_on,
            device=self.device,
            numeric_bins=self.numeric_bins,
            pairs=start.pairs,
            tree_precision_share=start.tree_precision_share,
        )
        return tables.model_copy(update={"epsilon": self.epsilon, "share": self.share})
