"""Requests and replies about releases."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.datasets.schemas import BoughtReply
from service.methods.pricing import Price
from service.platform.paging import NEXT
from service.releases.models import Release
from service.releases.names import shown_name
from service.releases.not_made import report_not_made

State = Literal["reserved", "charged", "published", "failed", "voided"]


class SharesReply(BaseModel):
    """Nano-shares (billionths of the budget) of both accounts. An order needs room in one of them.

    `simple` adds up the ε of all releases, `renyi` composes their noise: at 750,000,000 and 270,000,000 used, basic composition has 75 % of the
    budget used up and Rényi composition 27 %, and the next order fits as long as it fits either.
    """

    model_config = ConfigDict(from_attributes=True)

    simple: int
    renyi: int


class PriceReply(BaseModel):
    """What a release costs: its own (ε, δ) and its shares of both accounts."""

    epsilon: float
    delta: float
    shares: SharesReply

    @classmethod
    def of(cls, price: Price) -> PriceReply:
        return cls(epsilon=price.epsilon, delta=price.delta, shares=SharesReply.model_validate(price.shares))


class EstimateReply(BaseModel):
    """What carrying out an order takes, within a small factor; from the order and declarations alone."""

    model_config = ConfigDict(from_attributes=True)

    seconds_on_a_cpu: Annotated[float, Field(description="Of one worker without a GPU, once it begins.")]
    seconds_on_a_gpu: Annotated[float | None, Field(description="Of one with a GPU; null where none was measured.")]
    memory_bytes: Annotated[int, Field(description="Of the worker's process, beside what lies on a GPU.")]
    flops: float


class SpreadReply(BaseModel):
    """Over marginals."""

    model_config = ConfigDict(from_attributes=True)

    smallest: float
    median: float
    largest: float


class ExpectedReply(BaseModel):
    """What is expected, and between what it was for four fifths of the tables of the calibration (docs/forecast.md)."""

    model_config = ConfigDict(from_attributes=True)

    expected: float
    low: float
    high: float


class CountsReply(BaseModel):
    """Marginals of one kind, of all rows."""

    model_config = ConfigDict(from_attributes=True)

    marginals: Annotated[int, Field(description="That are measured; where noisy scores choose them, at most.")]
    count_std: Annotated[SpreadReply, Field(description="Standard deviation of the noise on one count.")]
    off_by: Annotated[float, Field(description="Rows that the count of a group is off by at most, 19 times in 20.")]
    smallest_group: Annotated[
        int, Field(description="Rows of the smallest group that can be told apart from an empty one.")
    ]
    total_variation: Annotated[ExpectedReply, Field(description="By noise alone, on average over these marginals.")]


class ExperienceReply(BaseModel):
    """What classifiers lost beside ones trained on real data, in the benches of this software: experience, and no promise."""

    model_config = ConfigDict(from_attributes=True)

    tables: Annotated[int, Field(description="Data sets of such a size that were run at such an ε.")]
    low: float
    median: float
    high: float
    one_way_tv: Annotated[
        ExpectedReply | None,
        Field(
            description="Median, tenth and ninetieth percentile of the total variation of synthetic from real rows, in tables of one column: "
            "noise and all that adds to it."
        ),
    ] = None
    two_way_tv: Annotated[ExpectedReply | None, Field(description="The same of two columns, measured or not.")] = None
    runs: Annotated[int, Field(description="On these data sets, at every ε that is near.")] = 0
    earlier: Annotated[int, Field(description="Of these runs, those with an earlier version of the method.")] = 0


class ForecastReply(BaseModel):
    """How far off what is published will be, from schema, n, unit and order alone (docs/forecast.md)."""

    model_config = ConfigDict(from_attributes=True)

    sentences: Annotated[list[str], Field(description="For a person.")]
    pairs: Annotated[
        Literal["all", "few_or_all", "chosen", "none"] | None, Field(description="Which pairs of columns are measured.")
    ]
    one_way: CountsReply | None
    with_condition: Annotated[
        CountsReply | None, Field(description="Two-way marginals of each column and the condition.")
    ]
    two_way: Annotated[CountsReply | None, Field(description="Of two other columns; null where none are measured.")]
    experience: ExperienceReply | None


class WantedReply(BaseModel):
    """The least ε that gives what the order wants of counts."""

    model_config = ConfigDict(from_attributes=True)

    epsilon: Annotated[float | None, Field(description="Null where no ε that can still be paid gives it.")]
    largest: Annotated[float, Field(description="The largest ε that can still be paid.")]
    says: str


class QuoteReply(BaseModel):
    """The price of an order and whether it fits now. Reserves nothing, reads no private row."""

    order: dict[str, Any]
    price: PriceReply
    steps: int
    first_noise_multiplier: float | None
    last_noise_multiplier: float | None
    estimate: EstimateReply
    fits: bool
    remaining: SharesReply
    forecast: ForecastReply
    bought: Annotated[
        list[BoughtReply],
        Field(
            description="Columns whose bounds or categories were bought from the rows, or are to be (`release`: null)."
        ),
    ]
    wanted: Annotated[WantedReply | None, Field(description="Where the order says what it wants (`want`).")]
    warnings: Annotated[
        list[str],
        Field(
            description="What must be said beside this promise and of what it buys; from order, ε, δ, n and schema alone."
        ),
    ]


class Progress(BaseModel):
    """How far the training has come; known from the order and the clock, never from rows."""

    step: int
    steps: int
    phase: str


class Links(BaseModel):
    """Where to go next."""

    self: str
    events: str
    cancel: str
    sample: str
    generator: str
    answers: str
    certificate: str


class ReleaseReply(BaseModel):
    """One release."""

    id: uuid.UUID
    dataset_id: uuid.UUID
    name: Annotated[str, Field(description="As given, unique in the dataset; else METHOD-ID.")]
    state: State
    order: dict[str, Any]
    price: PriceReply
    priority: Annotated[int, Field(description="Of the order; 0 goes first among the waiting releases of its key.")]
    estimate: Annotated[
        EstimateReply | None, Field(description="Null where it was ordered before there were estimates.")
    ]
    warnings: Annotated[
        list[str],
        Field(
            description="What the quote of this order warned of, as it was placed; and, once published, that its report could not be made."
        ),
    ]
    progress: Progress
    certificate: dict[str, Any] | None
    failure: Annotated[
        str | None,
        Field(
            description="A code that depends on no row: worker_lost, no_device (ordered for a GPU alone, and no worker that took it has one), cancelled, diverged, underpaid, tampered, over_limits, erased (its rows, or the public rows that it begins from, are gone), …; not_accepted depends on noisy figures that were charged."
        ),
    ]
    created_at: dt.datetime
    links: Links

    @classmethod
    def of(cls, release: Release) -> ReleaseReply:
        here = f"/v1/releases/{release.id}"
        return cls(
            id=release.id,
            dataset_id=release.dataset_id,
            name=shown_name(release.name, str(release.order_.get("method", "release")), release.id),
            state=release.state,
            order=release.order_,
            price=PriceReply(
                epsilon=release.price["epsilon"],
                delta=release.price["delta"],
                shares=SharesReply(simple=release.simple_cost, renyi=release.renyi_cost),
            ),
            priority=release.priority,
            estimate=None if release.estimate is None else EstimateReply(**release.estimate),
            warnings=_warnings_of(release),
            progress=Progress(step=release.step, steps=release.steps, phase=release.phase),
            certificate=_without_proofs(release.certificate),
            failure=release.failure,
            created_at=release.created_at,
            links=Links(
                self=here,
                events=f"{here}/events",
                cancel=f"{here}/cancel",
                sample=f"{here}/sample",
                generator=f"{here}/generator",
                answers=f"{here}/answers",
                certificate=f"{here}/certificate",
            ),
        )


def _warnings_of(release: Release) -> list[str]:
    not_made = report_not_made(release.certificate)
    return [*(release.estimate or {}).get("warnings", []), *([] if not_made is None else [not_made])]


def _without_proofs(certificate: dict[str, Any] | None) -> dict[str, Any] | None:
    """Consistency proofs grow with the number of releases, and so would a list by its square."""
    if certificate is None:
        return None
    return {name: value for name, value in certificate.items() if name != "consistency"}


class ReleaseList(BaseModel):
    """One page of the tenant's releases, newest first."""

    items: list[ReleaseReply]
    next: Annotated[str | None, Field(description=NEXT)]
