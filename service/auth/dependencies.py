"""What every endpoint asks for: the context of the process and the principal of the request."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes

from service.auth.limits import RateLimits, caller_address
from service.auth.principal import Principal, Scope
from service.auth.service import authenticate, bearer_key
from service.base.errors import InvalidInput, RateLimited, Unauthenticated
from service.base.text import read_json
from service.platform.context import Context

API_KEY = HTTPBearer(
    scheme_name="api_key",
    auto_error=False,
    description="An API key. What its scope must include is in `x-required-scope`: an owner may do what an analyst may,"
    " an analyst what a reader may.",
)


async def get_context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


ContextOf = Annotated[Context, Depends(get_context)]


async def read_json_body(request: Request) -> Any:
    """The body as JSON that means one thing; the endpoint looks at what it says."""
    if not request.headers.get("content-type", "").lower().startswith("application/json"):
        raise InvalidInput("send the body as application/json", where="content-type")
    return read_json(await request.body(), "body")


JsonBody = Annotated[Any, Depends(read_json_body)]


def get_principal(request: Request, context: ContextOf) -> Principal:
    """Who asks. Leaves the principal on the request for the audit log."""
    limits: RateLimits = request.app.state.rate_limits
    address = caller_address(request.client)
    authorization = request.headers.get("authorization")
    digest = _digest(context, authorization)
    try:
        limits.before_lookup(address, digest)
    except RateLimited:
        if not limits.knows(digest):
            note_failure(request, "too_often", digest)
        raise
    try:
        key = bearer_key(authorization)
        with context.driver() as connection:
            found = authenticate(connection, context.secrets, key)
    except Unauthenticated:
        note_failure(request, "unknown" if authorization else "missing", digest)
        limits.failed(address, digest)
        raise
    limits.passed(digest, found.tenant_id)
    principal = replace(found, action=request.scope["route"].name, request_id=request.state.request_id)
    request.state.principal = principal
    return principal


def get_outsider(request: Request) -> None:
    """Anybody, without a key; counted like a request without a good key, by address."""
    limits: RateLimits = request.app.state.rate_limits
    limits.outsider(caller_address(request.client))


def note_failure(request: Request, reason: str, digest: bytes) -> None:
    """For the log of refusals: why, and of the key enough to see that it is the same one again, and no use otherwise."""
    request.state.authentication_failure = reason
    request.state.failed_key = None if reason == "missing" else digest[:4].hex()


def _digest(context: Context, authorization: str | None) -> bytes:
    return context.secrets.api_key_digest((authorization or "").partition(" ")[2].strip())


async def _require_scope(
    wanted: SecurityScopes,
    principal: Annotated[Principal, Depends(get_principal)],
    _: Annotated[object, Security(API_KEY)],  # only so that the OpenAPI document names it
) -> Principal:
    principal.require(cast("Scope", wanted.scope_str))
    return principal


Owner = Annotated[Principal, Security(_require_scope, scopes=["owner"])]
Analyst = Annotated[Principal, Security(_require_scope, scopes=["analyst"])]
Reader = Annotated[Principal, Security(_require_scope, scopes=["reader"])]
