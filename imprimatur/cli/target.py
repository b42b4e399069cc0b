"""One service, as a command talks to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True)
class Target:
    """One service and the key to it."""

    url: str
    key: str | None
    data: Path | None = None
    """The data directory of an embedded service, whose port may differ from day to day."""

    @property
    def service(self) -> str:
        """The name under which this service is remembered."""
        if self.data is not None:
            return f"the service in {self.data.resolve()}"
        import httpx

        return str(httpx.URL(self.url)).rstrip("/")
