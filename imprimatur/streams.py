"""Files on their way to the service, chunks and events on their way back."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from imprimatur.folders import as_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from imprimatur.replies import Json


def server_sent_documents(lines: Iterator[str]) -> Iterator[Json]:
    """The JSON documents of a stream of server-sent events; comments and other fields are passed over."""
    for _, document in server_sent_events(lines):
        yield document


def server_sent_events(lines: Iterator[str]) -> Iterator[tuple[str, Json]]:
    """The kinds and JSON documents of a stream of server-sent events."""
    kind, data = "message", list[str]()
    for line in lines:
        if line.startswith("event:"):
            kind = line[6:].strip()
        elif line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif not line:
            if data:
                yield kind, json.loads("\n".join(data))
            kind, data = "message", []


@contextmanager
def multipart(
    file: str | Path | None, fields: Mapping[str, str], on_progress: Callable[[str, float], None] | None
) -> Iterator[dict[str, Any]]:
    """The text fields, then the file if there is one."""
    parts: dict[str, Any] = {name: (None, text) for name, text in fields.items()}
    if file is None:
        yield parts
        return
    kind = "application/octet-stream"  # the service looks at the content
    with as_file(Path(file)) as path, path.open("rb") as stream:
        sent = stream if on_progress is None else _Watched(stream, on_progress)
        yield {**parts, "file": (path.name, cast("IO[bytes]", sent), kind)}


class _Watched:
    """A file that says how much of it has been sent."""

    def __init__(self, file: IO[bytes], on_progress: Callable[[str, float], None]) -> None:
        self._file = file
        self._on_progress = on_progress
        self._size = max(1, os.fstat(file.fileno()).st_size)
        self.fileno, self.seek, self.tell = file.fileno, file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._on_progress("uploading", min(1.0, self._file.tell() / self._size))
        return piece


def save(
    chunks: Iterator[bytes],
    path: Path,
    on_bytes: Callable[[int], None] | None,
    check: Callable[[IO[bytes]], object] | None = None,
) -> int:
    """Into a file that appears only when it is whole, and only if `check` does not raise; its size in bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.unfinished")
    size = 0
    try:
        with unfinished.open("wb") as file:
            for chunk in chunks:
                size += file.write(chunk)
                if on_bytes is not None:
                    on_bytes(size)
        if check is not None:
            with unfinished.open("rb") as file:
                check(file)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return size
