"""`/docs`: the OpenAPI document as a page. No script, nothing from elsewhere."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from imprimatur.version import VERSION
from service.pages.endpoints import asset, templates
from service.pages.policy import page_headers

router = APIRouter(include_in_schema=False)


@router.get("/docs", response_class=HTMLResponse)
def docs(request: Request) -> HTMLResponse:
    """Every operation: who may call it, what it takes, what it answers."""
    document = request.app.openapi()
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    style = asset("style.css")
    page = (
        templates()
        .get_template("docs.html")
        .render(version=VERSION, style=style, description=document["info"]["description"], operations=operations)
    )
    return HTMLResponse(page, headers=page_headers(style=style))
