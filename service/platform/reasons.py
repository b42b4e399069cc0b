"""Why something behind the service does not answer, in one line for the operator's log.

Callers are told no more than that it does not answer. A line names the setting, the role and the host, and what to do;
never a password, an address with one, or what a statement said. The same reason is said again once a minute at most.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

if TYPE_CHECKING:
    from service.base.errors import ImprimaturError

logger = logging.getLogger(__name__)

AGAIN_SECONDS = 60.0
INSTALL = "run `imprimatur install --check` with the owner's settings (docs/operating.md)"


@dataclass(frozen=True, slots=True)
class Reason:
    """A stable code and a sentence."""

    code: str
    sentence: str


NOT_MIGRATED = {"42P01", "42883", "42703", "3F000"}
"""SQLSTATEs: a table, a function, a column or a schema is not there."""
NO_RIGHT = "42501"

_CONNECTING: tuple[tuple[str, tuple[str, ...], str], ...] = (
    (
        "wrong_password",
        ("password authentication failed", "no password supplied", "certificate authentication failed"),
        "Postgres refuses the login: the password in the URL is wrong or missing, or the role does not exist or has none",
    ),
    ("no_such_database", ('" does not exist',), "Postgres has no such database or role"),
    ("no_login", ("not permitted to log in",), "the role may not log in: ALTER ROLE … LOGIN PASSWORD '…'"),
    ("not_admitted", ("pg_hba.conf",), "pg_hba.conf of Postgres lets this role or this machine not in"),
    (
        "too_many_connections",
        ("too many clients", "remaining connection slots", "too many connections"),
        "Postgres has no connection free: raise max_connections, or lower IMPRIMATUR_DATABASE_POOL_SIZE",
    ),
    ("starting", ("starting up", "shutting down", "in recovery mode"), "Postgres starts, stops or recovers"),
    ("tls", ("ssl", "tls", "certificate"), "TLS with Postgres fails: look at sslmode and sslrootcert of the URL"),
    ("unknown_host", ("resolve host", "name or service not known", "translate host name"), "the host has no address"),
    (
        "no_server",
        ("connection refused", "no such file", "no route to host", "network is unreachable"),
        "no Postgres listens there",
    ),
    ("timeout", ("timeout", "timed out"), "Postgres does not answer in time"),
)
"""What libpq and the server say before there is a session, in English. Another language is `no_answer`."""


def database_reason(error: BaseException, url: str) -> Reason:
    """Why a statement, or the connection for it, failed."""
    where = _where(url)
    if isinstance(error, ArgumentError):
        return Reason("bad_url", "the database URL is none: it looks like postgresql+psycopg://ROLE:PASSWORD@HOST/NAME")
    if isinstance(error, PoolTimeout):
        return Reason("busy", f"all connections of this process are in use (IMPRIMATUR_DATABASE_POOL_SIZE), {where}")
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None)
    if state in NOT_MIGRATED:
        return Reason(
            "not_migrated", f"the database is not migrated, or not as far as this version needs, {where}: {INSTALL}"
        )
    if state == NO_RIGHT:
        return Reason(
            "wrong_role",
            f"the role lacks a right, {where}: each process logs in with its own role, and migrations give the rights; {INSTALL}",
        )
    said = str(cause).lower()
    for code, words, sentence in _CONNECTING:
        if any(word in said for word in words):
            return Reason(code, f"{sentence}, {where}")
    return Reason("no_answer", f"the database does not answer ({type(cause).__name__}), {where}")


def is_not_set_up(error: BaseException) -> bool:
    """The database, or the role, is not the one that this process needs: for the operator, and no fault of the code."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    state = getattr(cause, "sqlstate", None)
    return state in NOT_MIGRATED or (state == NO_RIGHT and str(cause).startswith("permission denied for"))


def broker_reason(error: BaseException) -> Reason:
    """Why Redis did not take or give a message."""
    said = str(error).lower()
    refused = ("wrongpass", "noauth", "invalid username-password", "authentication required", "invalid password")
    if any(word in said for word in refused):
        return Reason("wrong_password", "Redis refuses the password in IMPRIMATUR_REDIS_URL")
    if "noperm" in said or "no permissions" in said:
        return Reason("no_right", "the user in IMPRIMATUR_REDIS_URL may not do what the broker needs")
    if any(word in said for word in ("refused", "no such file", "not known", "resolve")):
        return Reason("no_server", "no Redis listens where IMPRIMATUR_REDIS_URL says")
    if "ssl" in said or "certificate" in said:
        return Reason("tls", "TLS with Redis fails: look at the rediss:// URL and its ssl_ca_certs")
    return Reason("no_answer", f"Redis does not answer ({type(error).__name__})")


def storage_reason(error: ImprimaturError) -> Reason:
    """Why the object store did not; its own words may hold credentials, so only their kind is said."""
    return Reason("storage", f"{error.detail} Look at IMPRIMATUR_STORAGE_URL, its credentials, rights and room.")


def _where(url: str) -> str:
    """The role, the host and the database of a URL, without its password."""
    try:
        parts = make_url(url)
    except ArgumentError:
        return "whose URL cannot be read"
    host = parts.host or parts.query.get("host") or "the local socket"
    return f"as role {parts.username or '(none)'} of database {parts.database} at {host}"


class _Told:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next: dict[tuple[str, str], float] = {}

    def is_due(self, part: str, code: str) -> bool:
        now = time.monotonic()
        with self._lock:
            if now < self._next.get((part, code), 0.0):
                return False
            self._next[part, code] = now + AGAIN_SECONDS
            return True


_told = _Told()


def tell(part: str, reason: Reason) -> None:
    """One line, unless the same was said within the last minute."""
    if _told.is_due(part, reason.code):
        logger.error("%s: %s: %s", part, reason.code, reason.sentence)
