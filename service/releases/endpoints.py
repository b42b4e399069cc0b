"""`/v1/datasets/{id}/quotes|releases` and `/v1/releases`: order, watch, cancel, and fetch what was published."""

from __future__ import annotations

import uuid
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Request, Response, status
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import Analyst, ContextOf, JsonBody, Reader
from service.auth.reading import ReadingTurn
from service.base.errors import (
    AlreadyOrdered,
    BudgetExhausted,
    DeclarationNeeded,
    Gone,
    IdempotencyConflict,
    InvalidOrder,
    NameTaken,
    NotCancellable,
    NotInRelease,
    NotReady,
    PricingBusy,
    RateLimited,
    Tampered,
    TooExpensiveToPrice,
    TooManyOpenOrders,
    TooMuchWork,
    Unpriceable,
)
from service.datasets.schemas import BoughtReply
from service.methods.wants import Want
from service.platform.paging import DEFAULT_LIMIT, Page
from service.privacy.events import noise_multipliers
from service.releases import names, service
from service.releases.priority import DESCRIPTION, urgency
from service.releases.sampling import SampleRequest, bundle_reply, picture_reply, sample_request, sample_response
from service.releases.schemas import (
    EstimateReply,
    ForecastReply,
    PriceReply,
    QuoteReply,
    ReleaseList,
    ReleaseReply,
    SharesReply,
    WantedReply,
)
from service.releases.watching import EVENTS_TYPE, ReleaseEvents
from service.requests.paging import Before, Limit
from service.requests.problems import problems
from service.samples.formats import FORMATS, media_type

router = APIRouter(prefix="/v1", tags=["releases"])

ORDER_SCHEMA = "#/components/schemas/Order"
"""Written by `service/http/openapi.py` from the order classes."""

BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
SAMPLE_CONTENT = {media_type(each).partition(";")[0]: BINARY for each in FORMATS}


ORDER_BODY = {
    "requestBody": {
        "required": True,
        "description": "An order; one of `epsilon`, `share` is enough. Default method: `auto`.",
        "content": {
            "application/json": {
                "schema": {"$ref": ORDER_SCHEMA},
                "example": {"epsilon": 4},
            }
        },
    }
}
ORDER_REFUSALS = (InvalidOrder, DeclarationNeeded, Unpriceable, TooMuchWork, TooExpensiveToPrice, PricingBusy)


QUOTE_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": 'An order; and, if you like, what is wanted of it: `"want": {"group": 200, "within": 0.1}` or `{"two_way_tv": 0.05}`. '
        "Then ε may be left out, and the least that gives it is quoted.",
        "content": {
            "application/json": {
                "schema": {
                    "anyOf": [
                        {"$ref": ORDER_SCHEMA},
                        {"type": "object", "required": ["want"], "properties": {"want": Want.model_json_schema()}},
                    ]
                },
                "examples": {
                    "order": {"value": {"epsilon": 4}},
                    "want": {"value": {"want": {"group": 200, "within": 0.1}}},
                },
            }
        },
    }
}


@router.post("/datasets/{dataset_id}/quotes", responses=problems(*ORDER_REFUSALS), openapi_extra=QUOTE_BODY)
def quote(dataset_id: uuid.UUID, context: ContextOf, principal: Reader, body: JsonBody) -> QuoteReply:
    """The price of an order, whether it fits now, and how exact its result will be. Reserves nothing and reads no private row."""
    quoted = service.quote(context, principal, dataset_id, body)
    first, last = noise_multipliers(quoted.price.events)
    return QuoteReply(
        order=quoted.order.model_dump(mode="json"),
        price=PriceReply.of(quoted.price),
        steps=quoted.order.progress_steps,
        first_noise_multiplier=first,
        last_noise_multiplier=last,
        estimate=EstimateReply.model_validate(quoted.estimate),
        fits=quoted.remaining.fits(quoted.price.shares),
        remaining=SharesReply.model_validate(quoted.remaining),
        forecast=ForecastReply.model_validate(quoted.forecast),
        bought=[BoughtReply(**one) for one in quoted.bought],
        wanted=None if quoted.wanted is None else WantedReply.model_validate(quoted.wanted),
        warnings=quoted.warnings,
    )


@router.post(
    "/datasets/{dataset_id}/releases",
    status_code=status.HTTP_202_ACCEPTED,
    responses=problems(
        *ORDER_REFUSALS, BudgetExhausted, IdempotencyConflict, NameTaken, AlreadyOrdered, Gone, TooManyOpenOrders
    ),
    openapi_extra=ORDER_BODY,
)
def order_release(
    dataset_id: uuid.UUID,
    response: Response,
    context: ContextOf,
    principal: Analyst,
    body: JsonBody,
    idempotency_key: Annotated[str | None, Header(description="Makes a repeated post harmless.")] = None,
    priority: Annotated[str | None, Header(description=DESCRIPTION)] = None,
    release_name: Annotated[str | None, Header(description=names.DESCRIPTION)] = None,
) -> ReleaseReply:
    """Order a release. Its price is reserved before anything runs; 409 `budget_exhausted` when it does not fit.

    Workers serve tenants in turn, and the keys of a tenant in turn; 429 `too_many_open_orders` when too many wait.
    """
    name = names.checked_name(release_name)
    release = service.order_release(
        context, principal, dataset_id, body, idempotency_key, priority=urgency(priority), name=name
    )
    response.headers["Location"] = f"/v1/releases/{release.id}"
    return ReleaseReply.of(release)


