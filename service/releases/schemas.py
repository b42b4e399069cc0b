"""Requests and replies about releases."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.methods.pricing import Price
from service.platform.paging import NEXT
from service.releases.models import Release
from service.releases.names import shown_name

State = Literal["reserved", "charged", "published", "failed", "voided"]


class SharesReply(BaseModel):
    """Nano-shares of both accounts."""

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
    warnings: Annotated[list[str], Field(description="What must be said beside this promise; from ε, δ and n alone.")]


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
    progress: Progress
    certificate: dict[str, Any] | None
    failure: Annotated[
        str | None,
        Field(
            description="A code that depends on no row: worker_lost, cancelled, diverged, underpaid, over_limits, …."
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


def _without_proofs(certificate: dict[str, Any] | None) -> dict[str, Any] | None:
    """Consistency proofs grow with the number of releases, and so would a list by its square."""
    if certificate is None:
        return None
    return {name: value for name, value in certificate.items() if name != "consistency"}


class ReleaseList(BaseModel):
    """One page of the tenant's releases, newest first."""

    items: list[ReleaseReply]
    next: Annotated[str | None, Field(description=NEXT)]
