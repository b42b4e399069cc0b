"""`/datasets/{id}/order`: an order is priced while it is filled in, shown once more, and placed."""

from __future__ import annotations

import json
import uuid
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import RedirectResponse
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import ContextOf
from service.base.errors import ImprimaturError
from service.datasets import service as datasets
from service.datasets.public_starts import public_starts
from service.domain.image_schema import ImageSchema
from service.domain.open_columns import open_fields
from service.methods.catalogue import method_of
from service.methods.facts import Facts
from service.methods.report import held_out_units
from service.methods.report_noise import NUMERIC_BINS, hidden_by_noise, noise_alone
from service.methods.whole_noise import noise_of_share
from service.pages.budget import gauge
from service.pages.confirming import AskedFor, confirm_page, priced
from service.pages.doors import Analyst, OwnForm, PageRoute, PageTurn, Reader, is_owner
from service.pages.error_pages import with_retry_after
from service.pages.forms import Filled
from service.pages.knobs import (
    DEFAULT_REPORT_SHARE,
    PREFIX,
    document_of,
    fields_of,
    has_report_settings,
    methods_for,
    want_of,
)
from service.pages.languages import figure_in
from service.pages.policy import PAGE_HEADERS
from service.pages.refused import in_words_of_the_form
from service.pages.rendering import is_fragment, page
from service.releases import service as releases
from service.releases.names import typed_name
from service.requests.problems import status_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.auth.sessions import SignedIn
    from service.datasets.models import Dataset
    from service.pages.knobs import Field
    from service.platform.context import Context
    from service.releases.service import Quote

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/datasets/{dataset_id}/order", dependencies=[PageTurn])
def ask_for_order(request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Reader) -> Response:
    """The form. A quote needs a reader; placing an order needs an analyst. While something is to be bought, that is first."""
    if open_fields(datasets.find(context, visitor.principal, dataset_id).declared_schema):
        return RedirectResponse(f"/datasets/{dataset_id}", 303, headers=dict(PAGE_HEADERS))
    return _form(request, context, visitor, dataset_id, {"epsilon": "", "method": "auto"})


@router.get("/datasets/{dataset_id}/order/knobs", dependencies=[PageTurn])
def read_knobs(
    request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Reader, method: str = "auto"
) -> Response:
    """The part of the form that belongs to a method."""
    knobs = fields_of(method)
    starts = _starts_for(context, visitor, dataset_id, knobs)
    return page(request, "knobs.html", signed_in=visitor, knobs=knobs, filled={}, public_starts=starts)


@router.post("/datasets/{dataset_id}/order", dependencies=[OwnForm])
async def quote(
    request: Request, dataset_id: uuid.UUID, context: ContextOf, visitor: Reader, filled: Filled
) -> Response:
    """The price of what is filled in: a part of the page for a script, else the whole page with it.

    Also the way back from the page that asks once more, which sends along all that was typed.
    """
    try:
        if not is_fragment(request):  # while it is typed it may read as an id
            _name_in(filled)
        document = document_of(filled)
        if filled.get("step") == "want":
            document = {**document, "epsilon": None, "want": want_of(filled)}
        quoted = await run_in_threadpool(releases.quote, context, visitor.principal, dataset_id, document)
    except ImprimaturError as error:
        if is_fragment(request):
            raise
        shown = await run_in_threadpool(_form, request, context, visitor, dataset_id, filled, fault=error)
        return with_retry_after(shown, error)
    values = await run_in_threadpool(priced, context, visitor, dataset_id, quoted)
    dataset = await run_in_threadpool(datasets.find, context, visitor.principal, dataset_id)
    values["report_noise"] = await run_in_threadpool(_report_noise, dataset, quoted)
    if is_fragment(request):
        has_reports = _modality(dataset) == "table"
        return page(request, "quote_and_noise.html", signed_in=visitor, has_reports=has_reports, **values)
    if filled.get("step") == "confirm":
        visitor.principal.require("analyst")
        start = await run_in_threadpool(_public_start_of, context, visitor, quoted)
        return confirm_page(request, visitor, dataset, values, filled, AskedFor(document, public_start=start))
    if (
        quoted.wanted is not None and quoted.wanted.epsilon
    ):  # else ε stays as typed, since the whole budget was not asked for
        filled = {**filled, "epsilon": figure_in(request, f"{quoted.wanted.epsilon:.3g}")}
    return await run_in_threadpool(_form, request, context, visitor, dataset_id, filled, values=values)


