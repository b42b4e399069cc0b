"""The OpenAPI document: besides what FastAPI writes, the scope each operation needs and every refusal it may answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Union

from fastapi import FastAPI
from pydantic import Field, TypeAdapter

from service.auth.dependencies import API_KEY
from service.base import errors
from service.methods.catalogue import ORDERS
from service.requests.problems import INTERNAL_ERROR, PROBLEM_SCHEMA, described_problem, problems


class DocumentedApp(FastAPI):
    """FastAPI, with a document that says who may do what and how each operation may refuse."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None or "Problem" not in self.openapi_schema["components"]["schemas"]:
            document = super().openapi()
            for path, operations in document["paths"].items():
                for operation in operations.values():
                    _complete(operation, path)
            schemas = document["components"]["schemas"]
            schemas["Problem"] = PROBLEM_SCHEMA
            order = _any_order()
            schemas.update(order.pop("$defs", {}), Order=order)
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
        return self.openapi_schema or {}


def _any_order() -> dict[str, Any]:
    """The schema of an order of any method, or of `auto`, and in `$defs` those that it refers to."""
    union: Any = Annotated[Union[tuple(ORDERS.values())], Field(discriminator="method")]  # noqa: UP007 - made when it runs
    return TypeAdapter(union).json_schema(ref_template="#/components/schemas/{model}")


def _complete(operation: dict[str, Any], path: str) -> None:
    scope = _required_scope(operation)
    if scope is not None:
        operation["x-required-scope"] = scope
    replies = operation["responses"]
    if "HTTPValidationError" in str(replies.get("422")):
        del replies["422"]
    derived = problems(*_refusals(operation, path, scope))
    derived[500] = described_problem(f"`{INTERNAL_ERROR}`: Our fault; nothing is known to be lost.")
    derived[431] = described_problem(f"`{errors.TooLarge.code}`: The head of the request is over the limit.")
    for status, reply in derived.items():
        own = replies.get(str(status))
        if own is None:
            replies[str(status)] = reply
        elif own["description"].startswith("`"):  # refusals of this operation alone stand first
            own["description"] += " " + reply["description"]
    operation["responses"] = dict(sorted(replies.items()))


def _refusals(operation: dict[str, Any], path: str, scope: str | None) -> Iterator[type[errors.ImprimaturError]]:
    """What follows from the shape of an operation."""
    yield errors.TooLarge
    has_body = "requestBody" in operation
    if has_body:
        yield errors.TooSlow
    if has_body or operation.get("parameters"):
        yield errors.InvalidInput
    if "{" in path:
        yield errors.NotFound
    if scope is not None:
        yield from (errors.Unauthenticated, errors.RateLimited, errors.Unavailable)
        if scope != "reader":
            yield errors.Forbidden


def _required_scope(operation: dict[str, Any]) -> str | None:
    for requirement in operation.get("security", ()):
        scopes: list[str] = requirement.get(API_KEY.scheme_name, [])
        if scopes:
            return scopes[0]
    return None
