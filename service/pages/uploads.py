"""`/datasets/new`: a table becomes a dataset in three steps: choose a file, declare it, give it a budget and publish.

Between the steps the file waits encrypted, for the key that sent it and an hour (`service/datasets/staging.py`). Its
preview, its draft and what is typed are shown to that key alone: they hold cells of the file.
"""

from __future__ import annotations

import hashlib
import secrets
import uuid
from contextlib import AsyncExitStack
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from service.auth.dependencies import ContextOf
from service.auth.sessions import SignedIn
from service.base.errors import ImprimaturError
from service.base.messages import Message, said
from service.base.text import MAX_NAME_LENGTH
from service.datasets import staging
from service.intake.drafted import FIRST_ROWS
from service.intake.sealed import SealedFile
from service.pages import declaring, sample_table
from service.pages.apart import FEW, first_of, repeating_of
from service.pages.column_form import ROLES, TYPES
from service.pages.doors import (
    CSRF_FIELD,
    CSRF_HEADER,
    Owner,
    OwnForm,
    PageRoute,
    PageTurn,
    noted,
    require_own_site,
    require_token,
)
from service.pages.error_pages import with_retry_after
from service.pages.findings import notices_of
from service.pages.forms import Filled
from service.pages.image_form import image_form, with_image
from service.pages.languages import language_named, language_of
from service.pages.open_points import open_points
from service.pages.reading import stage_with_draft
from service.pages.refused import in_words_of_the_form
from service.pages.rendering import is_fragment, on, page
from service.pages.words import USES
from service.requests.problems import RefusedBody
from service.requests.uploads import receive_upload

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from service.pages.open_points import OpenPoint
    from service.platform.context import Context

router = APIRouter(include_in_schema=False, route_class=PageRoute)

COLUMNS_OF_A_PART = 40
MOST_POINTS = 20
"""Open points of a declaration that are listed; the others are counted."""
_UNIT_FIELDS = ("several", "column", "most", "missing", "apart")
DEFAULT_EPSILON = "3"


# -- the first step: a file ---------------------------------------------------------------------------------------------


@router.get("/datasets/new", dependencies=[PageTurn])
def choose_file(request: Request, context: ContextOf, visitor: Owner) -> Response:
    """The form for a file, and those that this key has sent and not published."""
    return _choose(request, context, visitor)


@router.post("/datasets/new", name="stage_upload", dependencies=[Depends(require_own_site)])
async def send_file(request: Request, context: ContextOf, visitor: Owner) -> Response:
    """Take the file in, draft its schema, and on to the second step. The form's token comes before the file."""

    def require_own(fields: Mapping[str, str]) -> None:
        require_token(visitor, request.headers.get(CSRF_HEADER) or fields.get(CSRF_FIELD))

    tenant = visitor.principal.tenant_id
    try:
        await run_in_threadpool(staging.discard_unreadable, context, visitor.principal)
        await run_in_threadpool(staging.require_room, context, visitor.principal)
        receiving = receive_upload(request, tenant, allowed={CSRF_FIELD}, before_file=require_own)
        async with AsyncExitStack() as held:
            upload = await held.enter_async_context(receiving)
            filled_of = partial(_first_filled, name=_name_of(upload.file_name))
            staged_id = await stage_with_draft(request, context, visitor, upload, held, filled_of)
    except (ImprimaturError, RefusedBody) as error:
        refusal = error.error if isinstance(error, RefusedBody) else error
        if is_fragment(request):
            raise refusal from None
        status = noted(request, refusal)
        shown = await run_in_threadpool(_choose, request, context, visitor, fault=refusal.detail, status=status)
        return with_retry_after(shown, refusal)
    return on(request, f"/datasets/new/{staged_id}")


@router.post("/datasets/new/sample", name="stage_upload", dependencies=[OwnForm])
def send_sample(request: Request, context: ContextOf, visitor: Owner) -> Response:
    """Made-up rows, declared already."""
    rows = sample_table.sample_rows(secrets.randbits(64))
    name = said(sample_table.NAME, language_named(language_of(request)))
    schema = sample_table.SCHEMA | {"title": name}
    draft = {
        "kind": "table",
        "schema": schema,
        "findings": {},
        "notices": [],
        "names": [field["name"] for field in schema["fields"]],
        "rows": rows[:FIRST_ROWS],
    }
    filled = _first_filled(draft, name) | {
        "unit": {**dict.fromkeys(_UNIT_FIELDS, ""), "several": "no"},
        "declared": "on",
        "is_sample": True,
    }
    staging.require_room(context, visitor.principal)
    with SealedFile.create(context.settings.scratch_dir) as file:
        file.append(sample_table.sample_csv(rows).encode())
        staged_id = staging.stage(context, visitor.principal, file, draft, filled)
    return on(request, f"/datasets/new/{staged_id}/declare")