@router.post("/datasets/{dataset_id}/releases", dependencies=[OwnForm], name="order_release")
def place(dataset_id: uuid.UUID, context: ContextOf, visitor: Analyst, filled: Filled) -> Response:
    """Place the order that was confirmed. A form that is sent twice orders once: it carries a key of its own."""
    key = filled.get("order_key", "")[:64] or None
    release = releases.order_release(
        context, visitor.principal, dataset_id, document_of(filled), key, name=_name_in(filled)
    )
    return RedirectResponse(f"/releases/{release.id}", 303, headers=dict(PAGE_HEADERS))


def _name_in(filled: dict[str, str]) -> str | None:
    """The name of the release, as the API takes one; None: it is left empty."""
    typed = filled.get("name", "")
    return typed_name(typed) if typed.strip() else None


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
    budget = datasets.read_budget(context, visitor.principal, dataset_id)
    left = gauge(budget, [])
    suggested = min(left.largest_next_epsilon, dataset.epsilon / 3.0)
    knobs = fields_of(filled.get("method", "auto"))
    return page(
        request,
        "order.html",
        status=200 if fault is None else status_of(fault),
        signed_in=visitor,
        dataset=dataset,
        gauge=left,
        filled={**filled, "epsilon": filled.get("epsilon") or figure_in(request, f"{suggested:.3g}")},
        smallest=min(0.01, dataset.epsilon / 100.0),
        methods=methods_for(_modality(dataset)),
        conditions=_conditions(dataset),
        knobs=knobs,
        says_knobs=any(filled.get(f"{PREFIX}{knob.name}", "").strip() for knob in knobs),
        public_starts=_starts_for(context, visitor, dataset_id, knobs),
        has_reports=_modality(dataset) == "table",
        is_owner=is_owner(visitor),
        report_share=DEFAULT_REPORT_SHARE,
        fault=None if fault is None else in_words_of_the_form(request, fault.detail),
        report_fold_open=has_report_settings(filled, None if fault is None else fault.values.get("where")),
        may_order=visitor.principal.scope != "reader",
        **(values or {"quoted": None, "report_noise": None}),
    )


def _report_noise(dataset: Dataset, quoted: Quote) -> str | None:
    """What noise would hide of a report for everybody, of this order or, where it asks for none, of one as it is by default."""
    if _modality(dataset) != "table":
        return None
    report = quoted.order.report
    share = float(DEFAULT_REPORT_SHARE) / 100.0 if report is None else report.share
    units = dataset.units - held_out_units(quoted.order, dataset.units)
    facts = Facts.of_declaration(json.dumps(dataset.schema), units=units, most_per_unit=1, budget=dataset.budget)
    noise_multiplier = noise_of_share(share, quoted.price.epsilon, quoted.price.delta)
    return hidden_by_noise(noise_alone(facts.table(NUMERIC_BINS), noise_multiplier, units), units)


def _starts_for(
    context: Context, visitor: SignedIn, dataset_id: uuid.UUID, knobs: Sequence[Field]
) -> list[tuple[str, str]]:
    """Ids and names of public datasets, where the method may begin from one."""
    if not any(knob.kind == "dataset" for knob in knobs):
        return []
    return [(str(each.id), each.name) for each in public_starts(context, visitor.principal, dataset_id)]


def _public_start_of(context: Context, visitor: SignedIn, quoted: Quote) -> str | None:
    """The name of the public dataset that the order begins from."""
    public_id = method_of(quoted.order).also_reads(quoted.order)
    return None if public_id is None else datasets.find(context, visitor.principal, public_id).name


def _modality(dataset: Dataset) -> Any:
    return "image" if isinstance(dataset.declared_schema, ImageSchema) else "table"


def _conditions(dataset: Dataset) -> list[str]:
    schema = dataset.declared_schema
    return [] if isinstance(schema, ImageSchema) else [each.name for each in schema.fields if each.is_categorical]
