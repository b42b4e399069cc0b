"""`/readyz`: which part of the service answers now."""

from __future__ import annotations

import threading
import time

from fastapi import FastAPI, Response
from pydantic import BaseModel
from sqlalchemy.orm import Session

from service.auth.dependencies import ContextOf
from service.base.errors import Unavailable, WrongSecretKey
from service.platform.broker import seconds_since_beat
from service.platform.context import Context
from service.platform.reasons import Reason, storage_reason, tell
from service.platform.secret_roots import require_right
from service.platform.storage import Storage

READY_SECONDS = 30.0
"""A part that has not beaten for this long is not ready."""
PROBE_SECONDS = 2.0
"""So long a look at the storage may take."""
FRESH_SECONDS = 10.0
"""A look at the storage counts for so long, for every caller and however often they ask."""


class Readiness(BaseModel):
    """Whether orders are carried out now, and which part is missing."""

    ready: bool
    parts: dict[str, str]


def install_probes(app: FastAPI, context: Context) -> None:
    """The two addresses that need no key."""
    probe = StorageProbe(context.storage)

    @app.get("/healthz", tags=["probes"])
    def healthz() -> dict[str, str]:
        """The process answers."""
        return {"status": "ok"}

    @app.get("/readyz", tags=["probes"], responses={503: {"model": Readiness, "description": "Not ready yet."}})
    def readyz(context: ContextOf, response: Response) -> Readiness:
        """200 once database, storage, relay and a consuming worker are there; 503 before."""
        parts = parts_of(context) | {"storage": probe.state()}
        ready = all(state == "ok" for state in parts.values())
        response.status_code = 200 if ready else 503
        return Readiness(ready=ready, parts=parts)


def parts_of(context: Context) -> dict[str, str]:
    """What the database knows: `ok`, or what is wrong."""
    try:
        with context.transaction() as session:
            ages = {part: seconds_since_beat(session, part) for part in ("relay", "worker")}
            secrets = _secrets_state(session, context)
    except Unavailable:
        return {"api": "ok", "database": "down", "secrets": "unknown", "relay": "unknown", "worker": "unknown"}
    beats = {part: "ok" if age is not None and age < READY_SECONDS else "quiet" for part, age in ages.items()}
    return {"api": "ok", "database": "ok", "secrets": secrets, **beats}


def _secrets_state(session: Session, context: Context) -> str:
    try:
        require_right(session, context.secrets)
    except WrongSecretKey:
        return "wrong"
    return "ok"


class StorageProbe:
    """Whether the storage answers, looked at by one thread at a time and at most every `FRESH_SECONDS`.

    A store may hang for minutes. A caller waits `PROBE_SECONDS` at most, and no second look begins meanwhile.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lock = threading.Lock()
        self._state, self._fresh_until = "down", 0.0
        self._look: threading.Event | None = None

    def state(self) -> str:
        """`ok` or `down`."""
        with self._lock:
            if time.monotonic() < self._fresh_until:
                return self._state
            if self._look is None:
                self._look = threading.Event()
                threading.Thread(target=self._probe, args=(self._look,), name="storage probe", daemon=True).start()
            look = self._look
        if not look.wait(PROBE_SECONDS):
            tell("storage", Reason("slow", f"the object storage has not answered within {PROBE_SECONDS:g} seconds"))
            return "down"
        with self._lock:
            return self._state

    def _probe(self, look: threading.Event) -> None:
        state = "down"
        try:
            self._storage.probe()
            state = "ok"
        except Unavailable as error:
            tell("storage", storage_reason(error))
        finally:
            with self._lock:
                self._state, self._fresh_until, self._look = state, time.monotonic() + FRESH_SECONDS, None
            look.set()
