"""`/` and `/datasets`: what there is, what is left of each budget, and what is running."""

from __future__ import annotations

import uuid
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from service.auth.dependencies import ContextOf
from service.datasets import service as datasets
from service.datasets.schemas import warnings_of
from service.domain.image_schema import ImageSchema
from service.pages.apart import first_of
from service.pages.budget import gauge, left_of
from service.pages.declared import open_of, shown_of
from service.pages.doors import PageRoute, PageTurn, Reader, Visitor
from service.pages.rendering import page
from service.pages.sign_in import sign_in_page
from service.pages.words import USES
from service.platform.paging import Page
from service.releases import service as releases
from service.releases.names import shown_name

router = APIRouter(include_in_schema=False, route_class=PageRoute)

DATASETS_OF_A_PAGE, RELEASES_OF_A_PAGE = 50, 50


@router.get("/", dependencies=[PageTurn])
def home(request: Request, context: ContextOf, visitor: Visitor) -> Response:
    """The datasets of who is signed in; for everybody else what this is, and the form for a key."""
    if visitor is None:
        return sign_in_page(request, "/")
    return list_datasets(request, context, visitor)


@router.get("/datasets", dependencies=[PageTurn])
def list_datasets(
    request: Request, context: ContextOf, visitor: Reader, before: Annotated[str | None, Query(max_length=200)] = None
) -> Response:
    """All datasets of the tenant, newest first."""
    found, following = datasets.list_page(context, visitor.principal, Page.of(DATASETS_OF_A_PAGE, before))
    budgets = datasets.budgets_left(context, found)
    return page(
        request,
        "datasets.html",
        signed_in=visitor,
        datasets=found,
        left={each.id: left_of(each.epsilon, budgets[each.id]) for each in found},
        following=following,
        is_first=not before,
    )


@router.get("/datasets/{dataset_id}", dependencies=[PageTurn])
def read_dataset(
    request: Request,
    dataset_id: uuid.UUID,
    context: ContextOf,
    visitor: Reader,
    before: Annotated[str | None, Query(max_length=200)] = None,
) -> Response:
    """One dataset: budget in words, then releases."""
    dataset = datasets.find(context, visitor.principal, dataset_id)
    budget = datasets.read_budget(context, visitor.principal, dataset_id)
    wanted = Page.of(RELEASES_OF_A_PAGE, before)
    found, following = releases.list_page(context, visitor.principal, dataset_id, wanted)
    declared, more_declared = shown_of(dataset.declared_schema)
    newest = (
        found if before is None else releases.list_page(context, visitor.principal, dataset_id, Page.of(1, None))[0]
    )
    return page(
        request,
        "dataset.html",
        signed_in=visitor,
        dataset=dataset,
        warnings=warnings_of(dataset),
        gauge=gauge(budget, newest),
        to_buy=open_of(dataset.declared_schema, newest),
        declared=declared,
        images=dataset.declared_schema if isinstance(dataset.declared_schema, ImageSchema) else None,
        first_of=first_of,
        more_declared=more_declared,
        use_words=USES,
        releases=[(each, shown_name(each.name, str(each.order_.get("method", "release")), each.id)) for each in found],
        following=following,
    )
