"""`/releases/{id}`: how far it has come, what it cost, its rows, its certificate, its generator."""

from __future__ import annotations

import datetime as dt
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from imprimatur import explanation
from service.auth.dependencies import ContextOf
from service.base.errors import InvalidInput, NotInRelease, NotReady
from service.datasets import service as datasets
from service.domain.image_schema import ImageSchema
from service.methods.catalogue import CATALOGUE, method_of
from service.pages import synthetic
from service.pages.answered import conditions_of, counts_of
from service.pages.certified import words_of
from service.pages.declared import bought_by, is_purchase
from service.pages.doors import Analyst, OwnForm, PageRoute, PageTurn, Reader, is_owner
from service.pages.error_pages import wants_page
from service.pages.examples import example_condition
from service.pages.languages import has_comma, typed_condition
from service.pages.policy import PAGE_HEADERS
from service.pages.refused import in_words_of_the_form
from service.pages.rendering import page
from service.pages.ways_back import TypedBefore
from service.pages.words import FORMAT_NAMES, KINDS
from service.platform.database import database_time
from service.privacy.filters import NANO
from service.releases import service as releases
from service.releases.models import ACTIVE
from service.releases.names import file_stem, shown_name
from service.releases.not_made import report_not_made
from service.releases.refusals import NOT_ACCEPTED
from service.releases.sampling import SampleRequest, bundle_reply, picture_reply, sample_response, typed_request
from service.requests.problems import status_of
from service.samples.formats import FORMATS, formats_of

if TYPE_CHECKING:
    from service.auth.sessions import SignedIn
    from service.datasets.models import Dataset
    from service.platform.context import Context
    from service.releases.models import Release

router = APIRouter(include_in_schema=False, route_class=PageRoute)

PREVIEW = "preview"


def shown_of(context: Context, visitor: SignedIn, release_id: uuid.UUID) -> dict[str, Any]:
    """What every page of a release shows."""
    release = releases.find(context, visitor.principal, release_id)
    dataset = datasets.find(context, visitor.principal, release.dataset_id)
    is_image = isinstance(dataset.declared_schema, ImageSchema)
    not_made = report_not_made(release.certificate)
    return {
        "release": release,
        "dataset": dataset,
        "name": shown_name(release.name, str(release.order_.get("method", "release")), release.id),
        "is_image": is_image,
        "copies_images": CATALOGUE[release.order_["method"]].takes_parts_of_images,
        "nano": NANO,
        "example": example_condition(dataset.declared_schema),
        "has_answers": CATALOGUE[release.order_["method"]].returns == "answers",
        "is_active": release.state in ACTIVE,
        "lacks_public": _lacks_public(release, dataset),
        "has_report": release.order_.get("report") is not None
        and (release.state == "published" or release.failure == NOT_ACCEPTED)
        and not_made is None,
        "report_not_made": not_made,
        "has_owner_report": bool(release.order_.get("owner_report")) and is_owner(visitor),
        "is_owner": is_owner(visitor),
        "formats": [
            (each, FORMAT_NAMES[each], FORMATS[each].help) for each in formats_of("images" if is_image else "rows")
        ],
        "seconds_left": _seconds_left(context, release),
    }


def _lacks_public(release: Release, dataset: Dataset) -> bool:
    """Whether it ended because the rows of another dataset are gone: its own are there."""
    return (
        release.failure == "erased"
        and dataset.state != "erased"
        and method_of(release.order).also_reads(release.order) is not None
    )


def _seconds_left(context: Context, release: Release) -> float | None:
    """By the pace so far; before the first step by the estimate."""
    if release.state not in ACTIVE or release.estimate is None:
        return None
    if release.step <= 0 or release.steps <= 1:
        return float(release.estimate["seconds_on_a_cpu"])
    with context.statement() as session:
        passed = (database_time(session) - release.created_at) / dt.timedelta(seconds=1)
    return max(0.0, passed * (release.steps - release.step) / release.step)


