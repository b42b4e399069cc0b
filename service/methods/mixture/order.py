"""`method: mixture`: its knobs."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from service.base.messages import Message
from service.methods.knobs import SMALLEST_SHARE, Order


class MixtureOrder(Order):
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
            description="Whether images are deskewed: measured without their slant, which is one more number of each. Default: where "
            "a first measurement says that images of most classes lean differently, as handwriting does."
        ),
    ] = None
    jitter_shift: Annotated[
        float | None,
        Field(
            ge=0.0,
            le=0.2,
            description="Drawn images are shifted: standard deviation, as a share of the side. "
            "Default: 0.02 where images are deskewed, else 0.",
        ),
    ] = None
    jitter_degrees: Annotated[
        float | None,
        Field(
            ge=0.0,
            le=45.0,
            description="Drawn images are turned: standard deviation, in degrees. "
            "Default: 3.5 where images are deskewed, else 0.",
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
    def steps(self) -> int:
        """Measurements, each a step of progress."""
        return 4 + (self.upright is None) + (0 if self.cells == 1 else self.sorting_rounds)

    @model_validator(mode="after")
    def _something_is_left(self) -> Self:
        spent = self.means_precision_share + self.tones_precision_share + self.directions_precision_share
        spent += self.leanings_precision_share if self.upright is None else 0.0
        if spent + self.sorting_rounds * self.sorting_precision_share > 0.95:
            raise ValueError(Message("the precision shares leave nothing for the cells' own moments"))
        return self
