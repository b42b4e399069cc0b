"""`POST /v1/publish`: a table in, a synthetic table out, in one call."""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Header, Request, Response, status
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import ContextOf, Owner
from service.auth.principal import Principal
from service.base.errors import (
    BudgetExhausted,
    DuplicateRows,
    Gone,
    IdempotencyConflict,
    ImprimaturError,
    InvalidFile,
    InvalidInput,
    InvalidSchema,
    NameTaken,
    NotInRelease,
    TooManyOpenOrders,
)
from service.base.text import read_json
from service.datasets import service as datasets
from service.datasets.declaration import Declaration, declaration_of
from service.datasets.models import Dataset
from service.datasets.schemas import DatasetReply
from service.intake.caller import Caller
from service.methods.catalogue import check_makes_rows, check_order, parse_order
from service.methods.knobs import AnyOrder
from service.platform.context import Context
from service.privacy.filters import Budget
from service.privacy.statements import choose_delta
from service.releases import names, service
from service.releases.endpoints import ORDER_REFUSALS, SAMPLE_CONTENT
from service.releases.models import ENDED, Release
from service.releases.priority import DESCRIPTION, urgency
from service.releases.repository import Ground
from service.releases.sampling import SampleRequest, sample_response
from service.releases.schemas import ReleaseReply
from service.releases.watching import Watching, wait_for_end
from service.requests.problems import problems
from service.requests.uploads import TABLE_PROPERTIES, Upload, in_turn, multipart_body, receive_upload
from service.samples.formats import FORMATS, default_format

router = APIRouter(prefix="/v1", tags=["publish"])

MOST_NOTICES = 20
"""In a header, which proxies bound."""

DEFAULTS = f"Default {default_format('rows')}, of images {default_format('images')}."
PROPERTIES: dict[str, Any] = {
    **TABLE_PROPERTIES,
    "order": {"type": "string", "description": 'JSON: {"epsilon": 4}.'},
    "rows": {"type": "string", "description": "How many synthetic rows come back; default 1000."},
    "format": {"type": "string", "enum": list(FORMATS), "description": DEFAULTS},
}


@dataclass(frozen=True, slots=True)
class Placing:
    """What the headers say of the order."""

    idempotency_key: str | None
    priority: int
    name: str | None


@router.post(
    "/publish",
    response_class=Response,
    responses={
        200: {"description": "The synthetic sample.", "content": SAMPLE_CONTENT},
        202: {"description": "Not done yet: the release to watch.", "model": ReleaseReply},
        **problems(
            *(InvalidSchema, InvalidFile, *ORDER_REFUSALS),
            *(DuplicateRows, BudgetExhausted, IdempotencyConflict, NameTaken, Gone, NotInRelease, TooManyOpenOrders),
        ),
    },
    openapi_extra=multipart_body(["file", "schema", "budget", "order"], PROPERTIES),
)
async def publish(
    request: Request,
    context: ContextOf,
    principal: Owner,
    prefer: Annotated[str | None, Header(description="wait=N: wait up to N seconds for the sample.")] = None,
    idempotency_key: Annotated[str | None, Header(description="Of the order; makes a repeated post harmless.")] = None,
    priority: Annotated[str | None, Header(description=DESCRIPTION)] = None,
    release_name: Annotated[str | None, Header(description=names.DESCRIPTION)] = None,
) -> Response:
    """Upload a table, give it a budget and order a release at once.

    With `Prefer: wait=N` the sample comes back if it is ready within N seconds; otherwise 202 and the release. What the upload did
    to cells (moved to the end of a range, made missing) is a JSON list in the header `X-Notices`; what must be
    said beside the promise (a large ε or δ) and of what the order buys (next to nothing), in `X-Warnings`. A method that
    returns answers instead of rows is refused before anything is uploaded; an order that the budget has no room for, or that is
    one open order too many, before a dataset is made. Sent again with the same `Idempotency-Key`, because the reply was lost, it
    answers with the release of the first time, or goes on where the first time ended; with another order that is a conflict.
    Without a key the rows are refused as known.
    """
    placing = Placing(idempotency_key, urgency(priority), names.checked_name(release_name))
    wait_seconds = min(_wait_seconds(prefer), context.settings.wait_limit_seconds)
    async with receive_upload(request, principal.tenant_id, allowed=set(PROPERTIES)) as upload:
        sample = _wanted_sample(upload)
        dataset, notices, release = await in_turn(
            request,
            principal.tenant_id,
            lambda caller: _upload_and_order(context, principal, upload, caller, placing),
        )
    headers = {"X-Dataset-Id": str(dataset.id), "X-Release-Id": str(release.id)}
    if notices:
        headers["X-Notices"] = json.dumps(notices[:MOST_NOTICES])
    of_release = ReleaseReply.of(release).warnings
    if warnings := [*of_release, *(each for each in DatasetReply.of(dataset).warnings if each not in of_release)]:
        headers["X-Warnings"] = json.dumps(warnings)
    release = await _wait(request.app.state.watching, context, principal, release, wait_seconds)
    if release.state == "published":
        return await sample_response(request, context, release, sample, headers)
    body = ReleaseReply.of(release).model_dump(mode="json")
    location = {"Location": f"/v1/releases/{release.id}"}
    return JSONResponse(body, status.HTTP_202_ACCEPTED, {**headers, **location})


