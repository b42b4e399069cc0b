"""Which page an address belongs to: of what a form sent, the one that the form is on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.routing import Match

if TYPE_CHECKING:
    from fastapi import Request


def nearest_page(request: Request) -> str | None:
    """The address itself, or the nearest one above it, that is a page; the first page is linked anyhow."""
    path = request.url.path
    while path.strip("/") and not path.startswith("//"):
        scope = {**request.scope, "path": path, "method": "GET"}
        if any(route.matches(scope)[0] is Match.FULL for route in request.app.routes):
            return path
        path = path.rpartition("/")[0]
    return None
