"""`POST /v1/datasets/{id}/queries`: ask, and be charged for what was not asked before."""

from __future__ import annotations

import uuid
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Header, Request, Response, status

from service.auth.dependencies import Analyst, ContextOf, JsonBody
from service.auth.reading import ReadingTurnAfterBody
from service.base.errors import (
    BudgetExhausted,
    Gone,
    IdempotencyConflict,
    InvalidInput,
    Tampered,
    TooManyOpenOrders,
)
from service.base.messages import Message
from service.queries import service
from service.queries.schemas import QueriesReply, QuestionReply
from service.queries.service import Asked
from service.releases.bundles import Bundles
from service.releases.endpoints import ORDER_REFUSALS
from service.releases.models import Release
from service.releases.priority import DESCRIPTION, urgency
from service.releases.schemas import EstimateReply, PriceReply, ReleaseReply, SharesReply
from service.requests.problems import problems

router = APIRouter(prefix="/v1", tags=["queries"])

BODY = {
    "requestBody": {
        "required": True,
        "description": "One question with its price, or several in `questions` with one price for all of them. `where` is a condition as "
        '`age>=65&sex=f`, a list of such, or JSON like {"age": {"minimum": 65}}. `dry_run`: price only.',
        "content": {
            "application/json": {
                "schema": {"type": "object"},
                "example": {"kind": "count", "where": "age>=65", "epsilon": 0.1},
            }
        },
    }
}


@router.post(
    "/datasets/{dataset_id}/queries",
    dependencies=[
        ReadingTurnAfterBody
    ],  # up to a hundred answers, each out of a ZIP, and compared with all that were asked before
    status_code=status.HTTP_202_ACCEPTED,
    responses={
        200: {"description": "A quote, or all was asked before: nothing was ordered.", "model": QueriesReply},
        **problems(*ORDER_REFUSALS, BudgetExhausted, IdempotencyConflict, Gone, TooManyOpenOrders, Tampered),
    },
    openapi_extra=BODY,
)
def ask(
    dataset_id: uuid.UUID,
    request: Request,
    response: Response,
    context: ContextOf,
    principal: Analyst,
    body: JsonBody,
    idempotency_key: Annotated[str | None, Header(description="Makes a repeated post harmless.")] = None,
    priority: Annotated[str | None, Header(description=DESCRIPTION)] = None,
) -> QueriesReply:
    """Questions about the private rows, answered with noise by a worker. The price is reserved before anything runs.

    What was asked before on this dataset, at no smaller ε, is answered from that and costs nothing.
    """
    dry_run = body.get("dry_run", False) if isinstance(body, dict) else False
    if not isinstance(dry_run, bool):
        raise InvalidInput(Message("dry_run: true or false"), where="dry_run")
    asked = service.look(context, principal, dataset_id, body, is_dry=dry_run)
    release = None
    if not dry_run:
        release = service.ask(context, principal, dataset_id, asked, idempotency_key, priority=urgency(priority))
    if release is None:
        response.status_code = status.HTTP_200_OK
    else:
        response.headers["Location"] = f"/v1/releases/{release.id}"
    bundles: Bundles = request.app.state.bundles
    answers = service.answers_of(context, principal, asked, bundles.checked_key)
    return _reply(asked, release, answers)


def _reply(asked: Asked, release: Release | None, answers: dict[int, dict[str, Any]]) -> QueriesReply:
    quote = asked.quote
    return QueriesReply(
        questions=_questions(asked, release, answers),
        price=None if quote is None else PriceReply.of(quote.price),
        fits=quote is None or quote.remaining.fits(quote.price.shares),
        remaining=None if quote is None else SharesReply.model_validate(quote.remaining),
        estimate=None if quote is None else EstimateReply.model_validate(quote.estimate),
        forecast=[] if quote is None else [str(each) for each in quote.forecast.sentences],
        warnings=[] if quote is None else quote.warnings,
        release=None if release is None else ReleaseReply.of(release),
    )


def _questions(asked: Asked, release: Release | None, answers: dict[int, dict[str, Any]]) -> list[QuestionReply]:
    found, ordered = [], 0
    for place, key in enumerate(asked.keys):
        earlier = asked.earlier.get(place)
        if earlier is not None:
            found.append(
                QuestionReply(
                    key=key,
                    state="answered" if earlier.is_published else "waiting",
                    release_id=earlier.release_id,
                    place=earlier.place,
                    answer=answers.get(place),
                )
            )
            continue
        release_id = None if release is None else release.id
        state: Literal["quoted", "ordered"] = "quoted" if release is None else "ordered"
        found.append(QuestionReply(key=key, state=state, release_id=release_id, place=ordered, answer=None))
        ordered += 1
    return found
