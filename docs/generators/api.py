"""docs/reference/api.md, from the OpenAPI document of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from imprimatur.version import VERSION
from service.http.app import API
from service.http.openapi import DocumentedApp

if TYPE_CHECKING:
    from collections.abc import Iterator

HEAD = """# The API

Every operation under `/v1`, from the OpenAPI document (`GET /openapi.json` of a running service, with every schema; for people at `/docs`). A key goes into the head of a request:
`Authorization: Bearer KEY`. Any operation may also answer 401 (no valid key), 413 or 431 (too large), 422 `invalid_input` (the request is wrong), 429 (too often), 500 (our fault) and 503 (try again). Refusals are `application/problem+json` with a stable `code`: [errors](errors.md). What an order holds: [orders](../orders.md).
"""

COMMON = ("401", "413", "429", "431", "500", "503")


def render() -> str:
    """The whole page."""
    app = DocumentedApp(title="Imprimatur", version=VERSION)
    for router in API:
        app.include_router(router)
    document = app.openapi()
    parts = [HEAD]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            parts.append(f"## `{method.upper()} {path}`\n")
            parts.append(f"{_text(operation.get('description') or operation['summary'])}\n")
            scope = operation.get("x-required-scope")
            parts.append(f"Needs a key of scope `{scope}`.\n" if scope else "Needs no key.\n")
            takes = list(_takes(operation))
            if takes:
                parts.append("\n".join(["| takes | in | type | what it is |", "|---|---|---|---|", *takes, ""]))
            gives = [
                f"| {status} | {_cell(reply)} |"
                for status, reply in operation["responses"].items()
                if not _is_common(status, reply)
            ]
            parts.append("\n".join(["| answers | when |", "|---|---|", *gives, ""]))
    return "\n".join(parts)


def _is_common(status: str, reply: dict[str, Any]) -> bool:
    of_input = status == "422" and reply["description"].count("`: ") == 1 and "`invalid_input`" in reply["description"]
    return status in COMMON or of_input


def _takes(operation: dict[str, Any]) -> Iterator[str]:
    for each in operation.get("parameters", []):
        name = each["name"] + ("" if each.get("required") else "?")
        yield f"| `{name}` | {each['in']} | {_type(each.get('schema', {}))} | {_cell(each)} |"
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"| body | `{media}` | {_type(content.get('schema', {}))} | {_cell(operation['requestBody'])} |"


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return f"`{schema['$ref'].rpartition('/')[2]}`"
    options = [each for each in schema.get("anyOf", []) if each.get("type") != "null"]
    if options:
        return " or ".join(dict.fromkeys(map(_type, options)))
    if "enum" in schema:
        return ", ".join(f"`{value}`" for value in schema["enum"])
    return str(schema.get("type", "any"))


def _cell(described: dict[str, Any]) -> str:
    return _text(described.get("description", "")).replace("|", "\\|")


def _text(text: str) -> str:
    return " ".join(text.replace("<", "&lt;").split())
