"""Replies about questions."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from service.releases.schemas import EstimateReply, PriceReply, ReleaseReply, SharesReply


class QuestionReply(BaseModel):
    """What becomes of one question."""

    key: Annotated[str, Field(description="Names the question: asked again, it has the same.")]
    state: Annotated[
        Literal["answered", "waiting", "ordered", "quoted"],
        Field(
            description="answered: before, at no cost now. waiting: ordered before, not published yet. ordered: now. "
            "quoted: it would be ordered."
        ),
    ]
    release_id: Annotated[uuid.UUID | None, Field(description="Of the release that has the answer, or will have it.")]
    place: Annotated[int | None, Field(description="Of the answer in that release, from 0.")]
    answer: Annotated[dict[str, Any] | None, Field(description="As in answers.json, where it is there.")]


class QueriesReply(BaseModel):
    """Questions, what they cost, and where their answers are."""

    questions: list[QuestionReply]
    price: Annotated[PriceReply | None, Field(description="Of those that were not asked before; null: nothing is due.")]
    fits: Annotated[bool, Field(description="Whether that fits the budget now.")]
    remaining: Annotated[SharesReply | None, Field(description="Of the budget; null where nothing is due.")]
    estimate: EstimateReply | None
    forecast: Annotated[
        list[str], Field(description="How far off the answers that would be ordered will be, in sentences.")
    ] = []
    warnings: list[str]
    release: Annotated[
        ReleaseReply | None, Field(description="What was ordered; null for a quote, or where nothing was.")
    ]
