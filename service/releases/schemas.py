"""Requests and replies about releases."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.methods.pricing import Price
from service.platform.paging import NEXT
from service.releases.models import Release

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


class QuoteReply(BaseModel):
    """The price of an order and whether it fits now. Reserves nothing, reads no private row."""

    order: dict[str, Any]
    price: PriceReply
    steps: int
    first_noise_multiplier: float | None
    last_noise_multiplier: float | None
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
    state: State
    order: dict[str, Any]
    price: PriceReply
    progress: Progress
    certificate: dict[str, Any] | None
    failure: Annotated[
        str | None, Field(description="A code that depends on no row: worker_lost, cancelled, diverged, underpaid, ….")
    ]
    created_at: dt.datetime
    links: Links

    @classmethod
    def of(cls, release: Release) -> ReleaseReply:
        here = f"/v1/releases/{release.id}"
        return cls(
            id=release.id,
            dataset_id=release.dataset_id,
            state=release.state,
            order=release.order_,
            price=PriceReply(
                epsilon=release.price["epsilon"],
                delta=release.price["delta"],
                shares=SharesReply(simple=release.simple_cost, renyi=release.renyi_cost),
            ),
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