@router.get("/releases/{release_id}", dependencies=[PageTurn])
def read_release(
    request: Request,
    release_id: uuid.UUID,
    context: ContextOf,
    visitor: Reader,
    before: TypedBefore,
    seen: Annotated[str, Query(max_length=20)] = "",
) -> Response:
    """The whole page. `seen`: who comes from a preview is told why there is none any more."""
    shown = shown_of(context, visitor, release_id)
    answers, bought = None, None
    if shown["has_answers"] and shown["release"].state == "published":
        if is_purchase(shown["release"]):
            bought = bought_by(shown["dataset"].declared_schema, release_id)
        else:
            answers = releases.read_answers(context, visitor.principal, request.app.state.bundles, release_id)[
                "answers"
            ]
    return page(
        request,
        "release.html",
        signed_in=visitor,
        **shown,
        answers=answers,
        bought=bought,
        typed=before,
        was_preview=seen == PREVIEW,
        kinds=KINDS,
        conditions_of=conditions_of,
        counts_of=lambda answer: counts_of(answer, _types_of(shown["dataset"])),
    )


def _types_of(dataset: Dataset) -> dict[str, str]:
    schema = dataset.declared_schema
    return {} if isinstance(schema, ImageSchema) else {field.name: field.type for field in schema.fields}


