"""`method: queries`: its questions."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from service.base.messages import Message
from service.domain.field_schema import Scalar
from service.methods.knobs import Knobs, Order

MOST_QUESTIONS = 100
MOST_COLUMNS = 4
MOST_PROBABILITIES = 20
SMALLEST_WEIGHT, LARGEST_WEIGHT = 0.01, 100.0

Column = Annotated[str, Field(min_length=1, max_length=200)]
Noise = Literal["geometric", "gaussian"]


class Where(Knobs):
    """What one column must be in the rows that count: one of `values`, or in the range."""

    column: Annotated[Column, Field(description="Its name.")]
    values: Annotated[
        tuple[Scalar | None, ...] | None,
        Field(min_length=1, max_length=10_000, description="One of these declared values; null is a missing one."),
    ] = None
    minimum: Annotated[Scalar | None, Field(description="At least this; instead of values.")] = None
    maximum: Annotated[Scalar | None, Field(description="At most this; instead of values.")] = None

    @property
    def listed(self) -> tuple[Scalar | None, ...] | None:
        """The values, if they are listed."""
        return self.values

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.values is None) == (self.minimum is None and self.maximum is None):
            raise ValueError(Message("give either values, or minimum, maximum or both"))
        return self


class Question(Knobs):
    """What every question may say."""

    where: Annotated[
        tuple[Where, ...],
        Field(max_length=50, description="Only rows that meet all of these count. Default: all rows."),
    ] = ()
    weight: Annotated[
        float,
        Field(
            ge=SMALLEST_WEIGHT,
            le=LARGEST_WEIGHT,
            description="Its part of the price, relative to the weights of the other questions.",
        ),
    ] = 1.0

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns of the statistic, then those of its conditions."""
        asked = self.columns_asked
        return tuple(dict.fromkeys((*asked, *(one.column for one in self.where))))

    @property
    def columns_asked(self) -> tuple[str, ...]:
        """The columns of the statistic."""
        own = (getattr(self, "column", None), *getattr(self, "columns", ()))
        return tuple(name for name in own if name is not None)

    @property
    def key(self) -> str:
        """Names the question, whatever its weight and the order of its conditions: the same key, the same statistic."""
        said: dict[str, Any] = self.model_dump(mode="json", exclude={"weight", "where"})
        conditions = [one.model_dump(mode="json", exclude_none=False) for one in self.where]
        said["where"] = sorted({json.dumps(one, sort_keys=True) for one in conditions})
        return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class Count(Question):
    """How many rows there are."""

    kind: Literal["count"]
    noise: Annotated[Noise, Field(description="Of whole numbers, either way.")] = "geometric"


class Histogram(Question):
    """How many rows each value of a column has; of a range, each of its bins."""

    kind: Literal["histogram"]
    column: Annotated[Column, Field(description="Any declared column.")]
    bins: Annotated[int | None, Field(ge=1, le=1_024, description="Of a range that declares none. Default: 32.")] = None
    noise: Annotated[Noise, Field(description="Of whole numbers, either way.")] = "geometric"


class CrossTable(Question):
    """How many rows each combination of values of several columns has."""

    kind: Literal["cross_table"]
    columns: Annotated[
        tuple[Column, ...], Field(min_length=2, max_length=MOST_COLUMNS, description="Two to four declared columns.")
    ]
    bins: Annotated[
        int | None, Field(ge=1, le=1_024, description="Of every range that declares none. Default: 32.")
    ] = None
    noise: Annotated[Noise, Field(description="Of whole numbers, either way.")] = "geometric"


class Sum(Question):
    """The sum of a column; a missing value adds nothing."""

    kind: Literal["sum"]
    column: Annotated[Column, Field(description="An integer or number column with a range.")]


class Mean(Question):
    """The mean of a column over the rows that have a value."""

    kind: Literal["mean"]
    column: Annotated[Column, Field(description="A column with a range.")]


class Quantiles(Question):
    """Values below which these parts of the rows lie, each chosen by an exponential mechanism on a public grid."""

    kind: Literal["quantiles"]
    column: Annotated[Column, Field(description="A column with a range.")]
    probabilities: Annotated[
        tuple[Annotated[float, Field(gt=0.0, lt=1.0)], ...],
        Field(min_length=1, max_length=MOST_PROBABILITIES, description="Increasing; to four digits after the point."),
    ] = (0.25, 0.5, 0.75)

    @model_validator(mode="after")
    def _increasing(self) -> Self:
        tenths = [round(one * 10_000) for one in self.probabilities]
        if tenths != sorted(set(tenths)) or tenths[0] < 1 or tenths[-1] > 9_999:
            raise ValueError(Message("probabilities must increase, and have at most four digits after the point"))
        return self


class ArgMax(Question):
    """Which value of a column is the most frequent; how frequent it is, is another question."""

    kind: Literal["arg_max"]
    column: Annotated[Column, Field(description="Any declared column; of a range, its bins.")]
    bins: Annotated[int | None, Field(ge=1, le=1_024, description="Of a range that declares none. Default: 32.")] = None


class Median(Question):
    """The median, with noise by smooth sensitivity: little where many values lie near it."""

    kind: Literal["median"]
    column: Annotated[Column, Field(description="A required column with a range, in a dataset whose units are rows.")]


class Keys(Question):
    """Which combinations of values occur often enough to be told, where their product is too large to count them all."""

    kind: Literal["keys"]
    columns: Annotated[
        tuple[Column, ...], Field(min_length=1, max_length=MOST_COLUMNS, description="One to four declared columns.")
    ]


AnyQuestion = Annotated[
    Count | Histogram | CrossTable | Sum | Mean | Quantiles | ArgMax | Median | Keys, Field(discriminator="kind")
]


class QueriesOrder(Order):
    """Questions about the rows of a table, answered once with noise for one price."""

    method: Literal["queries"]
    questions: Annotated[
        tuple[AnyQuestion, ...],
        Field(
            min_length=1,
            max_length=MOST_QUESTIONS,
            description="What is asked. The price is shared out among the questions by their weights.",
        ),
    ]

    @property
    def shares(self) -> tuple[float, ...]:
        """The part of each question, 1 together."""
        total = sum(question.weight for question in self.questions)
        return tuple(question.weight / total for question in self.questions)