@router.post("/datasets/new/{staged_id}/discard", name="discard_upload", dependencies=[OwnForm])
def discard(request: Request, staged_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """Destroy the file and what was filled in."""
    staging.discard(context, visitor.principal, staged_id)
    return on(request, "/datasets/new")


# -- the second step: what the columns are ------------------------------------------------------------------------------


@router.get("/datasets/new/{staged_id}")
def go_on(request: Request, staged_id: uuid.UUID, context: ContextOf, visitor: Owner) -> Response:
    """Where the walk stands."""
    elsewhere = published(request, context, visitor, staged_id)
    return on(request, f"/datasets/new/{staged_id}/declare") if elsewhere is None else elsewhere


@router.get("/datasets/new/{staged_id}/declare", dependencies=[PageTurn])
def read_declaration(
    request: Request,
    staged_id: uuid.UUID,
    context: ContextOf,
    visitor: Owner,
    part: Annotated[int, Query(ge=0, le=100)] = 0,
) -> Response:
    """The draft beside the first rows, as it was filled in so far."""
    if (done := published(request, context, visitor, staged_id)) is not None:
        return done
    return declare_page(request, visitor, staging.open_staged(context, visitor.principal, staged_id), part=part)


@router.post("/datasets/new/{staged_id}/declare", name="declare_upload", dependencies=[OwnForm])
def declare(request: Request, staged_id: uuid.UUID, context: ContextOf, visitor: Owner, form: Filled) -> Response:
    """Keep what was filled in; on to the budget, if that was asked for and nothing is missing."""
    if (done := published(request, context, visitor, staged_id)) is not None:
        return done
    staged = staging.open_staged(context, visitor.principal, staged_id)
    part, step = _number(form.get("part")), form.get("step", "save")
    filled = _with_declaration(staged.filled, form)
    if (elsewhere := keep_or_say(context, visitor, staged, filled, form)) is not None:
        return declare_page(request, visitor, elsewhere, part=part, fault=CHANGED_ELSEWHERE, status=409)
    if step != "continue":
        part += {"next": 1, "previous": -1}.get(step, 0)
        return on(request, f"/datasets/new/{staged_id}/declare?part={max(0, part)}")
    if points := open_points(filled, staged.draft):
        now, status = staging.open_staged(context, visitor.principal, staged_id), noted(request, points[0].error)
        return declare_page(request, visitor, now, part=part, points=points, status=status)
    return on(request, f"/datasets/new/{staged_id}/budget")


CHANGED_ELSEWHERE = Message(
    "This was changed in another window since this one was opened. Nothing is lost: below is what you typed here. Send it again "
    "to keep it, or load the page to see what the other window has kept."
)


def keep_or_say(
    context: Context,
    visitor: SignedIn,
    staged: staging.Staged,
    filled: dict[str, Any],
    form: Mapping[str, str],
) -> staging.Staged | None:
    """Keep what was typed and return None; where another window was first, return what was typed, under the newest version."""
    seen = _number(form.get("version"), staged.version)
    if staging.fill_in(context, visitor.principal, staged, filled, seen=seen):
        return None
    newest = staging.open_staged(context, visitor.principal, staged.id)
    return staging.Staged(newest.id, newest.version, newest.draft, filled, newest.sent_at)


def declare_page(
    request: Request,
    visitor: SignedIn,
    staged: staging.Staged,
    *,
    part: int = 0,
    fault: str | None = None,
    points: Sequence[OpenPoint] = (),
    status: int = 200,
) -> Response:
    """The second step as it stands. `points`: what is still to be said or mended."""
    document, draft = staged.filled["document"], staged.draft
    columns = declaring.column_forms(document, draft)
    parts = max(1, -(-len(columns) // COLUMNS_OF_A_PART))
    part = min(part, parts - 1)
    json_text = staged.filled.get("json_text") or declaring.as_text(document)
    begin, end = part * COLUMNS_OF_A_PART, (part + 1) * COLUMNS_OF_A_PART
    return page(
        request,
        "declare.html",
        status=status,
        signed_in=visitor,
        staged=staged,
        filled=staged.filled,
        notices=notices_of(draft),
        is_image=draft["kind"] == "image",
        image=image_form(document),
        columns=columns[begin:end],
        names=[column.name for column in columns],
        targets=[column.name for column in columns if column.use == "boolean" or column.category_count],
        target=document.get("target") or "",
        repeating=repeating_of(draft),
        first_of=first_of,
        few=FEW,
        unconfirmed=sum(column.is_draft for column in columns),
        preview={"names": draft["names"][begin:end], "rows": [row[begin:end] for row in draft["rows"]]},
        pictures=draft.get("pictures", ()),  # none of a table, and of what was sent to a version before
        json_text=json_text,
        json_shown=digest_of(json_text),
        part=part,
        parts=parts,
        types=TYPES,
        roles=ROLES,
        use_words=USES,
        fault=fault,
        points=[
            (in_words_of_the_form(request, each.error.detail), _link_to(each.at, part)) for each in points[:MOST_POINTS]
        ],
        more_points=max(0, len(points) - MOST_POINTS),
    )


def _link_to(at: str | None, part: int) -> str | None:
    """To a part of the page, or of the one that has the column; what was typed is kept by then."""
    _, mark, place = (at or "").partition("column-")
    if not mark or int(place) // COLUMNS_OF_A_PART == part:
        return at and f"#{at}"
    return f"?part={int(place) // COLUMNS_OF_A_PART}#{at}"


# -- what both later steps need -----------------------------------------------------------------------------------------


def _choose(
    request: Request, context: Context, visitor: SignedIn, *, fault: str | None = None, status: int = 200
) -> Response:
    return page(
        request,
        "new.html",
        status=status,
        signed_in=visitor,
        waiting=staging.list_own(context, visitor.principal),
        most_bytes=context.settings.upload_limit_bytes,
        fault=None if fault is None else in_words_of_the_form(request, fault),
    )


def published(request: Request, context: Context, visitor: SignedIn, staged_id: uuid.UUID) -> Response | None:
    """To the dataset, where it is one already; to the page that says how far its draft is, while that is made."""
    found = staging.find(context, visitor.principal, staged_id)
    if found.is_being_read:
        return on(request, f"/datasets/new/{staged_id}/reading")
    return None if found.dataset_id is None else on(request, f"/datasets/{found.dataset_id}")


def _first_filled(draft: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {
        "document": draft["schema"],
        "json_text": None,
        "set_aside": {},
        "unit": dict.fromkeys(_UNIT_FIELDS, ""),
        "declared": "",
        "budget": {"name": name, "epsilon": DEFAULT_EPSILON},
        "is_sample": False,
    }


def _with_declaration(before: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    set_aside = dict(before["set_aside"])
    filled = {**before, "set_aside": set_aside, "declared": form.get("declared", "")}
    filled["unit"] = {name: form.get(name, "") for name in _UNIT_FIELDS}
    text = _text(form.get("json", ""))
    if form.get("step") == "json":
        found = declaring.from_text(text)
        return filled | ({"json_text": text} if found is None else {"document": found, "json_text": None})
    filled["document"] = with_image(declaring.with_columns(dict(before["document"]), form, set_aside), form)
    if text == _text(declaring.as_text(before["document"])):
        filled["json_text"] = None
    elif text and digest_of(text) != form.get("json_shown"):
        filled["json_text"] = text
    return filled


def digest_of(text: str) -> str:
    """A digest by which a form says whether the JSON in it was changed since it was shown."""
    return hashlib.sha256(_text(text).encode("utf-8", "surrogatepass")).hexdigest()


def _text(typed: str) -> str:
    return typed.replace("\r\n", "\n").strip()


def _name_of(file_name: str) -> str:
    """What a dataset may be called by the file's name, of which the path and the kind are left out."""
    stem = PurePath(file_name.replace("\\", "/")).name.split(".")[0]
    return "".join(mark if mark.isprintable() else " " for mark in stem).strip()[:MAX_NAME_LENGTH]


def _number(text: str | None, default: int = 0) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else default
