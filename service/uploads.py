"""Multipart uploads: limited while they stream, kept in a scratch file, never in memory as a whole."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InvalidInput, TooLarge
from service.http_errors import problem

MAX_TEXT_FIELD_BYTES = 4 << 20
MAX_JSON_BODY_BYTES = 1 << 20
MAX_PARTS = 16


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
    """Counts body bytes as they arrive and stops reading at the limit: large for multipart, small for the rest."""

    def __init__(self, app: ASGIApp, upload_limit_bytes: int) -> None:
        self.app = app
        self.upload_limit_bytes = upload_limit_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        multipart = headers.get(b"content-type", b"").lower().startswith(b"multipart/form-data")
        limit_bytes = self.upload_limit_bytes if multipart else MAX_JSON_BODY_BYTES
        too_large = TooLarge(f"the request is larger than {limit_bytes} bytes", limit_bytes=limit_bytes)
        declared = headers.get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > limit_bytes:
            await problem(413, too_large.code, too_large.detail, **too_large.values)(scope, receive, send)
            return
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit_bytes:
                raise too_large
            return message

        await self.app(scope, counted, send)


@asynccontextmanager
async def receive_upload(request: Request, *, allowed: set[str], scratch_dir: Path | None) -> AsyncIterator[Upload]:
    """The multipart body of a request: one `file` and the `allowed` text fields. Gone from disk when the block ends."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise InvalidInput("send the table as multipart/form-data", where="content-type")
    try:
        form = await request.form(max_files=MAX_PARTS, max_fields=MAX_PARTS, max_part_size=MAX_TEXT_FIELD_BYTES)
    except HTTPException as error:  # what Starlette makes of a broken body
        raise InvalidInput(f"the multipart body cannot be read: {error.detail}", where="body") from None
    try:
        names = [name for name, _ in form.multi_items()]
        unknown = sorted(set(names) - allowed - {"file"})
        if unknown:
            raise InvalidInput(f"unknown multipart field {unknown[0][:100]!r}", where="body", allowed=sorted(allowed))
        if len(names) != len(set(names)):
            raise InvalidInput("a multipart field is given twice", where="body")
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise InvalidInput("the multipart field 'file' is missing or is not a file", where="file")
        fields = {name: await _text(name, value) for name, value in form.multi_items() if name != "file"}
        with tempfile.TemporaryDirectory(prefix="imprimatur-upload-", dir=scratch_dir) as folder:
            path = Path(folder) / "upload"
            await run_in_threadpool(_copy, file, path)
            yield Upload(path, fields)
    finally:
        await form.close()


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


def multipart_body(required: list[str], properties: dict[str, Any]) -> dict[str, Any]:
    """OpenAPI text for a body that FastAPI does not parse itself."""
    schema = {"type": "object", "required": required, "properties": properties}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


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
    "budget": {"type": "string", "description": 'JSON: {"epsilon": 5, "delta": 1e-6}; delta defaults to 1/(10 n).'},
    "name": {"type": "string", "description": "A name for people."},
    "privacy_unit": {
        "type": "string",
        "description": 'JSON: {"column": "customer", "max_rows_per_unit": 8}; all rows of one value are one unit.',
    },
}
