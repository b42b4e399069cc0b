"""`method: gswgan`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from service.methods.idpgan.knobs import Optimizer
from service.methods.idpgan.order import MAX_STEPS
from service.methods.knobs import Order, Penalty, ShareOrNothing, Widths

MOST_DISCRIMINATORS = 10_000
SMALLEST_CLIP_NORM = 1e-9
"""Between numbers much smaller floats hold no grid of noise: slopes would come out as they are, or as none."""


class GswganOrder(Order):
    """A comparison, for images: only the slope that the generator is shown is clipped and noisy (GS-WGAN, Chen, Orekondy, Fritz 2020)."""

    method: Literal["gswgan"]
    steps: Annotated[int, Field(ge=1, le=MAX_STEPS, description="Generator steps, all of them private.")] = 2_000
    discriminators: Annotated[
        int | None,
        Field(
            ge=2,
            le=MOST_DISCRIMINATORS,
            description="Each is trained on its own part of the units; one of them, drawn secretly, is asked a step. Default: n/60, at most 1,000.",
        ),
    ] = None
    start_steps: Annotated[
        int, Field(ge=0, le=100_000, description="Free steps of every discriminator before the first private step.")
    ] = 200
    trained_a_step: Annotated[
        int | None,
        Field(
            ge=1,
            le=MOST_DISCRIMINATORS,
            description="Discriminators that are trained on after each private step, in turn and whichever was drawn. Default: all of them; "
            "one that has not followed the generator misleads it.",
        ),
    ] = None
    discriminator_steps: Annotated[
        int, Field(ge=1, le=1_000, description="Free steps of a discriminator each time that it is trained on.")
    ] = 1
    batch: Annotated[
        int, Field(ge=1, le=1_024, description="Generated images of a step, whose slopes are clipped as one.")
    ] = 32
    clip_norm: Annotated[
        float,
        Field(
            ge=SMALLEST_CLIP_NORM,
            le=1e6,
            description="L2 clip norm of all slopes of a step together, each divided by the root of their number.",
        ),
    ] = 1.0
    gradient_penalty: Annotated[Penalty, Field(description="λ of the discriminators' penalty.")] = 10.0
    label_precision_share: Annotated[
        ShareOrNothing,
        Field(
            ge=0.0,
            lt=1.0,
            description="Part of the release's Gaussian precision spent on class frequencies; 0: all classes count as equally frequent.",
        ),
    ] = 0.02
    noise_dimension: Annotated[int, Field(ge=1, le=1_024, description="Length of the generator's input noise.")] = 10
    generator_hidden: Annotated[Widths, Field(description="Widths of the generator's hidden layers.")] = (128, 256)
    critic_hidden: Annotated[Widths, Field(description="Widths of a discriminator's hidden layers.")] = (64, 64)
    optimizer: Annotated[Optimizer, Field(description="Of all networks; always Adam.")] = Optimizer(
        critic_learning_rate=1e-3, generator_learning_rate=5e-4, beta1=0.5, beta2=0.9, moving_average_decay=0.999
    )
