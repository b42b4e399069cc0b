"""`/`: the web page. It holds no data; the browser asks the API with the key its user types in."""

from __future__ import annotations

import importlib.resources
from functools import lru_cache

from fastapi import APIRouter
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, select_autoescape

from imprimatur.version import VERSION

router = APIRouter(include_in_schema=False)


@lru_cache
def _home() -> str:
    environment = Environment(loader=PackageLoader("service.pages"), autoescape=select_autoescape())
    assets = importlib.resources.files("service.pages") / "assets"
    return environment.get_template("home.html").render(
        version=VERSION,
        style=(assets / "style.css").read_text(encoding="utf-8"),
        script=(assets / "home.js").read_text(encoding="utf-8"),
    )


@router.get("/", response_class=HTMLResponse)
def home() -> HTMLResponse:
    """Datasets, budgets and releases of whoever's key is typed in."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'"
    return HTMLResponse(_home(), headers={"Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"})