@router.get("/releases", dependencies=[ReadingTurn])
def list_releases(
    context: ContextOf,
    principal: Reader,
    dataset_id: uuid.UUID | None = None,
    limit: Limit = DEFAULT_LIMIT,
    before: Before = None,
) -> ReleaseList:
    """Your tenant's releases, newest first. A certificate of more than 64 kB is null here, and read at its address."""
    releases, following = service.list_page(context, principal, dataset_id, Page.of(limit, before))
    return ReleaseList(items=[ReleaseReply.of(release) for release in releases], next=following)


@router.get("/releases/{release_id}")
def read_release(release_id: uuid.UUID, context: ContextOf, principal: Reader) -> ReleaseReply:
    """One release: state, price, progress, and its certificate once published."""
    return ReleaseReply.of(service.find(context, principal, release_id))


@router.get(
    "/releases/{release_id}/events",
    response_class=StreamingResponse,
    responses={200: {"description": "Server-sent events.", "content": {EVENTS_TYPE: {}}}, **problems(RateLimited)},
)
async def watch_release(
    release_id: uuid.UUID, request: Request, context: ContextOf, principal: Reader
) -> StreamingResponse:
    """Server-sent events: `progress` while it runs, `state` at every change; the stream ends with the release.

    It ends with `problem`, too, within seconds of the end of the key that opened it. A key has 20 open streams at most.
    """
    await run_in_threadpool(service.find_own, context, principal, release_id)
    return ReleaseEvents(request.app.state.watching, principal, release_id)


@router.post("/releases/{release_id}/cancel", responses=problems(NotCancellable))
def cancel_release(release_id: uuid.UUID, context: ContextOf, principal: Analyst) -> ReleaseReply:
    """Stop a release. Before its first private step it costs nothing; afterwards the charge is settled."""
    return ReleaseReply.of(service.cancel(context, principal, release_id))


@router.get(
    "/releases/{release_id}/sample",
    response_class=StreamingResponse,
    responses={
        200: {"description": "Synthetic rows.", "content": SAMPLE_CONTENT},
        **problems(NotReady, NotInRelease, Tampered),
    },
)
async def read_sample(
    release_id: uuid.UUID,
    request: Request,
    context: ContextOf,
    principal: Reader,
    sample: Annotated[SampleRequest, Depends(sample_request)],
) -> StreamingResponse:
    """Synthetic rows or images from a published release. Drawing them costs no budget, however many.

    A condition or weight that cannot be met is refused before the first byte, with what would be accepted.
    """
    release = await run_in_threadpool(service.find_published, context, principal, release_id)
    return await sample_response(request, context, release, sample)


@router.get(
    "/releases/{release_id}/preview",
    response_class=Response,
    responses={
        200: {"description": "A picture, a class a row.", "content": {"image/png": BINARY}},
        **problems(NotReady),
    },
)
def read_preview(release_id: uuid.UUID, context: ContextOf, principal: Reader) -> Response:
    """What the averaged generator of a release of images makes so far, at its last checkpoint. Costs nothing."""
    return picture_reply(service.read_preview(context, principal, release_id))


@router.get(
    "/releases/{release_id}/generator",
    dependencies=[ReadingTurn],
    response_class=Response,
    responses={
        200: {"description": "The generator, or the answers.", "content": {"application/zip": BINARY}},
        **problems(NotReady, Tampered),
    },
)
def read_generator(request: Request, release_id: uuid.UUID, context: ContextOf, principal: Reader) -> Response:
    """A ZIP that samples without this service: `python sample.py --rows 1000` needs only numpy and onnxruntime.

    Of a release of answers, the ZIP that holds them.
    """
    return bundle_reply(release_id, service.open_bundle(context, principal, request.app.state.bundles, release_id))


@router.get(
    "/releases/{release_id}/answers", dependencies=[ReadingTurn], responses=problems(NotReady, NotInRelease, Tampered)
)
def read_answers(request: Request, release_id: uuid.UUID, context: ContextOf, principal: Reader) -> dict[str, Any]:
    """The answers of a release that holds some instead of a generator. Reading them costs no budget, however often."""
    return service.read_answers(context, principal, request.app.state.bundles, release_id)


@router.get("/releases/{release_id}/certificate", dependencies=[ReadingTurn], responses=problems(NotReady))
def read_certificate(release_id: uuid.UUID, context: ContextOf, principal: Reader) -> dict[str, Any]:
    """What exactly is promised about this release, signed."""
    return service.find_published(context, principal, release_id).signed_certificate
