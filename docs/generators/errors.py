"""docs/reference/errors.md, from the typed errors."""

from __future__ import annotations

from imprimatur import errors as of_client
from service.requests.problems import STATUS

HEAD = """# Errors

A refusal is a JSON document (`application/problem+json`, RFC 9457) with a `status`, a stable `code`, a sentence in `detail` that says what is wrong and what to do, and values to act on. The client
raises the class of the same name from `imprimatur.errors`; each is an `ApiError`. Nothing is charged by a request that is refused.

| code | status | class of the client | what it means |
|---|---|---|---|
"""


def render() -> str:
    """The whole page."""
    known = {name: value for name, value in vars(of_client).items() if isinstance(value, type)}
    by_code = {value.default_code: name for name, value in known.items() if issubclass(value, of_client.ApiError)}
    rows = {}
    for error, status in STATUS.items():
        meaning = " ".join((error.__doc__ or "").split())
        name = by_code.get(error.code)
        rows[error.code] = f"| `{error.code}` | {status} | {f'`{name}`' if name else '–'} | {meaning} |\n"
    return HEAD + "".join(rows[code] for code in sorted(rows))
