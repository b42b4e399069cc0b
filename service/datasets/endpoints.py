"""`/v1/datasets`: upload, read, erase; budget and ledger."""

from __future__ import annotations

import uuid
from contextlib import AsyncExitStack
from typing import Any

from fastapi import APIRouter, Request, Response, status

from service.auth.dependencies import ContextOf, Owner, Reader
from service.auth.reading import ReadingTurn
from service.base.errors import (
    AlreadyCharged,
    DraftSchema,
    DuplicateRows,
    Gone,
    InvalidFile,
    InvalidInput,
    InvalidSchema,
    NotPostponable,
    OpenOrders,
    OtherRows,
    Redeclared,
    UploadNeeded,
)
from service.base.text import read_json
from service.datasets import redeclaration, service
from service.datasets.declaration import declaration_of, with_public_rows
from service.datasets.schemas import (
    BudgetReply,
    DatasetChange,
    DatasetList,
    DatasetReply,
    LedgerReply,
    NewDatasetReply,
)
from service.datasets.upload_events import MEDIA_TYPE, UploadEvents
from service.intake.caller import Caller
from service.platform.paging import DEFAULT_LIMIT, Page
from service.requests.paging import Before, BeforeNumber, Limit
from service.requests.problems import problems
from service.requests.uploads import TABLE_PROPERTIES, in_turn, multipart_body, open_spool, receive_upload

UPLOAD_PROPERTIES: dict[str, Any] = {
    **TABLE_PROPERTIES,
    "rows_are_public": {
        "type": "string",
        "description": "JSON: true says that everybody may have the rows. Orders of your tenant on other datasets may then train on them "
        "first (`public_dataset`), without a charge. It is said here or never, and cannot be taken back.",
    },
}
DECLARATION_PROPERTIES = {name: TABLE_PROPERTIES[name] for name in ("file", *redeclaration.FIELDS)}
DECLARATION_BODY: dict[str, Any] = {
    "type": "object",
    "minProperties": 1,
    "additionalProperties": False,
    "properties": {
        "schema": {"type": "object", "description": "The whole schema, as for an upload."},
        "privacy_unit": {"type": ["object", "null"], "description": "The whole privacy unit; null: each row is one."},
        "name": {"type": "string", "description": "A name for people."},
        "accept_draft": {"type": "boolean", "description": "Take a schema that is marked as a draft."},
        "accept_undeclared": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Columns of which most rows may be outside what is declared.",
        },
    },
}

router = APIRouter(prefix="/v1/datasets", tags=["datasets"])


@router.post(
    "",
    status_code=status.HTTP_201_CREATED,
    response_model=NewDatasetReply,
    responses={
        200: {"description": "Progress and the reply, as events.", "content": {MEDIA_TYPE: {}}},
        **problems(InvalidSchema, DraftSchema, InvalidFile, DuplicateRows),
    },
    openapi_extra=multipart_body(["file", "schema", "budget"], UPLOAD_PROPERTIES),
)
async def create_dataset(
    request: Request, response: Response, context: ContextOf, principal: Owner
) -> NewDatasetReply | UploadEvents:
    """Upload a table with its declared schema and give it a privacy budget, once.

    The file is checked whole against the schema before anything is kept. The notices of the reply are for the owner:
    they count values outside the declared domain.

    With `Accept: text/event-stream`, `progress` events say what share of the file has been read; the last event is
    `dataset` with the usual reply, or `problem`.
    """
    async with AsyncExitStack() as stack:
        receiving = receive_upload(request, principal.tenant_id, allowed=set(UPLOAD_PROPERTIES))
        upload = await stack.enter_async_context(receiving)
        declaration = with_public_rows(declaration_of(upload), upload.fields.get("rows_are_public"))

        def create(caller: Caller) -> NewDatasetReply:
            dataset, notices = service.create(context, principal, upload.spool.file, declaration, caller)
            return NewDatasetReply.with_notices(dataset, notices)

        async def work(caller: Caller) -> dict[str, Any]:
            made = await in_turn(request, principal.tenant_id, create, caller)
            return made.model_dump(mode="json", by_alias=True)

        if MEDIA_TYPE in request.headers.get("accept", ""):
            return UploadEvents(request, work, stack.pop_all())
        reply = await in_turn(request, principal.tenant_id, create)
    response.headers["Location"] = f"/v1/datasets/{reply.id}"
    return reply


@router.get("", dependencies=[ReadingTurn])
def list_datasets(
    context: ContextOf, principal: Reader, limit: Limit = DEFAULT_LIMIT, before: Before = None
) -> DatasetList:
    """Your tenant's datasets, newest first."""
    datasets, following = service.list_page(context, principal, Page.of(limit, before))
    return DatasetList(items=[DatasetReply.of(dataset) for dataset in datasets], next=following)


