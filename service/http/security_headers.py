"""What every reply tells the browser, whatever answered it; and which names the service answers to."""

from __future__ import annotations

from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.requests.problems import problem

BASE = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": (
        b"default-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    b"referrer-policy": b"no-referrer",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}
"""For replies that name none of their own; a page has its own policy (`service/pages`)."""

TLS = {b"strict-transport-security": b"max-age=31536000; includeSubDomains"}
"""Where TLS is in front: for a year, browsers use nothing else for this name and those below it."""


class SecurityHeaders:
    """Outside of everything that answers, so that no reply goes without: refusals, streams and quick routes too."""

    def __init__(self, app: ASGIApp, *, behind_tls: bool) -> None:
        self.app = app
        self.headers = list((BASE | (TLS if behind_tls else {})).items())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}
                message["headers"] = own + [header for header in self.headers if header[0] not in named]
            await send(message)

        await self.app(scope, receive, guarded)


class KnownHosts:
    """Refuses requests whose Host is none of these names; never answers with a redirect to one."""

    def __init__(self, app: ASGIApp, hosts: Iterable[str]) -> None:
        self.app = app
        self.hosts = frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value for name, value in scope["headers"] if name == b"host"]
            host = given[0].decode("latin-1").lower() if len(given) == 1 else ""
            if host not in self.hosts and _without_port(host) not in self.hosts:
                scope.setdefault("state", {})["refusal"] = "unknown_host"
                detail = (
                    "this service does not answer to that name; its operator lists names in IMPRIMATUR_ALLOWED_HOSTS"
                )
                await problem(421, "unknown_host", detail)(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _without_port(host: str) -> str:
    name, _, port = host.rpartition(":")
    return name if port.isdecimal() and name else host
