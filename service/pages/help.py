"""`/help`: the documents as a site, which `make site` has built from docs/ into this package. For everybody: it holds no data."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles

if TYPE_CHECKING:
    import os

    from fastapi import FastAPI
    from starlette.responses import Response
    from starlette.types import Scope

FOLDER = Path(__file__).parent / "help"
INLINE_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
NOT_BUILT = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Help · Imprimatur</title><h1>Not built</h1>"
    "<p>The documents are not part of this installation. In a checkout, <code>make site</code> builds them; "
    "until then read the files under <code>docs/</code>.</p><p><a href=/>Imprimatur</a></p>"
)


def install(app: FastAPI) -> None:
    """Both addresses, with and without the last slash."""

    @app.get("/help", include_in_schema=False)
    def help_page() -> RedirectResponse:
        return RedirectResponse("/help/", 308)

    app.mount("/help", Help(), name="help")


class Help(StaticFiles):
    """The site's files. Its pages may run the scripts that stand in them as they were built, and no others."""

    def __init__(self, folder: Path = FOLDER) -> None:
        super().__init__(directory=folder, html=True, check_dir=False)
        self._index = folder / "index.html"

    async def check_config(self) -> None:
        """A folder that is not there is no fault here: `get_response` says what to do."""
        if self._index.is_file():
            await super().check_config()

    async def get_response(self, path: str, scope: Scope) -> Response:
        """One file, or a page that says how to have them."""
        if not self._index.is_file():
            return HTMLResponse(NOT_BUILT, 404)
        reply = await super().get_response(path, scope)
        if isinstance(reply, RedirectResponse):  # to a folder's page: relative, or it would follow the caller's Host
            reply.headers["Location"] = f"{path.rpartition('/')[2]}/"
        return reply

    def file_response(
        self, full_path: str | os.PathLike[str], stat_result: os.stat_result, scope: Scope, status_code: int = 200
    ) -> Response:
        """A file with its policy; browsers ask again each time whether it has changed."""
        reply = super().file_response(full_path, stat_result, scope, status_code)
        reply.headers["Cache-Control"] = "no-cache"
        if str(full_path).endswith(".html"):
            reply.headers["Content-Security-Policy"] = _policy(str(full_path), stat_result.st_mtime_ns)
        return reply


@lru_cache(maxsize=256)
def _policy(path: str, changed_ns: int) -> str:  # noqa: ARG001 - a new build is read anew
    """What one page may do: load files of this service, and run its own scripts, named by their hashes."""
    scripts = INLINE_SCRIPT.findall(Path(path).read_bytes())
    hashes = sorted({base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts})
    allowed = " ".join(["'self'", *(f"'sha256-{digest}'" for digest in hashes)])
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; worker-src 'self'; form-action 'self'; object-src 'none'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
