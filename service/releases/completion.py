"""`POST /v1/releases/{id}/complete`: rows of the caller's own, with what they lack drawn from a published generator."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from service.auth.dependencies import ContextOf, Reader
from service.base.errors import CallerLeft, InvalidInput, NotInRelease, NotReady, Tampered, TooLarge
from service.base.messages import Message, fault_of
from service.intake.sent_rows import rows_of_parquet
from service.platform.context import Context
from service.releases import service
from service.releases.endpoints import BINARY
from service.releases.models import Release
from service.releases.open_samples import OpenSample, OpenSamples
from service.releases.sampling import sampler_of
from service.requests.problems import problems
from service.samples.formats import FORMATS, media_type
from service.samples.formulas import Formulas

if TYPE_CHECKING:
    from service.samples.table.base import Columns
    from service.samples.table.sampler import TableSampler

router = APIRouter(prefix="/v1", tags=["releases"])

ROWS_IN = {media_type(name).partition(";")[0]: name for name in ("csv", "jsonl", "parquet")}
COMPLETE_CONTENT = dict.fromkeys(ROWS_IN, BINARY)
_MOST_CELLS = 2_000_000
"""Of the rows of one request: what bounds its memory, since an empty cell is one byte of the request and ten times that here."""
COMPLETE_BODY = {"requestBody": {"required": True, "content": COMPLETE_CONTENT}}


@router.post(
    "/releases/{release_id}/complete",
    response_class=StreamingResponse,
    responses={
        200: {"description": "The rows with all columns, in the format they came in.", "content": COMPLETE_CONTENT},
        **problems(NotReady, NotInRelease, Tampered, TooLarge),
    },
    openapi_extra=COMPLETE_BODY,
)
async def complete_rows(
    release_id: uuid.UUID,
    request: Request,
    context: ContextOf,
    principal: Reader,
    seed: Annotated[int | None, Query(ge=0, lt=2**63, description="Repeats the values for the same rows.")] = None,
    formulas: Annotated[
        Formulas,
        Query(
            description="CSV texts that a spreadsheet would run as formulas: as they are, or with an apostrophe before them."
        ),
    ] = "keep",
) -> StreamingResponse:
    """Fill in what your rows lack, one draw a row, given what they have. Costs no budget: the published generator alone is read.

    Send rows of your own (CSV, JSON lines or Parquet, by Content-Type), never private rows of somebody else: they are
    compared with nothing, kept nowhere, and protected by no budget. A column that is not there is drawn; an empty cell or
    null is drawn, too, but not as missing. A row that the generator cannot make is refused with its number, and so
    are all rows with it.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in ROWS_IN:
        raise InvalidInput(Message("send the rows as %(types)s", types=", ".join(ROWS_IN)), where="content-type")
    try:
        content = await request.body()
    except ClientDisconnect:
        raise CallerLeft("the caller has left; nothing of the rows was kept") from None
    format_ = ROWS_IN[kind]
    release = await run_in_threadpool(service.find_published, context, principal, release_id)
    open_samples: OpenSamples = request.app.state.open_samples
    with open_samples.open(release.tenant_id) as one:
        sampler = await run_in_threadpool(_table_sampler, request, release)
        from service.samples.request import Wanted  # noqa: PLC0415 - large libraries: loaded with the sampler
        from service.samples.streams import WRITERS  # noqa: PLC0415 - as above

        rows = await one.draw(lambda: _sent(context, content, format_))
        drawn = await _completed(one, sampler, rows, seed, as_spelled=format_ != "parquet")
        pieces = WRITERS[format_](sampler, Wanted(0, formulas=formulas, drawn=drawn))
        disposition = f'attachment; filename="completed.{FORMATS[format_].endings[0]}"'
        return one.reply(pieces, media_type(format_), {"Content-Disposition": disposition})


def _table_sampler(request: Request, release: Release) -> TableSampler:
    from service.samples.table.sampler import TableSampler  # noqa: PLC0415 - large libraries: see samples.cache.expect_samples

    sampler = sampler_of(request, release)
    if not isinstance(sampler, TableSampler):
        raise InvalidInput(
            Message("this release makes images; rows are completed from a release of rows"), where="release"
        )
    return sampler


def _sent(context: Context, content: bytes, format_: str) -> list[dict[str, Any]]:
    """The rows that were sent; reading takes as long as drawing some, so it waits for the tenant's turn as that does."""
    from service.samples.table.base import SamplingError  # noqa: PLC0415 - large libraries: see samples.cache.expect_samples
    from service.samples.table.completing import Most, TooManyCells, rows_of_csv, rows_of_jsonl  # noqa: PLC0415 - as above

    most_rows = context.settings.complete_rows_limit
    if format_ == "parquet":
        return rows_of_parquet(content, context.settings.scratch_dir, most_rows=most_rows, most_cells=_MOST_CELLS)
    try:
        return {"csv": rows_of_csv, "jsonl": rows_of_jsonl}[format_](content, Most(most_rows, _MOST_CELLS))
    except TooManyCells as error:
        raise TooLarge(fault_of(error), limit_rows=most_rows, limit_cells=_MOST_CELLS) from None
    except SamplingError as error:
        raise InvalidInput(fault_of(error), where="rows") from None


async def _completed(
    one: OpenSample, sampler: TableSampler, rows: list[dict[str, Any]], seed: int | None, *, as_spelled: bool
) -> list[Columns]:
    """All rows, completed a few at a time, so that samples have their turns between."""
    from service.samples.table.base import SamplingError  # noqa: PLC0415 - large libraries: see samples.cache.expect_samples

    drawn: list[Columns] = []
    try:
        chunks = await one.draw(lambda: sampler.completed(rows, seed=seed, as_spelled=as_spelled))
        while (chunk := await one.draw(lambda: next(chunks, None))) is not None:
            drawn.append(chunk)
    except SamplingError as error:
        raise InvalidInput(fault_of(error), where="rows") from None
    return drawn
