"""From a refusal back to the page that was left, with what was typed there."""

from __future__ import annotations

import urllib.parse
import uuid
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Query

from service.pages.nearest import nearest_page

if TYPE_CHECKING:
    from fastapi import Request

MOST_CHARACTERS = {"rows": 20, "format": 20, "formulas": 20, "where": 4_000}
"""Of each field of the form of a sample."""
LONGEST_ADDRESS = 1_000
"""Of a page to go on to after signing in."""


@dataclass(frozen=True, slots=True)
class Typed:
    """What somebody has filled into the form of a sample, right or wrong; empty: nothing yet."""

    rows: str
    format: str
    formulas: str
    where: str


def typed(
    rows: Annotated[str, Query(max_length=MOST_CHARACTERS["rows"])] = "",
    format: Annotated[str, Query(max_length=MOST_CHARACTERS["format"])] = "",  # noqa: A002 - the field's name
    formulas: Annotated[str, Query(max_length=MOST_CHARACTERS["formulas"])] = "",
    where: Annotated[str, Query(max_length=MOST_CHARACTERS["where"])] = "",
) -> Typed:
    """The query of a release's page, as `way_back` writes it."""
    return Typed(rows, format, formulas, where)


TypedBefore = Annotated[Typed, Depends(typed)]


def is_download(request: Request) -> bool:
    """Whether a file was asked for by the form of a sample."""
    return request.url.path.endswith("/download")


def way_back(request: Request) -> str | None:
    """The page of the release that this address belongs to, if it belongs to one and is another page."""
    release_id = None
    with suppress(ValueError):
        release_id = uuid.UUID(str(request.path_params.get("release_id")))
    if release_id is None or request.url.path == f"/releases/{release_id}":
        return None
    query = request.query_params if is_download(request) else {}
    kept = {name: query[name][:most] for name, most in MOST_CHARACTERS.items() if query.get(name)}
    return f"/releases/{release_id}" + (f"?{urllib.parse.urlencode(kept)}" if kept else "")


def after_signing_in(request: Request) -> str:
    """The path that a visitor was on, or wanted to go to.

    Of a file it is the page with its form, since a file is no page to be at; of what a form or a script has sent, the page that it was on.
    """
    path, query = request.url.path, request.url.query
    if "hx-request" in request.headers:
        path, query = _shown_at(request.headers.get("hx-current-url", ""))
    elif request.method != "GET":
        path, query = nearest_page(request) or "/", ""
    address = way_back(request) if is_download(request) else f"{path}?{query}" if query else path
    return address if address is not None and len(address) <= LONGEST_ADDRESS else path


def _shown_at(address: str) -> tuple[str, str]:
    """Path and query of an address that a script has sent."""
    try:
        shown = urllib.parse.urlsplit(address)
    except ValueError:
        return "/", ""
    return shown.path or "/", shown.query
