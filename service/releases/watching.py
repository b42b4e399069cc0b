"""Who watches which release: one look at Postgres for all of them, a few times a second, however many watch.

The same look finds out which keys have ended: a stream says nothing more to a key that was revoked.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from service.auth import repository as keys
from service.auth.principal import Principal
from service.base.errors import RateLimited, Unauthenticated, Unavailable
from service.platform.context import Context
from service.releases import repository
from service.releases.models import ENDED
from service.releases.repository import Progress
from service.releases.schemas import ReleaseReply
from service.requests.problems import problem, status_of

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.25
KEY_SECONDS = 2.0
"""Between two looks whether the keys still work."""
KEEP_ALIVE_SECONDS = 15.0
EVENTS_LIMIT_SECONDS = 3_600.0
EVENTS_TYPE = "text/event-stream"
STREAMS_OF_A_KEY = 20
AT_ONCE = 1_000
"""Releases, or keys, that one statement asks for."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A release as it was last seen, and its reply, written once for all who watch."""

    progress: Progress
    reply: str


@dataclass(eq=False, slots=True)
class Watcher:
    """One who watches: through a key, one release."""

    key_id: uuid.UUID
    release_id: uuid.UUID
    seen: Seen | None = None
    key_ended: bool = False
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def hear(self, seconds: float) -> bool:
        """Wait for news, at most so long; False where there were none. Raises `Unauthenticated` once the key has ended."""
        try:
            async with asyncio.timeout(seconds):
                await self.news.wait()
        except TimeoutError:
            return False
        self.news.clear()
        if self.key_ended:
            raise Unauthenticated("this API key was revoked or has expired; nothing more is said to it")
        return True