def _upload_and_order(
    context: Context,
    principal: Principal,
    upload: Upload,
    caller: Caller,
    placing: Placing,
) -> tuple[Dataset, list[str], Release]:
    """Everything that can be refused without the rows is refused before they are read."""
    declaration = declaration_of(upload)
    document = read_json(upload.required("order"), "order")
    order = parse_order(document)
    check_makes_rows(order)
    check_order(order, declaration.schema)
    service.check_key(placing.idempotency_key)
    digest = service.digest_of(document)
    to_be_ordered = _to_be_ordered(context, principal, declaration, order, placing.idempotency_key, digest)
    try:
        dataset, notices = datasets.create(context, principal, upload.spool.file, declaration, caller, to_be_ordered)
    except DuplicateRows as known:
        before = _made_before(context, principal, known, declaration, placing.idempotency_key, digest)
        if before is None:
            raise
        dataset, notices = before, []
    return dataset, notices, _order(context, principal, dataset, document, placing)


def _to_be_ordered(
    context: Context,
    principal: Principal,
    declaration: Declaration,
    order: AnyOrder,
    idempotency_key: str | None,
    digest: bytes,
) -> datasets.ToBeOrdered:
    """No dataset is made for an order that it would refuse. Prices need the number of units, which is public, and no row."""
    unit = declaration.privacy_unit

    def check(units: int, budget: Budget) -> None:
        ground = Ground.of_new(
            declaration.schema, units=units, most_per_unit=1 if unit is None else unit.most, budget=budget
        )
        service.check_first_order(context, principal, order, ground, idempotency_key)

    return datasets.ToBeOrdered(check, idempotency_key, digest)


def _order(context: Context, principal: Principal, dataset: Dataset, document: Any, placing: Placing) -> Release:
    try:
        return service.order_release(
            context,
            principal,
            dataset.id,
            document,
            placing.idempotency_key,
            priority=placing.priority,
            name=placing.name,
        )
    except ImprimaturError as error:
        # The upload stands; its owner must learn where it is.
        error.values["dataset_id"] = str(dataset.id)
        raise


def _made_before(
    context: Context,
    principal: Principal,
    known: DuplicateRows,
    declaration: Declaration,
    idempotency_key: str | None,
    digest: bytes,
) -> Dataset | None:
    """What the same request made when its reply was lost, or before it ended: the same rows, declaration and budget under the same key.

    Raises `IdempotencyConflict` where it had another order, `digest` being that of this one.
    """
    if idempotency_key is None or not known.values.get("same_declaration"):
        return None
    dataset = datasets.find(context, principal, uuid.UUID(known.values["dataset_id"]))
    budget = declaration.budget
    if (dataset.epsilon, dataset.delta) != (budget.epsilon, choose_delta(budget.delta, dataset.units)):
        return None
    is_its_own = dataset.idempotency_key == idempotency_key
    if is_its_own and dataset.order_digest not in {None, digest}:
        raise service.other_body(dataset_id=str(dataset.id))
    return dataset if is_its_own or service.has_ordered(context, principal, idempotency_key) else None


def _wanted_sample(upload: Upload) -> SampleRequest:
    rows = upload.fields.get("rows", "1000")
    if not rows.isascii() or not rows.isdigit() or len(rows) > 12:
        raise InvalidInput("rows: give a whole number, like 1000", where="rows")
    sample_format = upload.fields.get("format")
    if sample_format is not None and sample_format not in FORMATS:
        raise InvalidInput(f"format: choose one of {', '.join(FORMATS)}", where="format")
    return SampleRequest(int(rows), sample_format)


async def _wait(
    watching: Watching, context: Context, principal: Principal, release: Release, seconds: float
) -> Release:
    """The release once it has ended or the time is over. Holds no thread while it waits."""
    if release.state in ENDED or seconds <= 0.0:
        return release
    await wait_for_end(watching, principal, release.id, seconds)
    return await run_in_threadpool(service.find, context, principal, release.id)


def _wait_seconds(prefer: str | None) -> float:
    """The N of `Prefer: wait=N` (RFC 7240); other preferences are ignored, as the RFC asks."""
    found = re.search(r"(?:^|[,;\s])wait\s*=\s*\"?(\d{1,9})", prefer or "", re.IGNORECASE)
    return float(found.group(1)) if found else 0.0
