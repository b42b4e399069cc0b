"""`/datasets/new/{id}/budget`: the third step. A budget, once and for ever, and the file becomes a dataset."""

from __future__ import annotations

import json
import uuid
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import ContextOf
from service.auth.sessions import SignedIn
from service.base.errors import DuplicateRows, ImprimaturError, InvalidInput
from service.base.messages import Message
from service.datasets import service as datasets
from service.datasets import staging
from service.datasets.declaration import Declaration, parse_declaration, with_public_rows
from service.datasets.upload_events import MEDIA_TYPE, UploadEvents
from service.domain.open_columns import open_fields
from service.intake.caller import Caller
from service.pages import declaring, purchases
from service.pages.doors import Owner, OwnForm, PageRoute, PageTurn, Reader, noted
from service.pages.error_pages import with_retry_after
from service.pages.forms import Filled, number_in
from service.pages.open_points import declaration_of
from service.pages.refused import in_words_of_the_form
from service.pages.rendering import on, page
from service.pages.uploads import CHANGED_ELSEWHERE, keep_or_say, published
from service.requests.uploads import in_turn, open_spool

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.datasets.models import Dataset
    from service.platform.context import Context

router = APIRouter(include_in_schema=False, route_class=PageRoute)

PUBLIC, KNOWN_PUBLIC = "rows_are_public", "public_for_ever"
"""That everybody may have the rows, and that its owner knows what follows."""
FIELDS = ("name", "epsilon", "delta", "expires", "accept_undeclared", "distinct_from", PUBLIC, KNOWN_PUBLIC)
ODDS = (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0)
"""ε of the table beside the slider."""
SMALLEST = 0.05


@router.get("/datasets/new/odds")
def read_odds(request: Request, visitor: Reader, epsilon: Annotated[str, Query(max_length=100)] = "") -> Response:
    """What an ε means, in a sentence, while it is chosen."""
    return page(request, "odds.html", signed_in=visitor, epsilon=_epsilon_or_none(epsilon))


