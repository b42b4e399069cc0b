"""Who waits for an upload to be read: hears how far it is, may leave, and takes the reading process along."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

from service.base.errors import CallerLeft

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Caller:
    """Shared by the thread that reads an upload and the event loop that watches the connection."""

    def __init__(self) -> None:
        self.share = 0.0
        """Of the file, read so far; 1: it is being stored."""
        self._left = False
        self._ends: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def __call__(self, share: float) -> None:
        """So much has been read. Raises `CallerLeft` where that interests no one any more."""
        if self._left:
            raise CallerLeft("the caller has left; nothing of the upload was kept")
        self.share = share

    def leave(self) -> None:
        """End what is running for this caller, and let nothing further begin."""
        with self._lock:
            self._left = True
            ends = list(self._ends)
        for end in ends:
            end()

    @contextmanager
    def taking_along(self, end: Callable[[], object]) -> Iterator[None]:
        """Within the block, `end` is called when the caller leaves; at once, where that has happened."""
        with self._lock:
            self._ends.append(end)
            left = self._left
        try:
            if left:
                end()
            yield
        finally:
            with self._lock:
                self._ends.remove(end)
