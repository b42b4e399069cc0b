"""`/docs` and `/redoc`: the OpenAPI document as a page. Nothing from elsewhere."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from service.pages.rendering import page

router = APIRouter(include_in_schema=False)


@router.get("/docs", response_class=HTMLResponse)
@router.get("/redoc", response_class=HTMLResponse)
def docs(request: Request) -> HTMLResponse:
    """Every operation: who may call it, what it takes, what it answers."""
    document = request.app.openapi()
    operations = [
        (method.upper(), path, operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]
    return page(request, "docs.html", description=document["info"]["description"], operations=operations)
