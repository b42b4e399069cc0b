"""Files on their way to the service, chunks and events on their way back."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, cast

from imprimatur.folders import as_file
from imprimatur.formats import invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from imprimatur.replies import Json


class Events:
    """Server-sent events, put together from lines as they come; comments and other fields are passed over."""

    def __init__(self) -> None:
        self._kind, self._data = "message", list[str]()

    def after(self, line: str) -> list[tuple[str, Json]]:
        """The event that this line ends: its kind and its JSON document."""
        if line.startswith("event:"):
            self._kind = line[6:].strip()
        elif line.startswith("data:"):
            self._data.append(line[5:].removeprefix(" "))
        elif not line:
            kind, data = self._kind, self._data
            self._kind, self._data = "message", []
            if data:
                return [(kind, json.loads("\n".join(data)))]
        return []


def server_sent_events(lines: Iterable[str]) -> Iterator[tuple[str, Json]]:
    """The kinds and JSON documents of a stream of server-sent events."""
    events = Events()
    for line in lines:
        yield from events.after(line)


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


def file_behind(path: Path) -> Path:
    """What a link leads to, or the path itself. A device or a pipe is refused: a file would take its place."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise invalid(
            "output", f"{path}: this is a device or a pipe, not a file; write to a file, or redirect the output"
        )
    return path.resolve() if path.is_symlink() else path


class Saving:
    """A file that appears only when it is whole; its size in bytes."""

    def __init__(self, path: Path, on_bytes: Callable[[int], None] | None = None) -> None:
        self._path, self._on_bytes = file_behind(path), on_bytes
        path = self._path
        self._unfinished = path.with_name(f".{path.name}.unfinished")
        self.size = 0

    def __enter__(self) -> Self:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self._unfinished.open("wb")
        return self

    def write(self, chunk: bytes) -> None:
        self.size += self._file.write(chunk)
        if self._on_bytes is not None:
            self._on_bytes(self.size)

    def finish(self, check: Callable[[IO[bytes]], object] | None = None) -> None:
        """Nothing appears if `check` raises."""
        self._file.close()
        if check is not None:
            with self._unfinished.open("rb") as file:
                check(file)
        self._unfinished.replace(self._path)

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._unfinished.unlink(missing_ok=True)
