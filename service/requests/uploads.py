"""Multipart uploads: limited while they stream, kept in a sealed scratch file, never in memory as a whole."""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar
from uuid import UUID

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.base.errors import CallerLeft, InvalidInput, TooLarge, TooSlow
from service.intake.caller import Caller
from service.platform.settings import Settings
from service.requests.multipart import FILE, MultipartBody
from service.requests.problems import RefusedBody, problem
from service.requests.spool import Spool, SpoolQuotas
from service.requests.turns import FairTurns

MAX_JSON_BODY_BYTES = 1 << 20
MAX_HEAD_BYTES = 32 << 10
COMPLETION = re.compile(r"/v1/releases/[^/]+/complete")
"""Where rows come as a body of their own."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Upload:
    """The file in the scratch folder and the text fields beside it."""

    spool: Spool
    fields: Mapping[str, str]
    has_file: bool
    file_name: str = ""

    def required(self, name: str) -> str:
        if name not in self.fields:
            raise InvalidInput(f"the multipart field {name!r} is missing", where=name)
        return self.fields[name]


class BodyLimit:
    """Counts body bytes and the seconds waited for them; stops reading what is too large or comes too slowly.

    Large bodies are for multipart alone, and for rows to be completed. A slow sender costs a connection and a little memory, never a thread.
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self.app = app
        self.settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        if sum(len(name) + len(value) for name, value in scope["headers"]) > MAX_HEAD_BYTES:
            detail = f"the head of the request is larger than {MAX_HEAD_BYTES} bytes"
            await problem(431, TooLarge.code, detail, limit_bytes=MAX_HEAD_BYTES)(scope, receive, send)
            return
        multipart = headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
        limit_bytes = self.settings.upload_limit_bytes if multipart else MAX_JSON_BODY_BYTES
        if scope["method"] == "POST" and COMPLETION.fullmatch(scope["path"]):
            limit_bytes = self.settings.complete_bytes_limit
        too_large = TooLarge(f"the request is larger than {limit_bytes} bytes", limit_bytes=limit_bytes)
        declared = headers.get(b"content-length", b"0")
        is_declared_too_large = declared.isdigit() and int(declared) > limit_bytes
        if is_declared_too_large and scope["path"].startswith("/v1/"):
            await problem(413, too_large.code, too_large.detail, **too_large.values)(scope, receive, send)
            return
        seen, waited_seconds, complete = 0, 0.0, False

        async def counted() -> Message:
            nonlocal seen, waited_seconds, complete
            if is_declared_too_large:  # a page says so as a page
                raise RefusedBody(too_large)
            if complete:  # from here on the server only says whether the client is still there
                return await receive()
            began = time.monotonic()
            patience = self._patience_seconds(seen) - waited_seconds
            try:
                async with asyncio.timeout(patience):
                    message = await receive()
            except TimeoutError:
                raise RefusedBody(TooSlow("the body of the request comes too slowly")) from None
            waited_seconds += time.monotonic() - began
            seen += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if seen > limit_bytes:
                raise RefusedBody(too_large)
            return message

        await self.app(scope, counted, send)

    def _patience_seconds(self, seen_bytes: int) -> float:
        """How long a sender of so many bytes may have kept us waiting, in all."""
        rate = self.settings.body_bytes_per_second
        return self.settings.body_grace_seconds + (seen_bytes / rate if rate else math.inf)


@asynccontextmanager
async def receive_upload(
    request: Request,
    tenant: UUID,
    *,
    allowed: set[str],
    needs_file: bool = True,
    before_file: Callable[[Mapping[str, str]], None] = lambda _: None,
) -> AsyncIterator[Upload]:
    """The multipart body of a request: one `file` and the `allowed` text fields. Gone when the block ends.

    Where no file is needed and none comes, the spool is there to be written to. `before_file` sees the fields that came
    before the file, and may refuse it before a byte of it is kept.
    """
    content_type = request.headers.get("content-type", "")
    if not content_type.lower().startswith("multipart/form-data"):
        raise InvalidInput("send the table as multipart/form-data", where="content-type")
    with open_spool(request, tenant) as spool:
        body = MultipartBody(content_type, allowed - {FILE}, spool, before_file)
        try:
            await body.read(request.stream())
        except ClientDisconnect:
            raise CallerLeft("the caller has left; nothing of the upload was kept") from None
        if needs_file and not body.has_file:
            raise InvalidInput("the multipart field 'file' is missing or is not a file", where=FILE)
        yield Upload(spool, body.fields, has_file=body.has_file, file_name=body.file_name)


