"""Styles, scripts and pictures of the page: files of this package, each at an address that holds a hash of it."""

from __future__ import annotations

import gzip
import hashlib
import importlib.resources
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request
from fastapi.responses import Response

from service.base.errors import NotFound
from service.base.messages import Message

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FOR_EVER = "public, max-age=31536000, immutable"
DIGEST_DIGITS = 16

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Asset:
    """One file as it is sent."""

    content: bytes
    packed: bytes
    """The same, gzipped once; it holds nothing private, so its length tells nothing."""
    media_type: str
    digest: str


@lru_cache
def assets() -> dict[str, Asset]:
    """Every file that browsers may fetch, by its name; ours and `vendor/…`, which are of others."""
    folder = importlib.resources.files("service.pages") / "assets"
    return {
        file.name: _read(file) for place in (folder, folder / "vendor") for file in place.iterdir() if _type_of(file)
    }


def asset_address(name: str) -> str:
    """The address of a static file. Another content has another address, so browsers may keep each for ever."""
    return f"/assets/{assets()[name].digest}/{name}"


@router.get("/assets/{digest}/{name}")
def read_asset(request: Request, digest: str, name: str) -> Response:
    """A file of the page, for everybody: it holds no data."""
    found = assets().get(name)
    if found is None or found.digest != digest:
        raise NotFound(Message("there is no such file; load the page again"))
    headers = {"Cache-Control": FOR_EVER, "Vary": "Accept-Encoding"}
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(found.packed, media_type=found.media_type, headers={**headers, "Content-Encoding": "gzip"})
    return Response(found.content, media_type=found.media_type, headers=headers)


def _type_of(file: Traversable) -> str | None:
    return next((kind for ending, kind in MEDIA_TYPES.items() if file.name.endswith(ending)), None)


def _read(file: Traversable) -> Asset:
    content = file.read_bytes()
    kind = _type_of(file)
    assert kind is not None  # noqa: S101 - `assets` has asked
    return Asset(content, gzip.compress(content, mtime=0), kind, hashlib.sha256(content).hexdigest()[:DIGEST_DIGITS])
