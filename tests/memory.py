"""A store of checkpoints in memory."""

from __future__ import annotations


class Memory:
    """The one checkpoint of a release, and all that there ever were."""

    def __init__(self) -> None:
        self.all: list[bytes] = []

    def put(self, checkpoint: bytes) -> None:
        self.all.append(checkpoint)

    def get(self) -> bytes | None:
        return self.all[-1] if self.all else None