def open_spool(request: Request, tenant: UUID) -> AbstractContextManager[Spool]:
    """Room for one upload of this tenant."""
    quotas: SpoolQuotas = request.app.state.spool_quotas
    return quotas.open(tenant)


async def in_turn(request: Request, tenant: UUID, function: Callable[[Caller], T], caller: Caller | None = None) -> T:
    """Run a function that parses an upload, in a thread, when it is the tenant's turn; those who wait hold no thread.

    Whether the caller is still there is watched all the while: when it leaves, what was started for it ends.
    """
    caller = caller or Caller()
    async with watched(request, caller):
        return await in_turn_unwatched(request, tenant, function, caller)


async def in_turn_unwatched(request: Request, tenant: UUID, function: Callable[[Caller], T], caller: Caller) -> T:
    """The same as `in_turn`, for work that may go on after its reply (`service.requests.behind`)."""
    turns: FairTurns = request.app.state.upload_turns
    slots: CapacityLimiter = request.app.state.ingest_slots
    async with turns.turn(tenant, caller):
        return await to_thread.run_sync(function, caller, limiter=slots)


@asynccontextmanager
async def watched(request: Request, caller: Caller) -> AsyncIterator[None]:
    """Within the block the caller has left as soon as the connection has ended."""
    watching = asyncio.ensure_future(_watch(request, caller))
    try:
        yield
    finally:
        watching.cancel()


async def _watch(request: Request, caller: Caller) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    caller.leave()


def multipart_body(
    required: list[str], properties: dict[str, Any], json_schema: dict[str, Any] | None = None
) -> dict[str, Any]:
    """OpenAPI text for a body that FastAPI does not parse itself; with `json_schema` it may be JSON as well."""
    schema = {"type": "object", "properties": properties} | ({"required": required} if required else {})
    content = {"multipart/form-data": {"schema": schema}}
    if json_schema is not None:
        content = {"application/json": {"schema": json_schema}, **content}
    return {"requestBody": {"required": True, "content": content}}


TABLE_PROPERTIES: dict[str, Any] = {
    "file": {
        "type": "string",
        "format": "binary",
        "description": "A table: CSV (UTF-8, with a header) or Parquet. Images: a ZIP of PNG or JPEG files with a labels CSV, NPZ, or IDX.",
    },
    "schema": {
        "type": "string",
        "description": "Declared schema as JSON. Table Schema: columns, types, enums, bounds. Images: type, height, width, channels, classes.",
    },
    "budget": {
        "type": "string",
        "description": 'JSON: {"epsilon": 5, "delta": 1e-6}; delta defaults to min(1e-6, 1/n²).',
    },
    "name": {"type": "string", "description": "A name for people."},
    "rows_expire_at": {
        "type": "string",
        "description": "When the rows and their key are destroyed, like 2027-01-31T00:00:00Z; default: never.",
    },
    "privacy_unit": {
        "type": "string",
        "description": 'JSON: {"column": "customer", "max_rows_per_unit": 8}; all rows of one value are one unit. Images: '
        '{"max_images_per_unit": 10}; the file says whose each is. "missing": "own_unit" makes rows without an id units of their own.',
    },
    "accept_draft": {
        "type": "string",
        "description": "JSON: true takes a schema that is marked as a draft, which was made by reading the rows.",
    },
    "accept_undeclared": {
        "type": "string",
        "description": "JSON: a list of columns of which most rows may be outside what is declared, and become missing or are moved.",
    },
    "distinct_from": {
        "type": "string",
        "description": "JSON: a list of ids of your datasets that look the same, but hold other people's rows; written into the audit log.",
    },
}
