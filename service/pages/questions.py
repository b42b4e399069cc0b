"""`/datasets/{id}/ask`: a question about the private rows, priced, shown once more, and asked."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import ContextOf
from service.base.errors import ImprimaturError, InvalidOrder
from service.base.messages import Message
from service.datasets import service as datasets
from service.domain.image_schema import ImageSchema
from service.domain.open_columns import open_fields
from service.pages.budget import gauge
from service.pages.confirming import AskedFor, confirm_page, priced
from service.pages.doors import Analyst, OwnForm, PageRoute, Reader
from service.pages.error_pages import with_retry_after
from service.pages.examples import example_condition
from service.pages.forms import Filled, number_in
from service.pages.languages import figure_in, typed_condition
from service.pages.policy import PAGE_HEADERS
from service.pages.refused import in_words_of_the_form
from service.pages.rendering import is_fragment, page
from service.pages.words import KINDS
from service.queries import service as queries
from service.requests.problems import status_of

if TYPE_CHECKING:
    from service.auth.sessions import SignedIn
    from service.platform.context import Context

router = APIRouter(include_in_schema=False, route_class=PageRoute)

OF_ONE_COLUMN = {"histogram", "sum", "mean", "quantiles", "arg_max", "median"}
OF_COLUMNS = {"cross_table", "keys"}


@router.get("/datasets/{dataset_id}/ask")
def ask_form(request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Analyst) -> Response:
    """The form, once nothing is to be bought first."""
    if open_fields(datasets.find(context, visitor.principal, dataset_id).declared_schema):
        return RedirectResponse(f"/datasets/{dataset_id}", 303, headers=dict(PAGE_HEADERS))
    return _form(request, context, visitor, dataset_id, {"kind": "count", "epsilon": figure_in(request, "0.1")})


@router.post("/datasets/{dataset_id}/ask", dependencies=[OwnForm])
async def quote(
    request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Analyst, filled: Filled
) -> Response:
    """The price, or the answer where the question was asked before."""
    try:
        asked = await run_in_threadpool(
            queries.look, context, visitor.principal, dataset_id, question_of(request, filled)
        )
    except ImprimaturError as error:
        if is_fragment(request):
            raise
        shown = await run_in_threadpool(_form, request, context, visitor, dataset_id, filled, fault=error)
        return with_retry_after(shown, error)
    earlier = asked.earlier.get(0)
    price = await run_in_threadpool(priced, context, visitor, dataset_id, asked.quote)
    values: dict[str, Any] = {"earlier": earlier, **price}
    if is_fragment(request):
        return page(request, "question_quote.html", signed_in=visitor, **values)
    if filled.get("step") == "confirm" and earlier is None:
        dataset = await run_in_threadpool(datasets.find, context, visitor.principal, dataset_id)
        return confirm_page(request, visitor, dataset, price, filled, AskedFor(question=KINDS[filled["kind"]]))
    return await run_in_threadpool(_form, request, context, visitor, dataset_id, filled, values=values)


@router.post("/datasets/{dataset_id}/queries", dependencies=[OwnForm], name="ask")
def ask(request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Reader, filled: Filled) -> Response:
    """Ask what was confirmed, once; then to the release that has the answer, or will have it."""
    visitor.principal.require("analyst")
    asked = queries.look(context, visitor.principal, dataset_id, question_of(request, filled), is_dry=False)
    key = filled.get("order_key", "")[:64] or None
    release = queries.ask(context, visitor.principal, dataset_id, asked, key)
    release_id = asked.earlier[0].release_id if release is None else release.id
    return RedirectResponse(f"/releases/{release_id}", 303, headers=dict(PAGE_HEADERS))


def question_of(request: Request, form: dict[str, str]) -> dict[str, Any]:
    """The question of a form, as the API takes it."""
    kind = form.get("kind", "count")
    question: dict[str, Any] = {"kind": kind, "epsilon": number_in(form.get("epsilon", ""), "epsilon", 0.1)}
    columns = [form[name] for name in ("column", "second") if form.get(name)]
    if kind in OF_ONE_COLUMN:
        if not columns:
            raise InvalidOrder(Message("column: choose one"), where="column")
        question["column"] = columns[0]
    if kind in OF_COLUMNS:
        if not columns:
            raise InvalidOrder(Message("column: choose one"), where="columns")
        if kind == "cross_table" and len(set(columns)) < 2:
            raise InvalidOrder(Message("columns: choose another one"), where="columns")
        question["columns"] = columns
    if form.get("where", "").strip():
        question["where"] = typed_condition(request, form["where"].strip())
    return question


def _form(
    request: Request,
    context: Context,
    visitor: SignedIn,
    dataset_id: uuid.UUID,
    filled: dict[str, str],
    *,
    fault: ImprimaturError | None = None,
    values: dict[str, Any] | None = None,
) -> Response:
    dataset = datasets.find(context, visitor.principal, dataset_id)
    schema = dataset.declared_schema
    return page(
        request,
        "question.html",
        status=200 if fault is None else status_of(fault),
        signed_in=visitor,
        dataset=dataset,
        gauge=gauge(datasets.read_budget(context, visitor.principal, dataset_id), []),
        columns=[] if isinstance(schema, ImageSchema) else [field.name for field in schema.modelled.fields],
        kinds=KINDS,
        example=example_condition(schema),
        filled=filled,
        fault=None if fault is None else in_words_of_the_form(request, fault.detail),
        **(values or {"quoted": None, "earlier": None}),
    )
