"""The token of `/metrics`, where the operator wants one."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from pathlib import Path

from fastapi import Request

from service.auth.limits import RateLimits, address_of
from service.base.errors import Unauthenticated

SHORTEST = 32


def read_token(path: Path | None) -> bytes:
    """The token; the service does not start without a good one."""
    token = b"" if path is None else path.read_bytes().strip()
    if len(token) < SHORTEST:
        raise ValueError(f"IMPRIMATUR_METRICS_TOKEN_FILE: name a file with at least {SHORTEST} characters")
    return token


def needs_token(token: bytes) -> Callable[[Request], None]:
    """A dependency that lets in who sends the token, and counts everybody else as a failed login."""

    def check(request: Request) -> None:
        authorization = request.headers.get("authorization") or ""
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token):
            return
        request.state.authentication_failure = "unknown" if authorization else "missing"
        limits: RateLimits = request.app.state.rate_limits
        limits.outsider(address_of(request.client.host if request.client else "unknown"))
        raise Unauthenticated("send the token of /metrics as 'Authorization: Bearer <token>'")

    return check
