"""What orders are made of: knobs with defaults and one sentence each, and what every order names. None reads a row."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

MAX_EPSILON = 1_000.0
SMALLEST_SHARE = 1e-6
"""Of precision: what gets less says nothing, and its noise soon exceeds what counts can hold (`workers.mechanism.noise`)."""

DEFAULT_NUMERIC_BINS = 32
"""Bins of a numeric field that declares none."""


def _is_nothing_or_worth_it(share: float) -> float:
    if 0.0 < share < SMALLEST_SHARE:
        raise ValueError(f"give 0, or at least {SMALLEST_SHARE:g}")
    return share


ShareOrNothing = Annotated[float, AfterValidator(_is_nothing_or_worth_it)]
Probability = Annotated[float, Field(gt=0.0, le=1.0)]
Width = Annotated[int, Field(ge=1, le=4_096)]
Channels = Annotated[int, Field(ge=1, le=512)]


class Knobs(BaseModel):
    """Frozen, and an unknown name is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class AnyOrder(Knobs):
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


class Order(AnyOrder):
    """An order of one method, which `auto` may have chosen. Each method has a subclass whose `method` is its name."""

    chosen_because: Annotated[
        str | None, Field(max_length=1_000, description="Filled in by `method: auto`; may not be ordered.")
    ] = None

    @property
    def progress_steps(self) -> int:
        """Steps of progress that a run tells; one where the order has no `steps`."""
        return int(getattr(self, "steps", 1))
