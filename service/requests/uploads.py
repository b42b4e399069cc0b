"""Multipart uploads: limited while they stream, kept in a scratch file, never in memory as a whole."""

from __future__ import annotations

import asyncio
import math
import shutil
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from anyio import CapacityLimiter, to_thread
from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.base.errors import InvalidInput, TooLarge, TooSlow
from service.platform.settings import Settings
from service.requests.problems import RefusedBody, problem

MAX_TEXT_FIELD_BYTES = 4 << 20
MAX_JSON_BODY_BYTES = 1 << 20
MAX_HEAD_BYTES = 32 << 10
MAX_PARTS = 16

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Upload:
    """The file on disk and the text fields beside it."""

    path: Path
    fields: Mapping[str, str]

    def required(self, name: str) -> str:
        if name not in self.fields:
            raise InvalidInput(f"the multipart field {name!r} is missing", where=name)
        return self.fields[name]


class BodyLimit:
    """Counts body bytes and the seconds waited for them; stops reading what is too large or comes too slowly.

    Large bodies are for multipart alone. A slow sender costs a connection and a little memory, never a thread.
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
        too_large = TooLarge(f"the request is larger than {limit_bytes} bytes", limit_bytes=limit_bytes)
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit_bytes:
            await problem(413, too_large.code, too_large.detail, **too_large.values)(scope, receive, send)
            return
        seen, waited_seconds, complete = 0, 0.0, False

        async def counted() -> Message:
            nonlocal seen, waited_seconds, complete
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
    request: Request, *, allowed: set[str], scratch_dir: Path | None, needs_file: bool = True
) -> AsyncIterator[Upload]:
    """The multipart body of a request: one `file` and the `allowed` text fields. Gone from disk when the block ends.

    Where no file is needed and none comes, the path is there to be written to.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise InvalidInput("send the table as multipart/form-data", where="content-type")
    try:
        form = await request.form(max_files=MAX_PARTS, max_fields=MAX_PARTS, max_part_size=MAX_TEXT_FIELD_BYTES)
    except RefusedBody:
        raise
    except HTTPException as error:  # what Starlette makes of a broken body
        raise InvalidInput(f"the multipart body cannot be read: {error.detail}", where="body") from None
    try:
        names = [name for name, _ in form.multi_items()]
        unknown = sorted(set(names) - allowed - {"file"})
        if unknown:
            raise InvalidInput("there is an unknown multipart field", where="body", allowed=sorted(allowed | {"file"}))
        if len(names) != len(set(names)):
            raise InvalidInput("a multipart field is given twice", where="body")
        file = form.get("file")
        if not isinstance(file, UploadFile) and (needs_file or file is not None):
            raise InvalidInput("the multipart field 'file' is missing or is not a file", where="file")
        fields = {name: await _text(name, value) for name, value in form.multi_items() if name != "file"}
        with tempfile.TemporaryDirectory(prefix="imprimatur-upload-", dir=scratch_dir) as folder:
            path = Path(folder) / "upload"
            if isinstance(file, UploadFile):
                await run_in_threadpool(_copy, file, path)
            yield Upload(path, fields)
    finally:
        await form.close()


async def in_turn(request: Request, function: Callable[..., T], *arguments: Any) -> T:
    """Run a function that parses an upload. So many at once, in threads of their own; the others hold no thread."""
    slots: CapacityLimiter = request.app.state.ingest_slots
    return await to_thread.run_sync(partial(function, *arguments), limiter=slots)


async def _text(name: str, value: UploadFile | str) -> str:
    """A JSON field may come as plain text or, from some clients, as a part with a file name."""
    if isinstance(value, str):
        return value
    try:
        return (await value.read(MAX_TEXT_FIELD_BYTES + 1)).decode()
    except UnicodeDecodeError:
        raise InvalidInput(f"{name}: this is not UTF-8 text", where=name) from None


def _copy(file: UploadFile, path: Path) -> None:
    file.file.seek(0)
    with path.open("wb") as target:
        shutil.copyfileobj(file.file, target, 1 << 20)


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
    "distinct_from": {
        "type": "string",
        "description": "JSON: a list of ids of your datasets that look the same, but hold other people's rows; written into the audit log.",
    },
}
