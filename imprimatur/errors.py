"""What a caller of the client catches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


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
