"""Samples as the API and the page stream them: what may be asked of one, and the reply.

A dependency and a reply, for every endpoint that draws; what is drawn is `service/samples`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

from fastapi import Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool

from service.base.errors import InvalidInput, NotInRelease
from service.base.messages import Message
from service.base.text import read_json, ungrouped
from service.platform.context import Context
from service.releases.answers import not_a_generator
from service.releases.bundles import Bundles
from service.releases.models import Release
from service.releases.names import attachment
from service.releases.open_samples import OpenSamples
from service.samples.cache import SamplerCache
from service.samples.formats import FORMATS, SampleFormat, default_format, described_formats, media_type
from service.samples.formulas import Formulas
from service.samples.request import Wanted

if TYPE_CHECKING:
    from service.samples.samplers import Sampler
    from service.samples.table.base import Columns
    from service.samples.table.written import RowColumn

DEFAULT_ROWS = 1_000
OF_ROWS = Query(description="How many synthetic rows; any number, streamed.")
MOST_CONDITIONS, MOST_CONDITION_CHARACTERS, MOST_WEIGHTS_CHARACTERS = 64, 4_000, 16_000


@dataclass(frozen=True)
class SampleRequest:
    """Which rows or images, and how they are written. No format: the default one of rows or of images."""

    rows: int
    format: SampleFormat | None = None
    where: Sequence[str] | None = None
    seed: int | None = None
    formulas: Formulas = "keep"
    weights: str | None = None
    decimal_comma: bool = False
    """Whether the caller's spreadsheet writes numbers so: known of the page, by its language, and of no other caller."""


def _plain(text: Any) -> Any:
    """As callers write it: 1.000, which may be meant as one or as a thousand, is neither."""
    if isinstance(text, str) and ("." in text or "_" in text):
        raise ValueError(Message("give a whole number in digits alone, like 1000"))
    return text


def _typed(text: Any) -> Any:
    """As people type it; what is no count is refused in words for the page."""
    found = ungrouped(text)
    if isinstance(found, str) and not (found.strip().isascii() and found.strip().isdecimal()):
        raise ValueError(Message("write a whole number, for example 1000"))
    return found


RowCount = Annotated[int, Field(ge=0), BeforeValidator(_plain)]
TypedRowCount = Annotated[int, Field(ge=0), BeforeValidator(_typed)]
"""As people type it into the form of the page: 1.000 is a thousand."""


def any_rows(
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
            " a spreadsheet, with an apostrophe before them (escape; the format excel always does)."
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
    """The query of a sample, but for how many rows."""
    return SampleRequest(DEFAULT_ROWS, format, where, seed, formulas, weights)


def sample_request(
    sample: Annotated[SampleRequest, Depends(any_rows)], rows: Annotated[RowCount, OF_ROWS] = DEFAULT_ROWS
) -> SampleRequest:
    """The query of a sample."""
    return replace(sample, rows=rows)


def typed_request(
    sample: Annotated[SampleRequest, Depends(any_rows)], rows: Annotated[TypedRowCount, OF_ROWS] = DEFAULT_ROWS
) -> SampleRequest:
    """A request for a sample from the form of the page."""
    return replace(sample, rows=rows)


async def sample_response(
    request: Request,
    context: Context,
    release: Release,
    sample: SampleRequest,
    headers: dict[str, str] | None = None,
    *,
    stem: str = "synthetic",
) -> StreamingResponse:
    """A stream of rows; a wrong request is refused before the first byte. stem: of the name of the file, as `file_stem` makes it safe."""
    limit = context.settings.sample_rows_limit
    if sample.rows > limit:
        raise InvalidInput(Message("rows: ask for at most %(limit)s at a time", limit=limit), where="rows")
    open_samples: OpenSamples = request.app.state.open_samples
    with open_samples.open(release.tenant_id) as one:
        sampler = await run_in_threadpool(sampler_of, request, release)
        from service.samples.samplers import content_of  # noqa: PLC0415 - large libraries: loaded with the sampler
        from service.samples.streams import stream  # noqa: PLC0415 - as above

        weights = None if sample.weights is None else read_json(sample.weights.encode(), "weights")
        chosen = sample.format or default_format(content_of(sampler))
        wanted = Wanted(
            sample.rows,
            seed=sample.seed,
            where=sample.where,
            formulas=sample.formulas,
            each=one.each,
            weights=weights,
            decimal_comma=sample.decimal_comma,
        )
        pieces = await one.draw(lambda: stream(sampler, wanted, chosen))
        named = {"Content-Disposition": attachment(stem, FORMATS[chosen].ending)}
        return one.reply(pieces, media_type(chosen), {**named, **(headers or {})})


async def drawn_columns(
    request: Request, release: Release, rows: int, seed: int
) -> tuple[Sequence[RowColumn], list[Columns]]:
    """The columns of a release of rows, and chunks of drawn ones, for what is computed here and not sent as a file."""
    open_samples: OpenSamples = request.app.state.open_samples
    with open_samples.open(release.tenant_id) as one:
        sampler = await run_in_threadpool(sampler_of, request, release)
        from service.samples.table.sampler import TableSampler  # noqa: PLC0415 - large libraries: loaded with the sampler

        if not isinstance(sampler, TableSampler):
            raise InvalidInput(Message("this release makes images, which have no columns"), where="release")
        chunks = await one.draw(lambda: sampler.draws(rows, seed=seed, each=one.each))
        drawn: list[Columns] = []
        while (chunk := await one.draw(lambda: next(chunks, None))) is not None:
            drawn.append(chunk)
        return sampler.columns, drawn


def sampler_of(request: Request, release: Release) -> Sampler:
    """The sampler of a published release."""
    samplers: SamplerCache = request.app.state.samplers
    bundles: Bundles = request.app.state.bundles
    try:
        return samplers.get(bundles.checked_key(release))
    except NotInRelease:
        raise not_a_generator(release.id) from None


def bundle_reply(release_id: UUID, pieces: Iterator[bytes]) -> StreamingResponse:
    """The published ZIP as a file."""
    disposition = f'attachment; filename="generator-{release_id}.zip"'
    return StreamingResponse(pieces, media_type="application/zip", headers={"Content-Disposition": disposition})


def picture_reply(picture: bytes) -> Response:
    """A preview. The next one is another picture at the same address."""
    return Response(picture, media_type="image/png", headers={"Cache-Control": "no-store"})
