"""Who may see which page: the session of the cookie, the scope of its key, and forms that this page itself has made.

The name of a route is what the audit log calls it: the same word as for the operation of the API that does the same.

A page route is a `PageRoute`: what an endpoint refuses becomes a page (or, for a script, a part of one) with the same
status, and a visitor who is not signed in is sent to sign in.
"""

from __future__ import annotations

import hmac
import urllib.parse
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse
from fastapi.routing import APIRoute

from service.auth.dependencies import ContextOf
from service.auth.limits import RateLimits
from service.auth.reading import reading_turn
from service.auth.sessions import SignedIn
from service.base.errors import Forbidden, ImprimaturError, InvalidInput, NotFound, RateLimited, Unauthenticated
from service.base.messages import Message, fault_of
from service.pages.error_pages import DETAILS, NOT_POSSIBLE, error_page, with_retry_after
from service.pages.field_labels import label_in, labels_of
from service.pages.policy import PAGE_HEADERS
from service.pages.refused import in_words_of_the_form
from service.pages.rendering import is_fragment
from service.pages.visitors import cookie_name, session_of
from service.pages.ways_back import after_signing_in, is_download, way_back
from service.requests.problems import RefusedBody, status_of

if TYPE_CHECKING:
    from service.platform.settings import Settings

SIGN_IN = "/sign-in"
CSRF_FIELD, CSRF_HEADER = "csrf_token", "x-csrf-token"


def set_cookie(response: Response, settings: Settings, token: str) -> None:
    """Scripts cannot read it, other sites cannot send it with a form, and it ends with the browser."""
    name = cookie_name(settings)
    response.set_cookie(name, token, httponly=True, samesite="lax", secure=settings.behind_tls, path="/")


def own_path(address: str) -> str:
    """Never away from here: a path of this service, else the first page."""
    is_path = address.startswith("/") and not address.startswith(("//", "/\\")) and address.isprintable()
    return address if is_path and "\\" not in address else "/"


def find_signed_in(request: Request, context: ContextOf) -> SignedIn | None:
    """Who is signed in, if anybody; leaves the principal for the audit log and counts the request."""
    found = session_of(request, context)
    if found is None:
        return None
    limits: RateLimits = request.app.state.rate_limits
    limits.passed(found.principal.key_id.bytes, found.principal.tenant_id)
    principal = replace(found.principal, action=request.scope["route"].name, request_id=request.state.request_id)
    request.state.principal = principal
    return replace(found, principal=principal)


Visitor = Annotated[SignedIn | None, Depends(find_signed_in)]


def find_if_looked_up(request: Request, context: ContextOf) -> SignedIn | None:
    """As `find_signed_in`; None where it is refused to look."""
    try:
        return find_signed_in(request, context)
    except RateLimited:
        return None


VisitorIfFound = Annotated[SignedIn | None, Depends(find_if_looked_up)]


def require_signed_in(visitor: Visitor) -> SignedIn:
    """Raise `Unauthenticated` unless somebody is signed in."""
    if visitor is None:
        raise Unauthenticated(Message("sign in first"))
    return visitor


Reader = Annotated[SignedIn, Depends(require_signed_in)]


async def _take_turn(request: Request, visitor: Visitor) -> AsyncIterator[None]:
    if visitor is None:  # the page says so by itself
        yield
        return
    async with reading_turn(request, visitor.principal.tenant_id):
        yield


PageTurn = Depends(_take_turn, scope="function")
"""A dependency of a page that reads much: as `service.auth.reading.ReadingTurn` of the API, and the same turns."""


def is_owner(visitor: SignedIn) -> bool:
    """Whether links and fields for owners are shown."""
    return visitor.principal.scope == "owner"


def require_analyst(visitor: Reader) -> SignedIn:
    """A dependency: the session of an analyst or an owner; others are `Forbidden`."""
    visitor.principal.require("analyst")
    return visitor


def require_owner(visitor: Reader) -> SignedIn:
    """A dependency: the session of an owner; others are `Forbidden`."""
    visitor.principal.require("owner")
    return visitor


