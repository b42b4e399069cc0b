"""The checkpoint that an attempt goes on from: where it lies, and what is recorded before it does."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Protocol, TypeVar

from service.base.errors import Unavailable
from workers import lease as leases
from workers.checkpoints import Checkpoint
from workers.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable

    from service.platform.context import Context
    from service.privacy.events import Events
    from service.releases.models import Release
    from workers.lease import Lease

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Attempt(Protocol):
    """What keeping a checkpoint needs of an attempt."""

    context: Context
    lease: Lease
    release: Release

    def patiently(self, action: Callable[[], Answer]) -> Answer: ...

    def cost_after(self, steps_done: int) -> int: ...


class Checkpoints:
    """The checkpoint to go on from: an object in the store, and a fenced write that says that it counts.

    All of it is noisy or public. What is put but never recorded, the sweep removes.
    """

    def __init__(self, attempt: Attempt, key: str | None) -> None:
        self._attempt = attempt
        self._storage = attempt.context.storage
        self._key = key

    def put(self, checkpoint: bytes) -> None:
        """Raises `Unavailable` where it was not kept.

        What it holds is recorded first: from the moment it lies in the store, somebody may see it, and must have paid.
        """
        lease, earlier = self._attempt.lease, self._key
        steps = self._steps_in(checkpoint, self._attempt.release.events)
        with self._attempt.context.transaction() as session:
            leases.record_steps(session, lease, steps=steps, renyi=self._attempt.cost_after(steps))
        key = self._storage.put_content(f"checkpoints/{lease.release_id}", checkpoint)
        with self._attempt.context.transaction() as session:
            leases.record_checkpoint(session, lease, key=key)
        self._key = key
        if earlier is not None and earlier != key:
            self._storage.delete(earlier)

    def get(self) -> bytes | None:
        """What earlier attempts left; raises `NotFound` where that is gone, `Tampered` where something else lies there.

        Previews of it may have been seen, and what was seen may not run again: not from an older one put in its place.
        """
        key = self._key
        return None if key is None else self._attempt.patiently(lambda: self._storage.get_content(key))

    def steps_done(self, events: Events) -> int:
        """How many steps of the list lie behind the checkpoint."""
        saved = self.get()
        return 0 if saved is None else self._steps_in(saved, events)

    @staticmethod
    def _steps_in(checkpoint: bytes, events: Events) -> int:
        return Plan(events, Checkpoint.values_of(checkpoint)["position"]).steps_done

    def discard(self) -> None:
        """After the end, which no longer names it. The sweep removes what a silent store keeps."""
        if self._key is None:
            return
        try:
            self._storage.delete(self._key)
        except Unavailable as error:
            logger.warning("no checkpoint removed: %s", error.code)
