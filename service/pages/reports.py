"""`/releases/{id}/report` for everybody who may read the release, `/releases/{id}/owner-report` for owners alone.

Both are made of the reports' JSON by templates of this page; the same as one file each, for who keeps or prints it. The owner's is
not private: every view of it says so, and no browser keeps one.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse

from service.auth.dependencies import ContextOf
from service.base.errors import Gone, NotInRelease, NotReady
from service.pages.doors import Owner, PageRoute, PageTurn, Reader, noted
from service.pages.policy import PAGE_HEADERS
from service.pages.releases import shown_of
from service.pages.rendering import page
from service.pages.synthetic import MOST_COLUMNS_OF_PAIRS
from service.pages.words import AMONG, ATTACKED, LEARNERS, SCORES, SETS
from service.releases import reports
from service.releases.report_pages import charged_page, decided_by_noise, owner_page

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from service.auth.sessions import SignedIn
    from service.base.errors import ImprimaturError

router = APIRouter(include_in_schema=False, route_class=PageRoute)

MOST_CHARTS = 40
"""Each with its numbers as a table: more would be a heavy page."""
PAIRS_SHOWN = 12
"""Of the pairs those that are off the most; all of them are in the details."""


@router.get("/releases/{release_id}/report", name="read_report", dependencies=[PageTurn])
def read_report(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """What was measured with noise and charged: in words, then by column and by pair."""
    report = reports.read_report(context, visitor.principal, request.app.state.bundles, release_id)
    pairs = sorted(report["pairs"], key=_over_noise, reverse=True)
    shown = shown_of(context, visitor, release_id)
    return page(
        request,
        "report.html",
        signed_in=visitor,
        **shown,
        report=report,
        pairs=pairs,
        pairs_shown=PAIRS_SHOWN,
        is_hidden=decided_by_noise(report),
    )


@router.get("/releases/{release_id}/report.html", name="read_report", dependencies=[PageTurn])
def report_file(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """The same as a file that stands alone."""
    report = reports.read_report(context, visitor.principal, request.app.state.bundles, release_id)
    return _file(charged_page(report, str(release_id)), f"report-{release_id}.html")


@router.get("/releases/{release_id}/report.json", name="read_report", dependencies=[PageTurn])
def report_figures(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """Its figures."""
    report = reports.read_report(context, visitor.principal, request.app.state.bundles, release_id)
    return _figures(report, f"report-{release_id}.json")


@router.get("/releases/{release_id}/owner-report", name="read_owner_report", dependencies=[PageTurn])
def read_owner_report(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """Real rows beside synthetic ones. Where there is no report, why, and how to get one."""
    shown = shown_of(context, visitor, release_id)
    try:
        report = reports.read_owner_report(context, visitor.principal, release_id)
    except (NotInRelease, NotReady, Gone) as error:
        return _without_report(request, visitor, shown, error)
    if "failed" in report:
        return _without_report(request, visitor, shown, None, failed=str(report["failed"]))
    values: dict[str, Any] = {
        "report": report,
        "summary": report["summary"],
        "columns": report["columns"],
        "charts": [one for one in report["columns"] if "cells" in one][:MOST_CHARTS],
        "map": _map_of(report["columns"], report["pairs"]),
        "pairs": sorted(report["pairs"], key=_over_fresh, reverse=True)[:PAIRS_SHOWN],
        "all_pairs": report["pairs"],
        "sets": SETS,
        "learners": LEARNERS,
        "attacks": report.get("attacks"),
        "attacked": ATTACKED,
        "among": AMONG,
        "scores": SCORES,
    }
    return page(request, "owner_report.html", signed_in=visitor, **shown, **values)


@router.get("/releases/{release_id}/owner-report/waiting")
def wait_for_owner_report(request: Request, release_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """The part that asks until the report is there; then the whole page is loaded anew."""
    reply = page(request, "owner_report_waiting.html", signed_in=visitor, release_id=release_id)
    if reports.has_owner_report(context, visitor.principal, release_id):
        reply.headers["HX-Refresh"] = "true"
    return reply


@router.get("/releases/{release_id}/owner-report.html", name="read_owner_report", dependencies=[PageTurn])
def owner_report_file(release_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """The owner's report as a file that stands alone and says that it is not private."""
    report = reports.read_owner_report(context, visitor.principal, release_id)
    return _file(owner_page(report, str(release_id)), f"not-private-owner-report-{release_id}.html")


@router.get("/releases/{release_id}/owner-report.json", name="read_owner_report", dependencies=[PageTurn])
def owner_report_figures(release_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """Its figures."""
    report = reports.read_owner_report(context, visitor.principal, release_id)
    return _figures(report, f"not-private-owner-report-{release_id}.json")


def _without_report(
    request: Request,
    visitor: SignedIn,
    shown: Mapping[str, Any],
    error: ImprimaturError | None,
    *,
    failed: str | None = None,
) -> Response:
    is_coming = isinstance(error, NotReady) and shown["release"].state == "published"
    status = 200 if error is None or is_coming else noted(request, error)
    return page(
        request,
        "owner_report_missing.html",
        status=status,
        signed_in=visitor,
        **shown,
        release_id=shown["release"].id,
        error=error,
        is_coming=is_coming,
        is_ordered=not isinstance(error, NotInRelease),
        failed=failed,
    )


def _map_of(columns: Iterable[Mapping[str, Any]], pairs: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """By how much more pairs of the first columns are off than in fresh rows; None where a pair was not looked at."""
    names = [one["column"] for one in columns][:MOST_COLUMNS_OF_PAIRS]
    off = {frozenset(one["columns"]): max(0.0, _over_fresh(one)) for one in pairs}
    return {"columns": names, "values": [[off.get(frozenset((a, b))) for b in names] for a in names]}


def _over_noise(table: Mapping[str, Any]) -> float:
    return float(table["noisy_tv"] - table["of_noise_alone"])


def _over_fresh(pair: Mapping[str, Any]) -> float:
    return float(pair["tv"]["synthetic"] - pair["tv"]["other_half"])


def _file(text: str, name: str) -> Response:
    """To be kept, not opened here: its style stands in it, which the policy of the page does not allow."""
    return HTMLResponse(text, headers={**PAGE_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'})


def _figures(report: Mapping[str, Any], name: str) -> Response:
    return JSONResponse(report, headers={**PAGE_HEADERS, "Content-Disposition": f'attachment; filename="{name}"'})
