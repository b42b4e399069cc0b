"""Who is signed in at the web page: a random token in a cookie, a keyed hash of it here, and the key behind it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from service.auth.principal import Principal, Scope

if TYPE_CHECKING:
    import uuid

    import psycopg

    from service.platform.crypto import Secrets

TOKEN_BYTES = 32
SEEN_SECONDS = 60
"""How exact `seen_at` is: a page that asks every second shall not write every second."""

MOST_OF_A_KEY = 50
"""Sessions. A browser that was closed leaves its session open, so the next sign-in is not refused: the session that was seen longest ago ends."""

END_OLDEST = """
DELETE FROM page_sessions WHERE digest IN (
    SELECT digest FROM page_sessions WHERE key_id = %s ORDER BY seen_at DESC, created_at DESC OFFSET %s FOR UPDATE SKIP LOCKED
)
"""
FIND = """
SELECT k.tenant_id, k.id, k.scope, k.name, s.seen_at < clock_timestamp() - make_interval(secs => %(seen)s)
FROM page_sessions AS s JOIN api_keys AS k ON k.id = s.key_id
WHERE s.digest = ANY(%(digests)s)
  AND s.seen_at > clock_timestamp() - make_interval(secs => %(idle)s)
  AND s.created_at > clock_timestamp() - make_interval(secs => %(longest)s)
  AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())
"""


@dataclass(frozen=True, slots=True)
class SignedIn:
    """One session: who it is, and what its forms must send along."""

    principal: Principal
    key_name: str
    csrf_token: str


def begin(connection: psycopg.Connection[Any], key_secrets: Secrets, key_id: uuid.UUID, *, longest_seconds: int) -> str:
    """A new session of this key; its token, which is kept nowhere here. Sessions that are over are removed, and those above `MOST_OF_A_KEY`."""
    token = f"{secrets.token_urlsafe(TOKEN_BYTES)}.{key_id.hex}"
    connection.execute(
        "DELETE FROM page_sessions WHERE created_at < clock_timestamp() - make_interval(secs => %s)",
        (longest_seconds,),
    )
    digest = key_secrets.session_digests(token)[0]
    connection.execute("INSERT INTO page_sessions (digest, key_id) VALUES (%s, %s)", (digest, key_id))
    connection.execute(END_OLDEST, (key_id, MOST_OF_A_KEY))
    return token


def find(
    connection: psycopg.Connection[Any], key_secrets: Secrets, token: str, *, idle_seconds: int, longest_seconds: int
) -> SignedIn | None:
    """The session of this token, unless it is over or its key has ended."""
    asked = {"idle": idle_seconds, "longest": longest_seconds, "seen": SEEN_SECONDS}
    digests = key_secrets.session_digests(token)
    found = connection.execute(FIND, {**asked, "digests": digests}).fetchone()
    if found is None and key_secrets.reload():  # begun under a root that this process has not seen
        digests = key_secrets.session_digests(token)
        found = connection.execute(FIND, {**asked, "digests": digests}).fetchone()
    if found is None:
        return None
    tenant_id, key_id, scope, key_name, is_stale = found
    if not token.endswith(f".{key_id.hex}"):  # a row that was made to name another key than the one that signed in
        return None
    if is_stale:
        connection.execute("UPDATE page_sessions SET seen_at = clock_timestamp() WHERE digest = ANY(%s)", (digests,))
    principal = Principal(tenant_id, key_id, cast("Scope", scope))  # the CHECK allows no other
    return SignedIn(principal, key_name, csrf_token(token))


def end(connection: psycopg.Connection[Any], key_secrets: Secrets, token: str) -> None:
    """Sign out. A token that is not known is no error."""
    connection.execute("DELETE FROM page_sessions WHERE digest = ANY(%s)", (key_secrets.session_digests(token),))


def csrf_token(token: str) -> str:
    """What a form of this session sends along. It follows from the cookie, which other sites cannot read."""
    return hmac.new(token.encode(), b"csrf", hashlib.sha256).hexdigest()
