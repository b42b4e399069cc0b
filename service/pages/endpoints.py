"""`/`: the web page. It holds no data; the browser asks the API with the key its user types in."""

from __future__ import annotations

import importlib.resources
from functools import lru_cache

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, select_autoescape

from imprimatur.version import VERSION
from service.pages.policy import page_headers

router = APIRouter(include_in_schema=False)


@lru_cache
def templates() -> Environment:
    """The pages; whatever is put into them is escaped."""
    return Environment(loader=PackageLoader("service.pages"), autoescape=select_autoescape())


@lru_cache
def asset(name: str) -> str:
    """A style or a script."""
    return (importlib.resources.files("service.pages") / "assets" / name).read_text(encoding="utf-8")


@lru_cache
def _home(*, has_docs: bool) -> str:
    return (
        templates()
        .get_template("home.html")
        .render(version=VERSION, style=asset("style.css"), script=asset("home.js"), has_docs=has_docs)
    )


@router.get("/", response_class=HTMLResponse)
def home(request: Request) -> HTMLResponse:
    """Datasets, budgets and releases of whoever's key is typed in."""
    headers = page_headers(style=asset("style.css"), script=asset("home.js"))
    return HTMLResponse(_home(has_docs=request.app.openapi_url is not None), headers=headers)
