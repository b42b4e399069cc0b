"""From a template to a reply: whatever is put into a page is escaped, and numbers are written for people."""

from __future__ import annotations

import shlex
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fastapi import Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from imprimatur.explanation import fingerprint
from imprimatur.version import VERSION
from service.domain.unit_words import unit_in_words
from service.pages.assets_of import asset_address
from service.pages.languages import LANGUAGES, language_named, language_of, translations
from service.pages.nearest import nearest_page
from service.pages.policy import PAGE_HEADERS
from service.pages.words import shown_state
from service.pages.writing import Writing

if TYPE_CHECKING:
    from fastapi import Request

    from service.auth.sessions import SignedIn


@lru_cache
def templates(language: str) -> Environment:
    """The pages in one language."""
    environment = Environment(
        loader=PackageLoader("service.pages"),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n"],
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.install_gettext_translations(translations(language), newstyle=True)  # type: ignore[attr-defined]  # the extension's
    environment.filters |= Writing(language_named(language)).filters | {"shown_state": shown_state}
    environment.filters["in_shell"] = shlex.quote
    environment.filters["unit_words"] = lambda dataset: unit_in_words(dataset.declared_schema, dataset.unit)
    environment.globals |= {"asset": asset_address, "version": VERSION, "languages": LANGUAGES, "language": language}
    environment.globals["fingerprint"] = fingerprint
    environment.globals["point"] = language_named(language).conventions.point
    return environment


def is_fragment(request: Request) -> bool:
    """Whether a script asks for a part of a page. A page that a browser opens is whole."""
    return "hx-request" in request.headers and "hx-boosted" not in request.headers


def page(
    request: Request, template: str, *, status: int = 200, signed_in: SignedIn | None = None, **values: Any
) -> HTMLResponse:
    """A page, or a part of one, as a reply. `signed_in` is put into every template."""
    text = templates(language_of(request)).get_template(template)
    has_docs = request.app.openapi_url is not None
    token = "" if signed_in is None else signed_in.csrf_token
    written = text.render(
        **values,
        signed_in=signed_in,
        csrf=lambda: Markup('<input type="hidden" name="csrf_token" value="{}">').format(token),
        has_docs=has_docs,
        path=request.url.path,
        is_fragment=is_fragment(request),
        reloads_as=nearest_page(request) if request.method == "POST" else None,
    )
    return HTMLResponse(written, status, headers=dict(PAGE_HEADERS))


def on(request: Request, path: str) -> Response:
    """To another page, so that loading that again sends nothing again."""
    if is_fragment(request):
        return Response(headers={"HX-Redirect": path, **PAGE_HEADERS})
    return RedirectResponse(path, 303, headers=dict(PAGE_HEADERS))
