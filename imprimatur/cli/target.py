"""One service, as a command talks to it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One service and the key to it."""

    url: str
    key: str | None