class Watching:
    """All who watch in this process."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._watchers: dict[uuid.UUID, set[Watcher]] = {}
        self._seen: dict[uuid.UUID, Seen] = {}
        self._streams: Counter[uuid.UUID] = Counter()
        self._poll: asyncio.Task[None] | None = None

    @contextmanager
    def watch(self, principal: Principal, release_id: uuid.UUID) -> Iterator[Watcher]:
        """Hear of a release that this principal may see, which the caller has made sure of."""
        watcher = Watcher(principal.key_id, release_id, self._seen.get(release_id))
        if watcher.seen is not None:
            watcher.news.set()
        self._watchers.setdefault(release_id, set()).add(watcher)
        if self._poll is None or self._poll.done():
            self._poll = asyncio.get_running_loop().create_task(self._look_again_and_again())
        try:
            yield watcher
        finally:
            others = self._watchers[release_id]
            others.discard(watcher)
            if not others:
                del self._watchers[release_id]
                self._seen.pop(release_id, None)

    def open_stream(self, principal: Principal) -> None:
        """Count one more stream of this key, or refuse it; `close_stream` must follow."""
        if self._streams[principal.key_id] >= STREAMS_OF_A_KEY:
            raise RateLimited(
                f"this key has {STREAMS_OF_A_KEY} open streams of events; close one, or read the release now and then",
                retry_after_seconds=5,
            )
        self._streams[principal.key_id] += 1

    def close_stream(self, principal: Principal) -> None:
        self._streams[principal.key_id] -= 1
        if self._streams[principal.key_id] <= 0:
            del self._streams[principal.key_id]

    async def _look_again_and_again(self) -> None:
        """As long as anybody watches."""
        keys_at = time.monotonic() + KEY_SECONDS
        while self._watchers:
            known = {release_id: self._seen.get(release_id) for release_id in self._watchers}
            key_ids: set[uuid.UUID] = set()
            if time.monotonic() >= keys_at:
                key_ids = {watcher.key_id for watchers in self._watchers.values() for watcher in watchers}
            try:
                changed, ended = await run_in_threadpool(look, self._context, known, list(key_ids))
            except Unavailable:  # nothing is known, and so nothing is said
                changed, ended = {}, set()
            except Exception as error:  # noqa: BLE001 - without this task every stream would wait for ever
                logger.error("reading watched releases failed with %s; trying again", type(error).__name__)  # noqa: TRY400 - a message may quote anything
                changed, ended = {}, set()
            else:
                keys_at = time.monotonic() + KEY_SECONDS if key_ids else keys_at
            self._tell(changed, ended)
            await asyncio.sleep(POLL_SECONDS)

    def _tell(self, changed: dict[uuid.UUID, Seen], ended: set[uuid.UUID]) -> None:
        for release_id, watchers in self._watchers.items():
            if release_id in changed:
                self._seen[release_id] = changed[release_id]
            for watcher in watchers:
                if release_id in changed:
                    watcher.seen = changed[release_id]
                watcher.key_ended = watcher.key_ended or watcher.key_id in ended
                if release_id in changed or watcher.key_ended:
                    watcher.news.set()


def in_parts(ids: Iterable[uuid.UUID], most: int) -> Iterator[list[uuid.UUID]]:
    """The ids, at most `most` at a time."""
    listed = list(ids)
    for first in range(0, len(listed), most):
        yield listed[first : first + most]


def look(
    context: Context, known: dict[uuid.UUID, Seen | None], key_ids: Sequence[uuid.UUID]
) -> tuple[dict[uuid.UUID, Seen], set[uuid.UUID]]:
    """Releases that are no longer as they are known, and those of the keys that have ended."""
    ended = set(key_ids)
    moved: list[uuid.UUID] = []
    with context.driver() as connection:
        for some in in_parts(key_ids, AT_ONCE):
            ended -= keys.find_living(connection, some)
        for ids in in_parts(known, AT_ONCE):
            for release_id, progress in repository.progress_of(connection, ids):
                before = known[release_id]
                if before is None or before.progress != progress:
                    moved.append(release_id)
    changed: dict[uuid.UUID, Seen] = {}
    with context.transaction() as session:
        for ids in in_parts(moved, AT_ONCE):
            for release in repository.listed(session, ids):
                reply = ReleaseReply.of(release).model_dump_json()
                changed[release.id] = Seen(Progress(release.state, release.phase, release.step), reply)
    return changed, ended


class ReleaseEvents(StreamingResponse):
    """A stream of server-sent events about one release: `progress`, `state`, and at the end of a key `problem`."""

    def __init__(self, watching: Watching, principal: Principal, release_id: uuid.UUID) -> None:
        watching.open_stream(principal)
        self._watching, self._principal = watching, principal
        super().__init__(
            _events(watching, principal, release_id), media_type=EVENTS_TYPE, headers={"Cache-Control": "no-store"}
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._watching.close_stream(self._principal)


async def _events(watching: Watching, principal: Principal, release_id: uuid.UUID) -> AsyncGenerator[str]:
    """What is new to this stream. Holds no thread while it waits."""
    began = time.monotonic()
    last: Progress | None = None
    with watching.watch(principal, release_id) as watcher:
        while time.monotonic() - began <= EVENTS_LIMIT_SECONDS:
            try:
                heard = await watcher.hear(KEEP_ALIVE_SECONDS)
            except Unauthenticated as error:
                body = bytes(problem(status_of(error), error.code, error.detail).body).decode()
                yield f"event: problem\ndata: {body}\n\n"
                return
            if not heard:
                yield ": still here\n\n"
            elif watcher.seen is not None and watcher.seen.progress != last:
                now = watcher.seen.progress
                kind = "state" if last is None or last.state != now.state else "progress"
                yield f"event: {kind}\ndata: {watcher.seen.reply}\n\n"
                last = now
                if now.state in ENDED:
                    return


async def wait_for_end(watching: Watching, principal: Principal, release_id: uuid.UUID, seconds: float) -> None:
    """Until the release has ended or the time is over. Raises `Unauthenticated` where the key ends meanwhile."""
    deadline = time.monotonic() + seconds
    with watching.watch(principal, release_id) as watcher:
        while (left := deadline - time.monotonic()) > 0.0:
            await watcher.hear(left)
            if watcher.seen is not None and watcher.seen.progress.state in ENDED:
                return