@router.get("/releases/{release_id}/progress")
def read_progress(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """The part that changes while it runs. When it has ended the whole page is loaded anew."""
    shown = shown_of(context, visitor, release_id)
    reply = page(request, "progress.html", signed_in=visitor, **shown)
    if not shown["is_active"]:
        reply.headers["HX-Refresh"] = "true"
    return reply


@router.get("/releases/{release_id}/preview.png")
def preview(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """Images so far; where it was published since the page was loaded, those of the release, or its page."""
    try:
        return picture_reply(releases.read_preview(context, visitor.principal, release_id))
    except NotReady:
        shown = shown_of(context, visitor, release_id)
        if shown["release"].state != "published":
            raise
    is_shown = shown["is_image"] and not wants_page(request)
    at = "/download?rows=100&format=png&seed=1" if is_shown else f"?seen={PREVIEW}"
    return RedirectResponse(f"/releases/{release_id}{at}", 303, headers=dict(PAGE_HEADERS))


@router.get("/releases/{release_id}/cancel")
def ask_before_cancel(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Analyst) -> Response:
    """What cancelling will cost, before it is done."""
    return page(
        request, "cancel.html", signed_in=visitor, has_begun_since=False, **shown_of(context, visitor, release_id)
    )


@router.post("/releases/{release_id}/cancel", dependencies=[OwnForm], name="cancel_release")
def cancel(
    request: Request,
    release_id: uuid.UUID,
    context: ContextOf,
    visitor: Analyst,
    seen: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """Cancel, and back to the release; asked once more if it has begun since the page said that it costs nothing."""
    if seen == "reserved":
        shown = shown_of(context, visitor, release_id)
        if shown["release"].state == "charged":
            return page(request, "cancel.html", signed_in=visitor, has_begun_since=True, **shown)
    releases.cancel(context, visitor.principal, release_id)
    return RedirectResponse(f"/releases/{release_id}", 303, headers=dict(PAGE_HEADERS))


@router.get("/releases/{release_id}/rows", name="read_sample")
async def read_rows(
    request: Request,
    release_id: uuid.UUID,
    context: ContextOf,
    visitor: Reader,
    where: Annotated[str, Query(max_length=4_000)] = "",
    part: Annotated[int, Query(ge=0, lt=synthetic.ROWS_TO_TURN // synthetic.ROWS_OF_A_PAGE)] = 0,
) -> Response:
    """Synthetic rows in a table, page by page."""
    release = await run_in_threadpool(releases.find_published, context, visitor.principal, release_id)
    shown = await run_in_threadpool(shown_of, context, visitor, release_id)
    drawn, fault = synthetic.Texts([], []), None
    try:
        drawn = await synthetic.draw_texts(
            request, context, release, synthetic.ROWS_TO_TURN, [typed_condition(request, where)] if where else None
        )
    except (InvalidInput, NotInRelease) as error:
        fault = error
    begin = part * synthetic.ROWS_OF_A_PAGE
    values: dict[str, Any] = {
        "columns": drawn.names,
        "rows": drawn.rows[begin : begin + synthetic.ROWS_OF_A_PAGE],
        "numbers": synthetic.numbers_of(shown["dataset"].declared_schema),
        "begin": begin,
        "count": len(drawn.rows),
        "part": part,
        "where": where,
        "fault": None
        if fault is None
        else in_words_of_the_form(request, fault.detail),  # beside the field, so that it can be mended
    }
    status = 200 if fault is None else status_of(fault)
    return page(request, "rows.html", status=status, signed_in=visitor, **shown, **values)


@router.get("/releases/{release_id}/charts", name="read_sample")
async def read_charts(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """Histograms and a map of pairs, of synthetic rows."""
    release = await run_in_threadpool(releases.find_published, context, visitor.principal, release_id)
    shown = await run_in_threadpool(shown_of, context, visitor, release_id)
    count, schema = synthetic.ROWS_TO_COUNT, shown["dataset"].declared_schema
    drawn = await synthetic.draw_columns(request, release, schema, count)
    found = await run_in_threadpool(lambda: (synthetic.histograms(drawn.columns), synthetic.links(drawn.columns)))
    values: dict[str, Any] = {"histograms": found[0], "links": found[1], "count": count, "left_out": drawn.left_out}
    return page(request, "charts.html", signed_in=visitor, **shown, **values)


@router.get("/releases/{release_id}/download", name="read_sample")
async def download(
    request: Request,
    release_id: uuid.UUID,
    context: ContextOf,
    visitor: Reader,
    sample: Annotated[SampleRequest, Depends(typed_request)],
) -> StreamingResponse:
    """A sample as a file, in any format, named after the release. A spreadsheet is taken to be of the page's language."""
    release = await run_in_threadpool(releases.find_published, context, visitor.principal, release_id)
    filled = [typed_condition(request, each) for each in sample.where or () if each]  # a form sends an empty field, too
    asked = replace(sample, where=filled or None, decimal_comma=has_comma(request))
    dataset = await run_in_threadpool(datasets.find, context, visitor.principal, release.dataset_id)
    return await sample_response(request, context, release, asked, stem=file_stem(release.name or dataset.name))


@router.get("/releases/{release_id}/generator.zip", name="read_generator", dependencies=[PageTurn])
def generator(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """The published ZIP."""
    bundles = request.app.state.bundles
    return bundle_reply(release_id, releases.open_bundle(context, visitor.principal, bundles, release_id))


@router.get("/releases/{release_id}/certificate", name="read_certificate", dependencies=[PageTurn])
def read_certificate(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """The certificate for people: one screen in words, then details."""
    release = releases.find_published(context, visitor.principal, release_id)
    shown = shown_of(context, visitor, release_id)
    certificate = release.signed_certificate
    words = words_of(certificate, shown["dataset"])
    return page(request, "certificate.html", signed_in=visitor, **shown, certificate=certificate, words=words)


@router.get("/releases/{release_id}/certificate.json", name="read_certificate", dependencies=[PageTurn])
def certificate_file(release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """The certificate as `imprimatur verify` reads it."""
    release = releases.find_published(context, visitor.principal, release_id)
    headers = {"Content-Disposition": f'attachment; filename="certificate-{release_id}.json"'}
    return JSONResponse(release.signed_certificate, headers=headers)


@router.get("/releases/{release_id}/explanation.html", name="read_certificate", dependencies=[PageTurn])
def read_explanation(release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """The page for a colleague, as a file: it stands alone and names its own policy."""
    release = releases.find_published(context, visitor.principal, release_id)
    dataset = datasets.find(context, visitor.principal, release.dataset_id)
    name = shown_name(release.name, str(release.order_["method"]), release.id)
    text = explanation.page(release.signed_certificate, explanation.Names(dataset.name, name))
    headers = {**PAGE_HEADERS, "Content-Disposition": f'attachment; filename="explanation-{release_id}.html"'}
    return HTMLResponse(text, headers=headers)
