"""What a process holds for its whole life: settings, secrets, storage. Built once, handed down, never global."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import psycopg
from sqlalchemy.orm import Session

from service.base.errors import Unavailable
from service.platform.crypto import Secrets
from service.platform.database import driver, snapshot, statement, transaction
from service.platform.reasons import storage_reason, tell
from service.platform.settings import Settings, get_settings
from service.platform.storage import Storage


@dataclass(frozen=True, slots=True)
class Context:
    """The process's outside world."""

    settings: Settings
    secrets: Secrets
    storage: Storage

    def transaction(self) -> AbstractContextManager[Session]:
        """One transaction on this process's database."""
        return transaction(self.settings)

    def statement(self) -> AbstractContextManager[Session]:
        """A session for one statement, which is a transaction by itself."""
        return statement(self.settings)

    def driver(self) -> AbstractContextManager[psycopg.Connection[Any]]:
        """The driver's own connection, for the statements that every order runs."""
        return driver(self.settings)

    def snapshot(self) -> AbstractContextManager[Session]:
        """One moment of this process's database, to read only."""
        return snapshot(self.settings)


def open_context(settings: Settings | None = None) -> Context:
    """Read the secret, open the store. The database connects at its first use."""
    settings = settings or get_settings()
    return Context(settings, Secrets.load(settings.secret_key_file), Storage.from_url(settings.storage_url))


def look_at_storage(context: Context) -> None:
    """Once, at the start of a process that has no probe, in a thread, because a store may hang. The log says what is wrong."""

    def look() -> None:
        try:
            context.storage.probe()
        except Unavailable as error:
            tell("storage", storage_reason(error))

    threading.Thread(target=look, name="storage", daemon=True).start()
