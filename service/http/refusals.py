"""Refusals at the door, written down and counted: failed logins, wrong scopes, guessed addresses, too many requests.

A line is one JSON object of ASCII characters, so nothing that a caller sends can begin a line of its own. It holds no key
and no path as it was sent: of a key that failed only the first four bytes of its HMAC, of a path the route's template.
Which refusals depend on rows is told to the sender alone, so only those are here that never do (`STATUSES`), and replies to
those who are not signed in.
"""

from __future__ import annotations

import datetime as dt
import json
import logging
import threading
from typing import Any

from prometheus_client import CollectorRegistry, Counter
from starlette.types import Scope

from service.auth.limits import address_of
from service.requests.rates import Rates

logger = logging.getLogger(__name__)

STATUSES = frozenset({401, 403, 404, 405, 421, 429})
"""405 and 421: somebody tries methods and names of hosts. No upload is refused with one of these for its rows."""

LINES_PER_MINUTE_OF_AN_ADDRESS = 60
LINES_PER_MINUTE = 600
"""Of all addresses. What comes faster is counted and said in the next line; the metrics count everything."""

LONGEST = 64
"""Characters of what a caller has sent: the method, or an address that a proxy forwards."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})


def method_of(scope: Scope) -> str:
    """The method, or `OTHER`: a label or a word in a log is none of the caller's making."""
    return scope["method"] if scope["method"] in METHODS else "OTHER"


class RefusalLog:
    """One a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._refusals = Counter(
            "imprimatur_refusals_total", "Requests refused at the door.", ("code",), registry=registry
        )
        self._failures = Counter(
            "imprimatur_authentication_failures_total", "Requests without a valid key.", ("reason",), registry=registry
        )
        self._rates = Rates(LINES_PER_MINUTE_OF_AN_ADDRESS, names=10_000)
        self._all = Rates(LINES_PER_MINUTE)
        self._unlogged = 0
        self._lock = threading.Lock()

    def note(self, scope: Scope, status: int) -> None:
        """Count a reply of this status, and write a line about it if it is a refusal at the door.

        Or one to a cookie of no session, whatever its status: the page leads to the sign-in form.
        """
        state: dict[str, Any] = scope.get("state") or {}
        code, reason = state.get("refusal", "refused"), state.get("authentication_failure")
        if status not in STATUSES and reason is None:
            return
        self._refusals.labels(code).inc()
        if reason is not None:
            self._failures.labels(reason).inc()
        host = str((scope.get("client") or ("unknown",))[0])[:LONGEST]
        with self._lock:
            if self._rates.seconds_until_free(address_of(host)) or self._all.seconds_until_free(""):
                self._unlogged += 1
                return
            unlogged, self._unlogged = self._unlogged, 0
        principal = state.get("principal")
        line = {
            "event": "refused",
            "at": dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds"),
            "status": status,
            "code": code,
            "reason": reason,
            "address": host,
            "key_id": None if principal is None else str(principal.key_id),
            "failed_key": state.get("failed_key"),
            "method": method_of(scope),
            "route": getattr(scope.get("route"), "path", "unmatched"),
            "request_id": str(state.get("request_id")),
            "unlogged": unlogged,
        }
        logger.warning("%s", json.dumps(line))
