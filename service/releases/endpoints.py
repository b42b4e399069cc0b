"""`/v1/datasets/{id}/quotes|releases` and `/v1/releases`: order, watch, cancel, and fetch what was published."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Header, Query, Request, Response, status
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import Analyst, ContextOf, JsonBody, Reader
from service.auth.reading import ReadingTurn
from service.base.errors import (
    BudgetExhausted,
    Gone,
    IdempotencyConflict,
    InvalidInput,
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
from service.base.text import read_json
from service.platform.context import Context
from service.platform.paging import DEFAULT_LIMIT, Page
from service.privacy.events import noise_multipliers
from service.releases import names, service
from service.releases.answers import answers_of_bundle, not_a_generator
from service.releases.bundles import Bundles
from service.releases.models import Release
from service.releases.open_samples import OpenSamples
from service.releases.priority import DESCRIPTION, urgency
from service.releases.schemas import EstimateReply, PriceReply, QuoteReply, ReleaseList, ReleaseReply, SharesReply
from service.releases.watching import EVENTS_TYPE, ReleaseEvents
from service.requests.paging import Before, Limit
from service.requests.problems import problems
from service.samples.cache import SamplerCache
from service.samples.formats import FORMATS, SampleFormat, default_format, described_formats, media_type
from service.samples.formulas import Formulas

if TYPE_CHECKING:
    from service.samples.samplers import Sampler

router = APIRouter(prefix="/v1", tags=["releases"])

MOST_CONDITIONS, MOST_CONDITION_CHARACTERS, MOST_WEIGHTS_CHARACTERS = 64, 4_000, 16_000

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
ORDER_REFUSALS = (InvalidOrder, Unpriceable, TooMuchWork, TooExpensiveToPrice, PricingBusy)


@router.post("/datasets/{dataset_id}/quotes", responses=problems(*ORDER_REFUSALS), openapi_extra=ORDER_BODY)
def quote(dataset_id: uuid.UUID, context: ContextOf, principal: Reader, body: JsonBody) -> QuoteReply:
    """The price of an order and whether it fits now. Reserves nothing and reads no private row."""
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
        warnings=quoted.warnings,
    )


@router.post(
    "/datasets/{dataset_id}/releases",
    status_code=status.HTTP_202_ACCEPTED,
    responses=problems(*ORDER_REFUSALS, BudgetExhausted, IdempotencyConflict, NameTaken, Gone, TooManyOpenOrders),
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

    Workers serve tenants in turn, and the keys of a tenant in turn; 429 `too_many_open_orders` when as many wait as may.
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


@dataclass(frozen=True)
class SampleRequest:
    """Which rows or images, and how they are written. No format: the default one of rows or of images."""

    rows: int
    format: SampleFormat | None = None
    where: Sequence[str] | None = None
    seed: int | None = None
    formulas: Formulas = "keep"
    weights: str | None = None


def sample_request(
    rows: Annotated[int, Query(ge=0, description="How many synthetic rows; any number, streamed.")] = 1_000,
    format: Annotated[SampleFormat | None, Query(description=described_formats())] = None,  # noqa: A002
    where: Annotated[
        list[Annotated[str, Field(max_length=MOST_CONDITION_CHARACTERS)]] | None,
        Query(
            max_length=MOST_CONDITIONS,
            description="Only such rows: `age>=65&sex=f` (percent-encoded), `rank in [1, 2]`, `age not missing`, COLUMN:VALUE,"
            ' or JSON like {"age": {"minimum": 65}}. Several must all be met. Of images label:CLASS, once.',
        ),
    ] = None,
    seed: Annotated[int | None, Query(ge=0, lt=2**63, description="Repeats the rows of as large a sample.")] = None,
    formulas: Annotated[
        Formulas,
        Query(
            description="CSV texts that a spreadsheet would carry out: as they are, or, for those who open the file in"
            " a spreadsheet, with an apostrophe before them (escape)."
        ),
    ] = "keep",
    weights: Annotated[
        str | None,
        Query(
            max_length=MOST_WEIGHTS_CHARACTERS,
            description='JSON: how often values shall come, {"income": {">50K": 0.5, "<=50K": 0.5}} or {"sex": "uniform"}.',
        ),
    ] = None,
) -> SampleRequest:
    """The query of a sample."""
    return SampleRequest(rows, format, where, seed, formulas, weights)


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
    picture = service.read_preview(context, principal, release_id)
    return Response(picture, media_type="image/png", headers={"Cache-Control": "no-store"})


@router.get(
    "/releases/{release_id}/generator",
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
    release = service.find_published(context, principal, release_id)
    name = f"generator-{release_id}.zip"
    return StreamingResponse(
        context.storage.stream_content(_bundle_key(request, release)),
        media_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


@router.get(
    "/releases/{release_id}/answers", dependencies=[ReadingTurn], responses=problems(NotReady, NotInRelease, Tampered)
)
def read_answers(request: Request, release_id: uuid.UUID, context: ContextOf, principal: Reader) -> dict[str, Any]:
    """The answers of a release that holds some instead of a generator. Reading them costs no budget, however often."""
    release = service.find_published(context, principal, release_id)
    return answers_of_bundle(context.storage.get_content(_bundle_key(request, release)), release_id)


@router.get("/releases/{release_id}/certificate", dependencies=[ReadingTurn], responses=problems(NotReady))
def read_certificate(release_id: uuid.UUID, context: ContextOf, principal: Reader) -> dict[str, Any]:
    """What exactly is promised about this release, signed."""
    return service.find_published(context, principal, release_id).certificate or {}


async def sample_response(
    request: Request,
    context: Context,
    release: Release,
    sample: SampleRequest,
    headers: dict[str, str] | None = None,
) -> StreamingResponse:
    """A stream of rows; a wrong request is refused before the first byte."""
    limit = context.settings.sample_rows_limit
    if sample.rows > limit:
        raise InvalidInput(f"rows: ask for at most {limit} at a time", where="rows")
    from service.samples.samplers import content_of  # noqa: PLC0415 - large libraries: see samples.cache.expect_samples
    from service.samples.streams import stream_rows  # noqa: PLC0415 - as above

    open_samples: OpenSamples = request.app.state.open_samples
    with open_samples.open(release.tenant_id) as one:
        sampler = await run_in_threadpool(sampler_of, request, release)
        weights = None if sample.weights is None else read_json(sample.weights.encode(), "weights")
        chosen = sample.format or default_format(content_of(sampler))
        pieces = await one.draw(
            lambda: stream_rows(
                sampler,
                rows=sample.rows,
                format=chosen,
                seed=sample.seed,
                where=sample.where,
                weights=weights,
                formulas=sample.formulas,
                each=one.each,
            )
        )
        disposition = f'attachment; filename="synthetic.{chosen}"'
        return one.reply(pieces, media_type(chosen), {"Content-Disposition": disposition, **(headers or {})})


def sampler_of(request: Request, release: Release) -> Sampler:
    """The sampler of a published release."""
    samplers: SamplerCache = request.app.state.samplers
    try:
        return samplers.get(_bundle_key(request, release))
    except NotInRelease:
        raise not_a_generator(release.id) from None


def _bundle_key(request: Request, release: Release) -> str:
    """The key of the ZIP that the release's certificate signs; see `Bundles.checked_key`."""
    bundles: Bundles = request.app.state.bundles
    return bundles.checked_key(release)