Analyst = Annotated[SignedIn, Depends(require_analyst)]
Owner = Annotated[SignedIn, Depends(require_owner)]


def require_own_site(request: Request) -> None:
    """Refuse what another site's page has sent. Browsers say where a request comes from; older ones by `Origin` alone."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    if site is not None:
        is_ours = site in {"same-origin", "none"}
    else:
        is_ours = origin is None or urllib.parse.urlsplit(origin).netloc == request.headers.get("host")
    if not is_ours:
        raise Forbidden(Message("this was sent by another site's page; open the page here and try again"))


async def require_own_form(request: Request, visitor: Visitor) -> None:
    """Refuse a form that no page of this session has made. Large forms send the token in a header, before the body."""
    require_own_site(request)
    if visitor is None:
        raise Unauthenticated(Message("sign in first"))
    given = request.headers.get(CSRF_HEADER)
    if given is None and request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        sent = (await request.form()).get(CSRF_FIELD)
        given = sent if isinstance(sent, str) else None
    require_token(visitor, given)


def require_token(visitor: SignedIn, given: str | None) -> None:
    """Raise `Forbidden` unless the form is of this session."""
    if given is None or not hmac.compare_digest(given.encode(), visitor.csrf_token.encode()):
        raise Forbidden(Message("this form is of an earlier session; load the page again and send it once more"))


OwnForm = Depends(require_own_form)


class PageRoute(APIRoute):
    """Refusals as pages."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def answer_or_say_why(request: Request) -> Response:
            try:
                return await answer(request)
            except RequestValidationError as error:
                return await _refusal(request, _of_a_value(error.errors()[0], request.scope["route"].path))
            except RefusedBody as refused:
                return await _refusal(request, refused.error)
            except ImprimaturError as error:
                return await _refusal(request, error)

        return answer_or_say_why


def _of_a_value(found: Mapping[str, Any], address: str) -> ImprimaturError:
    """What FastAPI found wrong, without the value: in our own words where we have any. No address has such an id: nothing is there."""
    place, *names = found["loc"]
    if place == "path":
        return NotFound(DETAILS[404])
    where = ".".join(map(str, names))
    raised = (found.get("ctx") or {}).get("error")
    said = fault_of(raised) if isinstance(raised, ValueError) else ""
    what = said if isinstance(said, Message) else Message("this value is not possible here")
    if label_in(labels_of(address), where) is None:  # nothing that was typed: a link or a script sent it
        return InvalidInput(Message("The address of this page, or its form, holds a value that is not possible there."))
    return InvalidInput(Message("%(where)s: %(what)s", where=where, what=what), where=where)


async def _refusal(request: Request, error: ImprimaturError) -> Response:
    if isinstance(error, Unauthenticated):
        return _to_sign_in(request)
    status = noted(request, error)
    back = None if isinstance(error, NotFound) else way_back(request)
    detail = in_words_of_the_form(request, error.detail)
    shown = await error_page(request, status, NOT_POSSIBLE, detail, back=back, is_download=is_download(request))
    return with_retry_after(shown, error)


def noted(request: Request, error: ImprimaturError) -> int:
    """The status of a refusal, which the log of refusals and the audit log hear of."""
    status = status_of(error)
    request.scope.setdefault("state", {})["refusal"] = error.code
    request.app.state.refused(request, status, error.code)
    return status


def _to_sign_in(request: Request) -> Response:
    """To the sign-in page, and back from there to the page that was open or asked for."""
    back = after_signing_in(request)
    said = {} if back == "/" else {"next": back}
    if request.cookies.get(cookie_name(request.app.state.context.settings)):
        said["ended"] = "yes"  # there was a session
    address = SIGN_IN + (f"?{urllib.parse.urlencode(said, safe='/', quote_via=urllib.parse.quote)}" if said else "")
    if is_fragment(request):  # the script that asked follows this header with the whole page
        return Response(status_code=401, headers={"HX-Redirect": address, **PAGE_HEADERS})
    return RedirectResponse(address, 303, headers=dict(PAGE_HEADERS))
