"""`method: image_release`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from service.base.messages import Message
from service.methods.knobs import Knobs, LesserShare, Order, ShareOrNothing

MOST_COEFFICIENTS = 32
DEFAULT_SIZES = (1, 2, 3, 4, 6, 8, 12, 16)


class Block(Knobs):
    """A block of pixels, wherever it lies in an image."""

    rows: Annotated[int, Field(ge=1, description="Of pixels.")]
    columns: Annotated[int, Field(ge=1, description="Of pixels.")]


def _rising(sizes: tuple[int, ...]) -> tuple[int, ...]:
    if list(sizes) != sorted(set(sizes)):
        raise ValueError(Message("give rising numbers"))
    return sizes


Size = Annotated[int, Field(ge=1, le=MOST_COEFFICIENTS)]


class ImageReleaseOrder(Order):
    """Images: each is released by itself, blurred and noisy. For one image or a folder of them; no new images are made."""

    method: Literal["image_release"]
    unit: Annotated[
        Literal["image", "column"] | Block | None,
        Field(
            description="What one unit is: `image`, or the part of an image that the schema declares as `pixel_unit`. Default: as declared; "
            "anything else is refused. One column or block of pixels says nothing of a person."
        ),
    ] = None
    coefficients: Annotated[
        Size | None,
        Field(
            description="Cosines of low frequency along each side that images are measured in. Default: one of `sizes`, chosen by an exponential "
            "mechanism, which is part of the price."
        ),
    ] = None
    sizes: Annotated[
        tuple[Size, ...],
        AfterValidator(_rising),
        Field(
            min_length=1,
            max_length=32,
            description="What is chosen from where `coefficients` is not ordered; those larger than an image are left out.",
        ),
    ] = DEFAULT_SIZES
    selection_share: Annotated[LesserShare, Field(description="Part of ε, about, that this choice is given.")] = 0.1
    noise: Annotated[
        Literal["gaussian", "laplace"],
        Field(description="On coefficients. `gaussian`: less from about 4 × 4 on. `laplace`: on whole numbers."),
    ] = "gaussian"
    singular_values_share: Annotated[
        ShareOrNothing,
        Field(
            ge=0.0,
            lt=0.5,
            description="Part of the precision (`laplace`: of ε) spent on the singular values of the coefficients, which are then put in falling "
            "order and replace those of the noisy ones; 0: not measured.",
        ),
    ] = 0.0

    @property
    def steps(self) -> int:
        """Measurements, each a step of progress."""
        return 1 + (self.coefficients is None) + (self.singular_values_share > 0.0)
