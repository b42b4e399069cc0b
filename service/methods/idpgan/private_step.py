"""Knobs of the private step itself (docs/methods/private_step.md). All but bought relevance leave the price list as it is."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from service.base.messages import Listed, Message
from service.methods.knobs import Knobs, LesserShare

Share = Annotated[float, Field(gt=0.0, le=1.0)]
EverySteps = Annotated[int, Field(ge=1, le=100_000)]


class LeakyRelu(Knobs):
    """The critic's own: slope 0.2 below zero."""

    kind: Literal["leaky_relu"] = "leaky_relu"


class Tanh(Knobs):
    """The tempered sigmoid of scale 2, inverse temperature 2, offset 1."""

    kind: Literal["tanh"] = "tanh"


class TemperedSigmoid(Knobs):
    """φ(a) = s/(1 + exp(-T·a)) - o (Papernot et al. 2021): bounded, and so are the gradients of what follows it."""

    kind: Literal["tempered_sigmoid"] = "tempered_sigmoid"
    scale: Annotated[float, Field(gt=0.0, le=100.0, description="s: height of the step.")] = 2.0
    inverse_temperature: Annotated[float, Field(gt=0.0, le=100.0, description="T: steepness.")] = 2.0
    offset: Annotated[float, Field(ge=-100.0, le=100.0, description="o: what is taken off.")] = 1.0


class SparseUpdates(Knobs):
    """Only a part of each tensor's coordinates is clipped, released and updated. Chosen without any private gradient."""

    share: Annotated[Share, Field(description="Part of each tensor's coordinates.")] = 0.5
    chosen_by: Annotated[
        Literal["coins_of_the_run", "coins_of_the_step", "weights"],
        Field(description="Public coins, once or anew at each step; or the largest weights at the time."),
    ] = "coins_of_the_step"


class UpdateMemory(Knobs):
    """Of each noisy mean, the largest coordinates are applied; the rest is carried over to the next step (post-processing)."""

    share: Annotated[Share, Field(description="Part of all coordinates that is applied.")] = 0.1


class ReleasedScale(Knobs):
    """Gradients are clipped in units of the root mean square of earlier released gradients (AdaDP)."""

    decay: Annotated[float, Field(ge=0.0, lt=1.0, description="Of the moving mean of squares.")] = 0.99
    smallest: Annotated[
        float,
        Field(gt=0.0, le=1.0, description="Least unit, as a part of the root mean square over the tensor."),
    ] = 0.1


class GradientSubspace(Knobs):
    """FSDP, corrected: a weight matrix's gradient is cut by a public orthonormal basis, both parts clipped and released."""

    rank: Annotated[int, Field(ge=1, le=4_096, description="Columns k of the basis; at most the matrix's own.")] = 16
    every_steps: Annotated[EverySteps, Field(description="Steps h between two bases.")] = 50
    source: Annotated[
        Literal["random", "released"],
        Field(description="Public coins, or a Funk-SVD of the moving mean of released gradients."),
    ] = "released"
    residual: Annotated[bool, Field(description="Whether what the basis does not hold is released too.")] = True
    ridge: Annotated[float, Field(ge=0.0, le=1e3, description="τ of the Funk-SVD ‖G - VH‖² + τ(‖V‖² + ‖H‖²).")] = 1e-2


class InputImportance(Knobs):
    """The first layer's columns in groups by the relevance of their inputs: each clipped alone, more relevant ones with less noise (`allocation` `least_noise`)."""

    groups: Annotated[int, Field(ge=2, le=64, description="Groups of equally many inputs.")] = 4
    relevance: Annotated[
        Literal["generated", "bought"],
        Field(
            description="generated: mean |x·∂D/∂x| over generated records, free. bought: the same over private records "
            "before the first step, clipped, a charged Gaussian release."
        ),
    ] = "generated"
    every_steps: Annotated[EverySteps, Field(description="Steps between two looks at generated records.")] = 100
    precision_share: Annotated[
        LesserShare, Field(description="Of bought relevance: part of the Gaussian precision spent on it.")
    ] = 0.02


MAPS = ("sparse", "scale", "subspace", "importance")


class PrivateStep(Knobs):
    """How a unit's gradient is looked at before it is clipped, and how what was released is applied."""

    critic_activation: Annotated[
        LeakyRelu | Tanh | TemperedSigmoid, Field(discriminator="kind", description="Of the critic's hidden layers.")
    ] = LeakyRelu()
    pre_clip_noise: Annotated[
        float,
        Field(
            ge=0.0,
            le=10.0,
            description="Standard deviation of noise on each coordinate of each unit's gradient before clipping, in clip norms; "
            "against the bias of clipping. It is no part of the privacy.",
        ),
    ] = 0.0
    sparse: Annotated[SparseUpdates | None, Field(description="Update a part of the coordinates.")] = None
    scale: Annotated[ReleasedScale | None, Field(description="Clip in units of released second moments.")] = None
    subspace: Annotated[GradientSubspace | None, Field(description="Gradient subspace (FSDP).")] = None
    importance: Annotated[InputImportance | None, Field(description="Noise by the relevance of inputs.")] = None
    memory: Annotated[UpdateMemory | None, Field(description="Apply the largest coordinates, carry the rest over.")] = (
        None
    )

    @model_validator(mode="after")
    def _one_map(self) -> PrivateStep:
        if len(self.maps) > 1:
            raise ValueError(
                Message(
                    "%(ordered)s: a step has one of %(maps)s at most; leave out the others",
                    ordered=Listed(Message(" and "), self.maps),
                    maps=", ".join(MAPS),
                )
            )
        return self

    @property
    def maps(self) -> list[str]:
        """Knobs that say what is clipped in the place of a gradient; at most one."""
        return [name for name in MAPS if getattr(self, name) is not None]

    @property
    def needs_gradients_in_full(self) -> bool:
        """Whether each unit's gradient must be held, and not only its factors."""
        return self.pre_clip_noise > 0.0 or bool(self.maps)

    @property
    def is_smooth(self) -> bool:
        """Whether the critic's activation is another than LeakyReLU."""
        return not isinstance(self.critic_activation, LeakyRelu)

    @property
    def buys_relevance(self) -> bool:
        """Whether there is a charged release of relevance."""
        return self.importance is not None and self.importance.relevance == "bought"


PLAIN = PrivateStep()
