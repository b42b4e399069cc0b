"""What an installation needs, looked at step by step: `imprimatur install --check`. Changes nothing.

A step is `ok`, `missing` (with what to do), or `unknown` where nothing was named to look at.
"""

from __future__ import annotations

import json
import os
import stat
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import redis
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from service.base.errors import ImprimaturError, Unavailable
from service.ledger import signing_keys
from service.platform.broker import seconds_since_beat
from service.platform.broker_address import broker_client
from service.platform.crypto import Secrets
from service.platform.database import newest_revision, transaction
from service.platform.keyring import Keyring
from service.platform.reasons import broker_reason, database_reason, storage_reason
from service.platform.secret_roots import in_use, require_right
from service.platform.storage import Storage
from service.upkeep.roles import PROCESS_ROLES, owner_url, why_no_login

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

    from service.platform.settings import Settings

State = Literal["ok", "missing", "unknown"]
BEAT_SECONDS = 30.0
MAKE_LARGE_OBJECTS = ("lo_creat", "lo_create", "lo_from_bytea", "lo_import", "lo_export", "lo_put", "lowrite")
"""Functions of Postgres that make or fill large objects; migration 0019 revokes them where it may."""
INSTALL = "run `imprimatur install`"
START = {
    "API": "start it: docs/operating.md, Parts",
    "relay": "start it: `python -m service.upkeep.relay`; its log says why it is not there",
    "worker": "start one: docs/operating.md, Parts; its log says why it is not there",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One step: how it stands, and what there is or what to do."""

    step: str
    state: State
    detail: str


@dataclass(frozen=True, slots=True)
class Places:
    """What cannot be read from the settings: where the first owner's key was put, where passwords lie, who is the API."""

    key_file: Path | None = None
    passwords: Path | None = None
    url: str | None = None


def check(settings: Settings, places: Places) -> list[Finding]:
    """Every step, in the order in which they are taken."""
    found = _of_the_database(settings, places)
    found += [_storage(settings), _broker(settings), _api(places.url)]
    return found


def is_complete(findings: list[Finding]) -> bool:
    """Whether no step is known to be missing; `unknown` ones do not count."""
    return all(each.state != "missing" for each in findings)


def as_text(findings: list[Finding]) -> str:
    """A table of three columns."""
    width = max(len(each.step) for each in findings)
    return "\n".join(f"{each.step:<{width}}  {each.state:<7}  {each.detail}" for each in findings)


def _of_the_database(settings: Settings, places: Places) -> list[Finding]:
    owner = settings.model_copy(update={"database_url": owner_url(settings)})
    try:
        with transaction(owner) as session:
            session.execute(text("SELECT 1"))
    except Unavailable as error:
        cause = error.__cause__ or error
        return [Finding("database", "missing", database_reason(cause, owner.database_url).sentence)]
    found = [Finding("database", "ok", "the owning role logs in")]

    def step(name: str, look: Callable[[Session], str]) -> None:
        found.append(_step(owner, name, look))

    step("migrations", _migrations)
    for role in PROCESS_ROLES:
        step(f"role {role.removeprefix('imprimatur_')}", lambda session, role=role: _role(session, owner, role, places))  # type: ignore[misc]
    step("roles' settings", _settings_of_roles)
    step("rights of all", _rights_of_all)
    step("secret key file", lambda session: _secret_key(session, settings))
    step("worker.key", lambda _: _worker_part(settings))
    step("signing key", lambda session: f"{signing_keys.current(session, settings).id}, in {settings.signing_key_path}")
    step("first owner", lambda session: _first_owner(session, places.key_file))
    for part in ("relay", "worker"):
        step(part, lambda session, part=part: _beat(session, part))  # type: ignore[misc]
    return found


class _Missing(Exception):
    """With what to do."""


class _NotLookedAt(Exception):
    """With what to name."""


def _step(owner: Settings, name: str, look: Callable[[Session], str]) -> Finding:
    try:
        with transaction(owner) as session:
            return Finding(name, "ok", look(session))
    except _NotLookedAt as error:
        return Finding(name, "unknown", str(error))
    except _Missing as error:
        return Finding(name, "missing", str(error))
    except Unavailable as error:
        cause = error.__cause__
        said = error.detail if cause is None else database_reason(cause, owner.database_url).sentence
        return Finding(name, "missing", said)
    except ImprimaturError as error:
        return Finding(name, "missing", error.detail)
    except DBAPIError as error:
        return Finding(name, "missing", database_reason(error, owner.database_url).sentence)


def _migrations(session: Session) -> str:
    newest = newest_revision()
    if session.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        raise _Missing(f"none was run: {INSTALL}")
    there = session.scalar(text("SELECT version_num FROM alembic_version"))
    if there != newest:
        raise _Missing(f"the database is at revision {there}, this program needs {newest}: {INSTALL}")
    return f"revision {newest}"


def _role(session: Session, owner: Settings, role: str, places: Places) -> str:
    found = session.execute(
        text("SELECT rolcanlogin FROM pg_roles WHERE rolname = :role"), {"role": role}
    ).one_or_none()
    if found is None:
        raise _Missing(f"{role} does not exist: {INSTALL}")
    if not found.rolcanlogin:
        raise _Missing(f"{role} may not log in: ALTER ROLE {role} LOGIN PASSWORD '…'")
    if places.passwords is not None:
        return _logs_in(owner, role, places.passwords / role)
    if not session.scalar(text("SELECT rolsuper FROM pg_roles WHERE rolname = current_user")):
        raise _NotLookedAt(f"{role} exists; whether it has a password, only a superuser sees: name --passwords")
    has_one = text("SELECT rolpassword IS NOT NULL FROM pg_authid WHERE rolname = :role")
    if not session.scalar(has_one, {"role": role}):
        raise _Missing(
            f"{role} has no password: `imprimatur install --passwords DIR`, or ALTER ROLE {role} PASSWORD '…'"
        )
    return f"{role} has a password"


def _settings_of_roles(session: Session) -> str:
    """A role may set its own defaults, which last: a time limit or `read only` stops its process at the next login."""
    found = session.execute(
        text(
            "SELECT r.rolname, d.datname, s.setconfig FROM pg_db_role_setting AS s"
            " JOIN pg_roles AS r ON r.oid = s.setrole LEFT JOIN pg_database AS d ON d.oid = s.setdatabase"
            " WHERE r.rolname = ANY(:roles) AND (d.datname IS NULL OR d.datname = current_database())"
            " ORDER BY r.rolname, d.datname NULLS FIRST"
        ),
        {"roles": list(PROCESS_ROLES)},
    ).all()
    if found:
        of = [f"{row.rolname}: {', '.join(one.partition('=')[0] for one in row.setconfig)}" for row in found]
        quoted = session.connection().dialect.identifier_preparer.quote
        resets = [
            f"ALTER ROLE {row.rolname}{'' if row.datname is None else f' IN DATABASE {quoted(row.datname)}'} RESET ALL"
            for row in found
        ]
        raise _Missing(
            f"a process's role has settings of its own ({'; '.join(of)}), and the role itself can have set them."
            f" Find out who did: {'; '.join(resets)}"
        )
    return "no role of a process has settings of its own"


def _rights_of_all(session: Session) -> str:
    """What Postgres lets everybody do until it is revoked; a restored dump can have lost the revocation."""
    database = session.execute(
        text(
            "SELECT quote_ident(current_database()) AS name, bool_or(has_database_privilege(r.oid, current_database(), 'TEMPORARY'))"
            " AS temporary FROM pg_roles AS r WHERE r.rolname = ANY(:roles)"
        ),
        {"roles": list(PROCESS_ROLES)},
    ).one()
    if database.temporary:
        raise _Missing(
            "the roles of the processes may make temporary tables, which can fill the disk:"
            f" REVOKE TEMPORARY ON DATABASE {database.name} FROM PUBLIC"
        )
    open_ones = session.scalars(
        text(
            "SELECT DISTINCT p.oid::regprocedure::text FROM pg_proc AS p, pg_roles AS r"
            " WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname = ANY(:makers)"
            " AND r.rolname = ANY(:roles) AND has_function_privilege(r.oid, p.oid, 'EXECUTE') ORDER BY 1"
        ),
        {"roles": list(PROCESS_ROLES), "makers": list(MAKE_LARGE_OBJECTS)},
    ).all()
    if open_ones:
        raise _NotLookedAt(
            "the roles of the processes may make large objects, which can fill the disk; a superuser can change that:"
            f" REVOKE EXECUTE ON FUNCTION {', '.join(open_ones)} FROM PUBLIC"
        )
    return "no temporary tables, no large objects"


def _logs_in(owner: Settings, role: str, file: Path) -> str:
    if not file.is_file():
        raise _Missing(f"{file} is not there: `imprimatur install --passwords {file.parent}`")
    why = why_no_login(owner.database_url, role, file.read_text(encoding="utf-8").strip())
    if why is not None:
        raise _Missing(f"{why}: `imprimatur install --passwords {file.parent}`")
    return f"{role} logs in with the password in {file}"


def _secret_key(session: Session, settings: Settings) -> str:
    path = settings.keyring_path
    _require_private(path)
    require_right(session, Secrets.load(path))
    if not in_use(session)["wrapping"]:
        raise _Missing(f"the database does not know yet that {path} is its file: {INSTALL}")
    return f"{path} is the one of this database; keep a copy apart from backups of the database"


def _worker_part(settings: Settings) -> str:
    path, ring = settings.worker_keyring_path, Secrets.load(settings.keyring_path).ring
    _require_private(path)
    if path.read_bytes() != Keyring(wrapping=ring.wrapping).to_bytes():
        raise _Missing(
            f"{path} is not the workers' part of {settings.keyring_path}: {INSTALL}, and copy it to the workers"
        )
    return f"{path}, for the workers"


def _require_private(path: Path) -> None:
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError as error:
        raise _Missing(f"{path}: {error.strerror}: {INSTALL}, or restore it from backup") from None
    if mode & 0o077 or not os.access(path, os.R_OK):
        raise _Missing(f"{path} has mode {mode:04o}: chmod 600 {path}")


def _first_owner(session: Session, key_file: Path | None) -> str:
    if not session.scalar(text("SELECT count(*) FROM tenants")):
        raise _Missing(f"there is no tenant yet: {INSTALL}")
    if key_file is not None and key_file.is_file():
        return f"its API key is in {key_file}: give it to the owner, and remove the file"
    return "there is a tenant; where its first key was put, the command that made it has said"


def _beat(session: Session, part: str) -> str:
    age = seconds_since_beat(session, part)
    if age is None or age > BEAT_SECONDS:
        last = "has never shown that it works" if age is None else f"has shown nothing for {age:.0f} s"
        raise _Missing(f"the {part} {last}: {START[part]}")
    return f"{age:.0f} s ago"


def _storage(settings: Settings) -> Finding:
    try:
        Storage.from_url(settings.storage_url).probe(write=True)
    except ImprimaturError as error:
        return Finding("storage", "missing", storage_reason(error).sentence)
    return Finding("storage", "ok", "can be written to from here")


def _broker(settings: Settings) -> Finding:
    try:
        with broker_client(settings.redis_url) as client:
            client.ping()
    except ImprimaturError as error:
        return Finding("redis", "missing", error.detail)
    except (redis.RedisError, OSError) as error:
        return Finding("redis", "missing", broker_reason(error).sentence)
    return Finding("redis", "ok", "answers")


def _api(url: str | None) -> Finding:
    if url is None:
        return Finding("API", "unknown", "name it with --url")
    if not url.startswith(("http://", "https://")):
        return Finding("API", "missing", "--url begins with http:// or https://")
    address = f"{url.rstrip('/')}/readyz"
    try:
        with urllib.request.urlopen(address, timeout=10) as reply:  # noqa: S310 - checked above
            parts = json.load(reply)["parts"]
    except urllib.error.HTTPError as error:
        if error.code != 503:
            return Finding("API", "missing", f"{address} answers {error.code}: is this the address of the API?")
        parts = json.load(error)["parts"]
    except (OSError, ValueError, KeyError) as error:
        return Finding("API", "missing", f"{address} does not answer ({type(error).__name__}): {START['API']}")
    wrong = [f"{part}: {state}" for part, state in parts.items() if state != "ok"]
    return (
        Finding("API", "missing", f"answers, not ready: {', '.join(wrong)}") if wrong else Finding("API", "ok", "ready")
    )
