"""`/v1/releases/{id}/report|owner-report`: how good what was published is."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from service.auth.dependencies import ContextOf, Owner, Reader
from service.auth.reading import ReadingTurn
from service.base.errors import Gone, NotInRelease, NotReady, Tampered
from service.releases import reports
from service.releases.report_pages import charged_page, owner_page
from service.requests.problems import problems

router = APIRouter(prefix="/v1", tags=["releases"])

ReportFormat = Annotated[
    Literal["json", "html"] | None,
    Query(description="Default: what `Accept` asks for, and JSON where it asks for nothing."),
]
HEADERS = {"Cache-Control": "no-store"}

CSP = "default-src 'none'; style-src 'unsafe-inline'"
CONTENT: dict[str, Any] = {
    "application/json": {"schema": {"type": "object"}},
    "text/html": {"schema": {"type": "string"}},
}


@router.get(
    "/releases/{release_id}/report",
    response_model=None,
    dependencies=[ReadingTurn],
    responses={
        200: {"description": "JSON, or a page.", "content": CONTENT},
        **problems(NotReady, NotInRelease, Tampered),
    },
)
def read_report(
    request: Request,
    release_id: uuid.UUID,
    context: ContextOf,
    principal: Reader,
    format: ReportFormat = None,  # noqa: A002
) -> Response:
    """How far off the generator is, as it was measured with noise and charged: of a release that was ordered with `report`.

    Of one that its own figures have refused (`accept`), too, with a signed record instead of a generator.
    """
    report = reports.read_report(context, principal, request.app.state.bundles, release_id)
    return report_reply(request, report, format, lambda: charged_page(report, str(release_id)))


@router.get(
    "/releases/{release_id}/owner-report",
    response_model=None,
    dependencies=[ReadingTurn],
    responses={
        200: {
            "description": "Not private; JSON, or a page.",
            "content": CONTENT,
        },
        **problems(NotReady, NotInRelease, Gone),
    },
)
def read_owner_report(
    request: Request,
    release_id: uuid.UUID,
    context: ContextOf,
    principal: Owner,
    format: ReportFormat = None,  # noqa: A002
) -> Response:
    """How close the published rows are to the real ones, computed from real rows without noise: for owner keys alone, and not to be shared.

    Of a release that was ordered with `owner_report`, minutes after it was published; it is erased with the rows.
    """
    report = reports.read_owner_report(context, principal, release_id)
    return report_reply(request, report, format, lambda: owner_page(report, str(release_id)))


def report_reply(
    request: Request, report: Mapping[str, Any], wanted: ReportFormat, page: Callable[[], str]
) -> Response:
    """A report as JSON or as a page; nothing between here and the caller may keep it."""
    is_page = wanted == "html" or (wanted is None and "text/html" in request.headers.get("accept", ""))
    if not is_page:
        return JSONResponse(report, headers=HEADERS)
    return Response(page(), media_type="text/html", headers={**HEADERS, "Content-Security-Policy": CSP})
