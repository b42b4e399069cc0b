"""From a template to a reply: whatever is put into a page is escaped, and numbers are written for people."""

from __future__ import annotations

import datetime as dt
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fastapi import Response
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from imprimatur.explanation import fingerprint, in_100
from imprimatur.version import VERSION
from imprimatur.wording import duration_in_words
from service.pages.assets_of import asset_address
from service.pages.languages import LANGUAGES, language_of, translations
from service.pages.policy import PAGE_HEADERS
from service.pages.words import shown_state

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
    environment.filters |= {
        "digits": digits,
        "percent": percent,
        "whole": whole,
        "moment": moment,
        "day": day,
        "unbroken": unbroken,
        "in_100": in_100,
        "duration": duration_in_words,
        "shown_state": shown_state,
    }
    environment.globals |= {"asset": asset_address, "version": VERSION, "languages": LANGUAGES, "language": language}
    environment.globals["fingerprint"] = fingerprint
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
    )
    return HTMLResponse(written, status, headers=dict(PAGE_HEADERS))


def on(request: Request, path: str) -> Response:
    """To another page, so that loading that again sends nothing again."""
    if is_fragment(request):
        return Response(headers={"HX-Redirect": path, **PAGE_HEADERS})
    return RedirectResponse(path, 303, headers=dict(PAGE_HEADERS))


def digits(value: float, count: int = 3) -> str:
    """A number to so many significant digits, never in powers of ten where it can be read without: 0.25, 1.5, 2300."""
    text = f"{value:.{count}g}"
    return f"{float(text):.0f}" if "e+" in text else text


def percent(share: float) -> str:
    """A share of one: 27 %, 0.4 %, less than 0.1 %."""
    hundredths = share * 100.0
    if 0.0 < hundredths < 0.1:
        return "< 0.1 %"
    return f"{hundredths:.0f} %" if hundredths >= 10.0 or hundredths == 0.0 else f"{hundredths:.1f} %"


def unbroken(text: str) -> Markup:
    """On one line: 2010-01-31."""
    return Markup('<span class="moment">{}</span>').format(text)


def whole(value: int) -> str:
    """A count, in groups of three: 32 561 (a thin space, which both languages read)."""
    return f"{value:,}".replace(",", "\u202f")


def moment(value: dt.datetime) -> str:
    """A moment to the minute, in UTC."""
    return value.astimezone(dt.UTC).strftime("%Y-%m-%d %H:%M UTC")


def day(value: dt.datetime) -> str:
    return value.astimezone(dt.UTC).strftime("%Y-%m-%d")
