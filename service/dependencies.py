"""What every endpoint asks for: the context of the process and the principal of the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, Header, Request

from service.auth.service import Principal, Scope, authenticate
from service.context import Context


def get_context(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


ContextOf = Annotated[Context, Depends(get_context)]


def get_principal(
    context: ContextOf,
    authorization: Annotated[str | None, Header(include_in_schema=False)] = None,
) -> Principal:
    with context.transaction() as session:
        return authenticate(session, context.secrets, authorization)


def _with_scope(scope: Scope) -> Callable[[Principal], Principal]:
    def check(principal: Annotated[Principal, Depends(get_principal)]) -> Principal:
        principal.require(scope)
        return principal

    return check


Owner = Annotated[Principal, Depends(_with_scope("owner"))]
Analyst = Annotated[Principal, Depends(_with_scope("analyst"))]
Reader = Annotated[Principal, Depends(_with_scope("reader"))]
