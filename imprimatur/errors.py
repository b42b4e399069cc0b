"""What a caller of the client catches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imprimatur.replies import Release


class ApiError(Exception):
    """What the service answered instead: HTTP status, stable code, a sentence, and values to act on.

    Status 0, code `unreachable`: no service answered at all.
    """

    def __init__(self, status: int, code: str, detail: str, values: Mapping[str, Any] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.detail = detail
        self.values = dict(values or {})


class MissingExtra(ImportError):
    """A package is missing that only an extra of the distribution installs."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs more packages: pip install 'imprimatur[{extra}]'")


class NotPublished(Exception):
    """A release that ended without anything to publish; `release` says how, and whether its charge stands."""

    def __init__(self, release: Release) -> None:
        why = f": {release['failure']}" if release.get("failure") else ""
        kept = "its charge stands" if release["state"] == "failed" else "nothing was charged"
        super().__init__(f"release {release['id']} {release['state']}{why} ({kept})")
        self.release = release
