"""The logins of the three processes: a password each, in a file of mode 0600 named like its role."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql
from sqlalchemy.engine import make_url

from service.base.errors import Unavailable
from service.platform.reasons import database_reason

if TYPE_CHECKING:
    from pathlib import Path

    from service.platform.settings import Settings

PROCESS_ROLES = ("imprimatur_api", "imprimatur_relay", "imprimatur_worker")


def make_logins(owner_url: str, folder: Path) -> list[str]:
    """Every role can log in with the password of its file, which is made where it is missing; which roles were changed.

    The statement carries what the server keeps of a password, not the password, so that no log of statements has it.
    Raises `Unavailable`, with what to run as a superuser, where the owning role may not do that.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    changed = []
    with psycopg.connect(_plain(owner_url), autocommit=True) as connection:
        for role in PROCESS_ROLES:
            password = _password(folder / role)
            if why_no_login(owner_url, role, password) is None:
                continue
            verifier = connection.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
            statement = sql.SQL("ALTER ROLE {} LOGIN PASSWORD {}").format(sql.Identifier(role), sql.Literal(verifier))
            try:
                connection.execute(statement)
            except psycopg.errors.InsufficientPrivilege:
                raise Unavailable(
                    f"The owning role may not give {role} a password. As a superuser: ALTER ROLE {role} LOGIN PASSWORD '…', "
                    f"with the text of {folder / role}; then again."
                ) from None
            changed.append(role)
    return changed


def why_no_login(owner_url: str, role: str, password: str) -> str | None:
    """Why the role cannot log in where the owner can; None where it can."""
    try:
        with psycopg.connect(_plain(owner_url), user=role, password=password, connect_timeout=5) as connection:
            connection.execute("SELECT 1")
    except psycopg.OperationalError as error:
        return database_reason(error, make_url(owner_url).set(username=role).render_as_string()).sentence
    return None


def owner_url(settings: Settings) -> str:
    """The URL of the role that owns the database; the process's own where none is set."""
    return settings.migration_database_url or settings.database_url


def _password(path: Path) -> str:
    if not path.exists():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(secrets.token_urlsafe(32) + "\n")
    return path.read_text(encoding="utf-8").strip()


def _plain(url: str) -> str:
    """As libpq reads it."""
    return url.replace("+psycopg", "", 1)