@router.get("/datasets/new/{staged_id}/budget", dependencies=[PageTurn])
def read_budget(request: Request, staged_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """The form, once the declaration is whole."""
    if (done := published(request, context, visitor, staged_id)) is not None:
        return done
    staged = staging.open_staged(context, visitor.principal, staged_id)
    try:
        declaration_of(staged.filled, staged.draft)
    except ImprimaturError:
        return on(request, f"/datasets/new/{staged_id}/declare")
    return _budget_page(request, context, visitor, staged)


@router.post("/datasets/new/{staged_id}/budget", name="create_dataset", dependencies=[OwnForm])
async def publish(request: Request, staged_id: uuid.UUID, context: ContextOf, visitor: Owner, form: Filled) -> Response:
    """Check the file by its declaration and publish it. What the owner alone may hear of it stands in this reply and nowhere else."""
    kept = await run_in_threadpool(_keep, request, context, visitor, staged_id, form)
    if isinstance(kept, Response):
        return kept

    async def work(caller: Caller) -> dict[str, Any]:
        reply = await _publish(request, context, visitor, kept, caller)
        return {"html": bytes(reply.body).decode()}

    if MEDIA_TYPE in request.headers.get(
        "accept", ""
    ):  # a script that shows how far it is, then the page in the last event
        return UploadEvents(request, work, AsyncExitStack())
    return await _publish(request, context, visitor, kept, None)


async def _publish(
    request: Request, context: Context, visitor: SignedIn, kept: staging.Staged, caller: Caller | None
) -> Response:
    """The page that follows: published, or the form again with why not."""
    tenant, staged_id = visitor.principal.tenant_id, kept.id
    try:
        declaration = _declaration(kept)
        with open_spool(request, tenant) as spool:

            def create(caller: Caller) -> tuple[Dataset, list[str]]:
                staging.fetch_file(context, visitor.principal, staged_id, spool)
                made = datasets.create(context, visitor.principal, spool.file, declaration, caller)
                staging.mark_published(context, staged_id, made[0].id)
                return made

            dataset, notices = await in_turn(request, tenant, create, caller)
    except ImprimaturError as error:
        return await run_in_threadpool(_refused, request, context, visitor, staged_id, error)
    to_buy = [field.name for field in open_fields(dataset.declared_schema)]
    return page(request, "published.html", signed_in=visitor, dataset=dataset, notices=notices, to_buy=to_buy)


def _keep(
    request: Request, context: Context, visitor: SignedIn, staged_id: uuid.UUID, form: Mapping[str, str]
) -> staging.Staged | Response:
    """What was typed is kept before anything is tried; a reply where it goes no further."""
    if (done := published(request, context, visitor, staged_id)) is not None:
        return done
    staged = staging.open_staged(context, visitor.principal, staged_id)
    filled = {**staged.filled, "budget": {name: form.get(name, "").replace("\r\n", "\n") for name in FIELDS}}
    if (elsewhere := keep_or_say(context, visitor, staged, filled, form)) is not None:
        return _budget_page(request, context, visitor, elsewhere, fault=CHANGED_ELSEWHERE, status=409)
    if form.get("step") == "back":
        return on(request, f"/datasets/new/{staged_id}/declare")
    return staging.open_staged(context, visitor.principal, staged_id)


def _refused(
    request: Request, context: Context, visitor: SignedIn, staged_id: uuid.UUID, error: ImprimaturError
) -> Response:
    """The form again, with why. A form that was sent twice ends at the dataset that the first has made."""
    if (done := published(request, context, visitor, staged_id)) is not None:
        return done
    staged = staging.open_staged(context, visitor.principal, staged_id)
    shown = _budget_page(request, context, visitor, staged, fault=error, status=noted(request, error))
    return with_retry_after(shown, error)


def _declaration(staged: staging.Staged) -> Declaration:
    """As the API takes it."""
    document, unit = declaration_of(staged.filled, staged.draft)
    said = staged.filled["budget"]
    budget: dict[str, Any] = {"epsilon": _number(said.get("epsilon", ""), "epsilon")}
    if said.get("delta", "").strip():
        budget["delta"] = _number(said["delta"], "delta")
    distinct = said.get("distinct_from", "").strip()
    undeclared = [line.strip() for line in said.get("accept_undeclared", "").split("\n") if line.strip()]
    expires = said.get("expires", "").strip()
    if said.get(PUBLIC) and not said.get(KNOWN_PUBLIC):
        raise InvalidInput(
            Message(
                "You said that everybody may have these rows. Tick the line below it as well, which says what follows, "
                "or take this back"
            ),
            where=PUBLIC,
        )
    declaration = parse_declaration(
        schema=json.dumps(document),
        budget=json.dumps(budget),
        name=said.get("name", ""),
        privacy_unit=None if unit is None else json.dumps(unit),
        rows_expire_at=f"{expires}T00:00:00Z" if expires else None,
        distinct_from=json.dumps([distinct]) if distinct else None,
        accept_undeclared=json.dumps(undeclared),
    )
    return with_public_rows(declaration, json.dumps(bool(said.get(PUBLIC))))


def _budget_page(
    request: Request,
    context: Context,
    visitor: SignedIn,
    staged: staging.Staged,
    *,
    fault: ImprimaturError | str | None = None,
    status: int = 200,
) -> Response:
    said = staged.filled["budget"]
    values = fault.values if isinstance(fault, ImprimaturError) else {}
    largest = context.settings.max_epsilon
    return page(
        request,
        "budget.html",
        status=status,
        signed_in=visitor,
        staged=staged,
        filled=staged.filled,
        said={name: said.get(name, "") for name in FIELDS},
        epsilon=_epsilon_or_none(said.get("epsilon", "")),
        odds=[each for each in ODDS if each <= largest],
        smallest=min(SMALLEST, largest / 2.0),
        largest=largest,
        fault=in_words_of_the_form(request, fault.detail) if isinstance(fault, ImprimaturError) else fault,
        known=values.get("dataset_id") if isinstance(fault, DuplicateRows) else None,
        to_buy=purchases.purchases_of(declaring.fields_of(staged.filled["document"])),
        looks_alike=bool(values.get("columns_match")),
    )


def _number(text: str, name: str) -> float:
    return number_in(text, f"budget.{name}", 0.5, error=InvalidInput)


def _epsilon_or_none(text: str) -> float | None:
    try:
        found = _number(text, "epsilon")
    except InvalidInput:
        return None
    return found if 0.0 < found <= 1_000.0 else None
