"""`/datasets/{id}/buy`: bounds and categories that the owner did not declare are bought, once, before anything else is ordered."""

from __future__ import annotations

import uuid

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse

from service.auth.dependencies import ContextOf
from service.datasets import service as datasets
from service.pages.confirming import AskedFor, confirm_page, priced
from service.pages.declared import PURCHASE, open_of
from service.pages.doors import Analyst, OwnForm, PageRoute, PageTurn, Reader
from service.pages.forms import Filled
from service.pages.policy import PAGE_HEADERS
from service.pages.rendering import page
from service.platform.paging import Page
from service.releases import service as releases

router = APIRouter(include_in_schema=False, route_class=PageRoute)

NEWEST = 20


@router.get("/datasets/{dataset_id}/buy", dependencies=[PageTurn])
def ask_before_buying(request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Analyst) -> Response:
    """What it costs and how exact it will be; asked once more, as of any order."""
    dataset = datasets.find(context, visitor.principal, dataset_id)
    found, _ = releases.list_page(context, visitor.principal, dataset_id, Page.of(NEWEST, None))
    to_buy = open_of(dataset.declared_schema, found)
    if to_buy is None or to_buy.running is not None:
        return _to(
            f"/datasets/{dataset_id}" if to_buy is None or to_buy.running is None else f"/releases/{to_buy.running.id}"
        )
    quoted = releases.quote(context, visitor.principal, dataset_id, PURCHASE)
    price = priced(context, visitor, dataset_id, quoted)
    return confirm_page(request, visitor, dataset, price, {}, AskedFor(PURCHASE, to_buy=to_buy))


@router.post("/datasets/{dataset_id}/buy", dependencies=[OwnForm], name="order_release")
def buy(dataset_id: uuid.UUID, context: ContextOf, visitor: Analyst, filled: Filled) -> Response:
    """Place the order; a form that is sent twice orders once."""
    key = filled.get("order_key", "")[:64] or None
    release = releases.order_release(context, visitor.principal, dataset_id, PURCHASE, key)
    return _to(f"/releases/{release.id}")


@router.get("/datasets/{dataset_id}/buying", dependencies=[PageTurn])
def read_progress(request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """How far the purchase is, of the page of the dataset; when it has ended that is loaded anew."""
    dataset = datasets.find(context, visitor.principal, dataset_id)
    found, _ = releases.list_page(context, visitor.principal, dataset_id, Page.of(NEWEST, None))
    to_buy = open_of(dataset.declared_schema, found)
    reply = page(request, "buying.html", signed_in=visitor, dataset=dataset, to_buy=to_buy)
    if to_buy is None or to_buy.running is None:
        reply.headers["HX-Refresh"] = "true"
    return reply


def _to(path: str) -> Response:
    return RedirectResponse(path, 303, headers=dict(PAGE_HEADERS))
