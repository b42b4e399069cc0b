"""What orders are made of: knobs with defaults and one sentence each, and what every order names. None reads a row."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from service.base.errors import InvalidOrder
from service.base.messages import Figure, Message

MAX_EPSILON = 1_000.0
SMALLEST_SHARE = 1e-6
"""Of precision: what gets less says nothing, and its noise soon exceeds what counts can hold (`workers.mechanism.noise`)."""

DEFAULT_NUMERIC_BINS = 32
"""Bins of a numeric field that declares none."""

DEFAULT_EXPECTED_BATCH = 512
MAX_DEFAULT_SAMPLING_PROBABILITY = 0.25
LEAST_EXPECTED_BATCH = 0.01
"""A unit in a hundred steps."""


def _is_nothing_or_worth_it(share: float) -> float:
    if 0.0 < share < SMALLEST_SHARE:
        raise ValueError(Message("give 0, or at least %(least)s", least=Figure(f"{SMALLEST_SHARE:g}")))
    return share


ShareOrNothing = Annotated[float, AfterValidator(_is_nothing_or_worth_it)]
Probability = Annotated[float, Field(gt=0.0, le=1.0)]
PrecisionShare = Annotated[float, Field(ge=SMALLEST_SHARE, lt=1.0)]
LesserShare = Annotated[float, Field(ge=SMALLEST_SHARE, lt=0.5)]
ClipNorm = Annotated[float, Field(gt=0.0, le=1e6)]
LearningRate = Annotated[float, Field(gt=0.0, le=1.0)]
Penalty = Annotated[float, Field(ge=0.0, le=1e4)]
Width = Annotated[int, Field(ge=1, le=4_096)]
Widths = Annotated[tuple[Width, ...], Field(min_length=1, max_length=8)]
Channels = Annotated[int, Field(ge=1, le=512)]
SamplingRate = Annotated[
    Probability | None,
    Field(description="Poisson rate q of every unit at every step, at least 0.01/n; default 512/n, at most 0.25."),
]
LabelShare = Annotated[
    PrecisionShare, Field(description="Part of the release's Gaussian precision spent on label frequencies.")
]


def settled_rate(sampling_probability: float | None) -> float:
    """The q of a resolved order."""
    if sampling_probability is None:
        raise InvalidOrder("sampling_probability must be resolved first", where="sampling_probability")
    return sampling_probability


def rate_of(sampling_probability: float | None, units: int) -> float:
    """The q that an order names, or else 512 expected units a step, at most a quarter of them.

    Refused where steps would hardly ever draw a unit: the search for the noise of such a list takes minutes, and nothing is learned by it.
    """
    if sampling_probability is None:
        return min(MAX_DEFAULT_SAMPLING_PROBABILITY, DEFAULT_EXPECTED_BATCH / units)
    least = LEAST_EXPECTED_BATCH / units
    if sampling_probability < least:
        raise InvalidOrder(
            Message(
                "sampling_probability: give at least %(least)s, which is %(expected)s by the number of units: with less, steps hardly "
                "ever draw a unit. Leave it out for the default, %(default)s",
                least=Figure(f"{least:.3g}"),
                expected=Figure(f"{LEAST_EXPECTED_BATCH:g}"),
                default=Figure(f"{rate_of(None, units):.3g}"),
            ),
            where="sampling_probability",
        )
    return sampling_probability


class Knobs(BaseModel):
    """Frozen, and an unknown name is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class ReportShare(Knobs):
    """A charged report on the finished generator."""

    share: Annotated[
        float,
        Field(
            ge=SMALLEST_SHARE, lt=0.5, description="Part of the Gaussian precision of the order that is kept for it."
        ),
    ] = 0.05
    held_out: Annotated[
        float | None,
        Field(
            ge=0.01,
            le=0.5,
            description="Part of the privacy units that nothing is made of. A classifier of the schema's `target`, trained on synthetic rows, "
            "is tested on their rows; its noisy accuracy is in the report. Which units, is drawn without reading rows.",
        ),
    ] = None