@router.get("/{dataset_id}")
def read_dataset(dataset_id: uuid.UUID, context: ContextOf, principal: Reader) -> DatasetReply:
    """One dataset: its declaration and its promise, nothing of its rows."""
    return DatasetReply.of(service.find(context, principal, dataset_id))


@router.patch("/{dataset_id}", responses=problems(NotPostponable, Gone))
def change_dataset(dataset_id: uuid.UUID, body: DatasetChange, context: ContextOf, principal: Owner) -> DatasetReply:
    """Give the rows a deletion date, or an earlier one; from then on the dataset is as if erased."""
    return DatasetReply.of(service.set_expiry(context, principal, dataset_id, body.rows_expire_at))


@router.put(
    "/{dataset_id}/declaration",
    response_model=NewDatasetReply,
    responses={
        200: {"description": "The dataset; or progress and the reply, as events.", "content": {MEDIA_TYPE: {}}},
        **problems(
            InvalidSchema,
            DraftSchema,
            InvalidFile,
            DuplicateRows,
            OtherRows,
            AlreadyCharged,
            OpenOrders,
            UploadNeeded,
            Redeclared,
            Gone,
        ),
    },
    openapi_extra=multipart_body([], DECLARATION_PROPERTIES, DECLARATION_BODY),
)
async def replace_declaration(
    dataset_id: uuid.UUID, request: Request, context: ContextOf, principal: Owner
) -> NewDatasetReply | UploadEvents:
    """Replace schema, privacy unit or name, as long as no order on the dataset was ever charged; ε stays.

    What is left out stays as it is; a `privacy_unit` of null makes each row a unit. δ follows n where
    it was the default, and becomes 1/(10n) where it is above that.
    The rows are read again from the upload, which is kept until the first charge for the key that sent it; otherwise
    (`upload_needed`) send the same file again as multipart/form-data. Orders that are reserved must be cancelled first.

    The notices of the reply, and events, are as for an upload.
    """
    async with AsyncExitStack() as stack:
        if request.headers.get("content-type", "").lower().startswith("application/json"):
            documents = read_json(await request.body(), "body")
            if not isinstance(documents, dict):
                raise InvalidInput("send a JSON object", where="body")
            spool, has_file = stack.enter_context(open_spool(request, principal.tenant_id)), False
        else:
            receiving = receive_upload(
                request, principal.tenant_id, allowed=set(DECLARATION_PROPERTIES), needs_file=False
            )
            upload = await stack.enter_async_context(receiving)
            fields, spool, has_file = upload.fields, upload.spool, upload.has_file
            documents = {name: text if name == "name" else read_json(text, name) for name, text in fields.items()}
        replacement = redeclaration.parse_replacement(documents)

        def replace(caller: Caller) -> NewDatasetReply:
            dataset, notices = redeclaration.redeclare(
                context, principal, dataset_id, replacement, spool, caller, is_new=has_file
            )
            return NewDatasetReply.with_notices(dataset, notices)

        async def work(caller: Caller) -> dict[str, Any]:
            made = await in_turn(request, principal.tenant_id, replace, caller)
            return made.model_dump(mode="json", by_alias=True)

        if MEDIA_TYPE in request.headers.get("accept", ""):
            return UploadEvents(request, work, stack.pop_all())
        return await in_turn(request, principal.tenant_id, replace)


@router.delete("/{dataset_id}", status_code=status.HTTP_204_NO_CONTENT)
def erase_dataset(dataset_id: uuid.UUID, context: ContextOf, principal: Owner) -> None:
    """Destroy the rows and their key. The ledger and published releases stay; the budget is not given back."""
    service.erase(context, principal, dataset_id)


@router.get("/{dataset_id}/budget")
def read_budget(dataset_id: uuid.UUID, context: ContextOf, principal: Reader) -> BudgetReply:
    """What is promised, spent and left, in nano-shares (billionths of the budget) of both accounts."""
    return service.read_budget(context, principal, dataset_id)


@router.get("/{dataset_id}/ledger", dependencies=[ReadingTurn])
def read_ledger(
    dataset_id: uuid.UUID,
    context: ContextOf,
    principal: Reader,
    limit: Limit = DEFAULT_LIMIT,
    before: BeforeNumber = None,
) -> LedgerReply:
    """A page of entries, the newest; within it they are in order. The first page checks the hash chain and the balances."""
    return service.read_ledger(context, principal, dataset_id, limit=limit, before=before)