class Accept(Knobs):
    """What the noisy figures of the report must be for the release to be published; the charge stands either way."""

    one_way_tv: Annotated[
        float | None,
        Field(gt=0.0, lt=1.0, description="Mean total variation of single columns, as the report estimates it."),
    ] = None
    two_way_tv: Annotated[
        float | None, Field(gt=0.0, lt=1.0, description="The same of the pairs of columns that the report measures.")
    ] = None
    accuracy: Annotated[
        float | None,
        Field(
            gt=0.0,
            lt=1.0,
            description="Accuracy on held-out units, as the report estimates it, at least. Needs `held_out` in `report`.",
        ),
    ] = None
    by: Annotated[
        Literal["estimate", "bound"],
        Field(
            description="What is compared: the report's estimate, or its worse bound (of accuracy the lower one). Much noise makes the estimate too "
            "small as often as too large. The truth is beyond the bound once in 40, so by the bound a report with much noise refuses."
        ),
    ] = "estimate"

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.one_way_tv is None and self.two_way_tv is None and self.accuracy is None:
            raise ValueError(Message('say what is accepted, such as {"two_way_tv": 0.08}'))
        return self


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
            "will predict; what a schema with a `target` gets. `tables`: no condition, so that the counts of all rows, and what any two columns say of each other, are closer to the real ones."
        ),
    ] = None
    device: Annotated[
        Literal["auto", "cpu", "cuda"],
        Field(
            description="auto: a GPU where the worker has one. cuda: a GPU alone; where no worker has one the release fails, and is not charged."
        ),
    ] = "auto"
    owner_report: Annotated[
        bool,
        Field(
            description="Compare the published rows with the real ones, without noise, for the dataset's owner alone; costs nothing, and "
            "nothing that others see depends on it. Tables only."
        ),
    ] = False
    report: Annotated[
        ReportShare | None,
        Field(
            description="Measure, with noise and as a part of the price, how far the finished generator is from the real rows; for everybody "
            "who may see the release. Tables only."
        ),
    ] = None
    accept: Annotated[
        Accept | None,
        Field(
            description="Publish only if the report's noisy figures are as good as these. Needs `report`; what is refused stays charged."
        ),
    ] = None

    @model_validator(mode="after")
    def _one_price(self) -> Self:
        if (self.epsilon is None) == (self.share is None):
            raise ValueError(Message("give exactly one of epsilon and share"))
        return self

    @model_validator(mode="after")
    def _accepts_by_a_report(self) -> Self:
        if self.accept is not None and self.report is None:
            raise ValueError(
                Message(
                    'accept: it is decided on the figures of a report; order one, such as "report": {"share": 0.05}'
                )
            )
        return self

    @model_validator(mode="after")
    def _accuracy_of_held_out_units(self) -> Self:
        if self.accept is not None and self.accept.accuracy is not None and self.held_out is None:
            raise ValueError(
                Message(
                    'accept.accuracy: it is measured on held-out units; order some, such as "report": {"share": 0.05, '
                    '"held_out": 0.1}'
                )
            )
        return self

    @model_validator(mode="after")
    def _one_purpose(self) -> Self:
        if self.purpose == "tables" and self.condition_on is not None:
            raise ValueError(Message("purpose: rows for `tables` have no condition; leave out purpose or condition_on"))
        return self

    @property
    def held_out(self) -> float | None:
        """Part of the units that the report keeps from what is made."""
        return None if self.report is None else self.report.held_out


class Order(AnyOrder):
    """An order of one method, which `auto` may have chosen. Each method has a subclass whose `method` is its name."""

    chosen_because: Annotated[
        str | None, Field(max_length=1_000, description="Filled in by `method: auto`; may not be ordered.")
    ] = None

    @property
    def progress_steps(self) -> int:
        """Steps of progress that a run tells; one where the order has no `steps`."""
        return int(getattr(self, "steps", 1))
