"""Sign-in by an OpenID Connect provider: the authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636).

Nothing is kept here between the two halves of a sign-in. The browser keeps a random `ticket` in a cookie; state, nonce
and code verifier are keyed hashes of it, so they fit together in one browser only, and cannot be made without our key.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import threading
import time
import urllib.parse
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from service.auth.principal import SCOPES, Scope
from service.base.errors import Forbidden, Unavailable
from service.base.lazy import lazy
from service.base.messages import Message
from service.platform.settings import Settings, names_of

if TYPE_CHECKING:
    import datetime as dt

    import httpx
    from authlib.oauth2 import rfc7636
    from authlib.oauth2.rfc6749 import parameters
    from authlib.oidc import core
    from joserfc import errors, jwk, jwt

    from service.platform.crypto import Secrets
else:
    httpx = lazy("httpx")
    rfc7636, parameters, core = (
        lazy(f"authlib.{each}") for each in ("oauth2.rfc7636", "oauth2.rfc6749.parameters", "oidc.core")
    )
    errors, jwk, jwt = (lazy(f"joserfc.{each}") for each in ("errors", "jwk", "jwt"))

TICKET_SECONDS = 600
"""From leaving for the provider to coming back."""
LEEWAY_SECONDS = 60
REQUEST_SECONDS = 10.0
METADATA_SECONDS, NEW_KEYS_SECONDS = 3_600, 60
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]
"""Signatures by key pairs. `none`, and those by a secret that both sides share, are not taken."""
LONGEST_SUBJECT = 255
AGAIN = Message("this sign-in was begun in another browser, or took too long; begin again on the sign-in page")


@dataclass(frozen=True, slots=True)
class Person:
    """Who has signed in, by what the provider's signature says."""

    subject: str
    scope: Scope
    tenant: str


class Provider:
    """The provider of the settings; its metadata and keys are asked for when they are first needed."""

    def __init__(self, settings: Settings) -> None:
        needed = {
            "IMPRIMATUR_OIDC_CLIENT_ID": settings.oidc_client_id,
            "IMPRIMATUR_OIDC_CLIENT_SECRET_FILE": settings.oidc_client_secret_file,
            "IMPRIMATUR_OIDC_REDIRECT_URL": settings.oidc_redirect_url,
            "IMPRIMATUR_OIDC_TENANT or IMPRIMATUR_OIDC_TENANT_CLAIM": settings.oidc_tenant
            or settings.oidc_tenant_claim,
        }
        if missing := [name for name, value in needed.items() if not value]:
            raise Unavailable(f"IMPRIMATUR_OIDC_ISSUER is set; set {', '.join(missing)} as well")
        self.issuer, self.client_id = str(settings.oidc_issuer), str(settings.oidc_client_id)
        self.redirect_url = str(settings.oidc_redirect_url)
        for name, address in {"ISSUER": self.issuer, "REDIRECT_URL": self.redirect_url}.items():
            _require_tls(f"IMPRIMATUR_OIDC_{name}", address)
        try:
            self._secret = cast("Any", settings.oidc_client_secret_file).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise Unavailable(f"IMPRIMATUR_OIDC_CLIENT_SECRET_FILE cannot be read: {error.strerror}") from None
        self._scope_claim, self._scopes = settings.oidc_scope_claim, scopes_of(settings.oidc_scopes)
        self._tenant, self._tenant_claim = settings.oidc_tenant, settings.oidc_tenant_claim
        self._lock = threading.Lock()
        self._metadata: tuple[float, dict[str, Any]] | None = None
        self._keys: tuple[float, Any] | None = None

    # -- to the provider and back -----------------------------------------------------------------------------------

    def leave(self, key: Secrets, next_path: str, now: dt.datetime) -> tuple[str, str]:
        """The ticket for the browser's cookie, and the provider's address to go to. `now`: the database's time."""
        where = base64.urlsafe_b64encode(next_path.encode()).decode().rstrip("=")
        ticket = f"{int(now.timestamp())}.{secrets.token_urlsafe(32)}.{where}"
        verifier = _part(key, "verifier", ticket)
        address = parameters.prepare_grant_uri(
            self._endpoint("authorization_endpoint"),
            client_id=self.client_id,
            response_type="code",
            redirect_uri=self.redirect_url,
            scope="openid profile",
            state=_part(key, "state", ticket),
            nonce=_part(key, "nonce", ticket),
            code_challenge=rfc7636.create_s256_code_challenge(verifier),
            code_challenge_method="S256",
        )
        return ticket, str(address)

    def come_back(self, key: Secrets, ticket: str, answered: dict[str, str], now: dt.datetime) -> Person:
        """Who it is, from what the provider has sent the browser back with. Raises `Forbidden` with the reason."""
        _require_ticket(key, ticket, answered.get("state", ""), now)
        if answered.get("iss", self.issuer) != self.issuer:
            raise Forbidden(
                Message("the answer comes from another provider than this service's; begin again on the sign-in page")
            )
        if "code" not in answered:
            raise Forbidden(
                Message("the provider has not signed you in; begin again on the sign-in page, or ask its operator")
            )
        token = self._token(answered["code"], _part(key, "verifier", ticket))
        return self._person(self._claims(token, _part(key, "nonce", ticket)))

    def _token(self, code: str, verifier: str) -> str:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self.redirect_url,
            "code_verifier": verifier,
        }
        taken = self._read_metadata().get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        auth = None
        if "client_secret_basic" in taken:
            quoted = (urllib.parse.quote(each, safe="") for each in (self.client_id, self._secret))
            auth = httpx.BasicAuth(*quoted)
        else:
            form |= {"client_id": self.client_id, "client_secret": self._secret}
        address = self._endpoint("token_endpoint")
        reply = _asked(lambda: httpx.post(address, data=form, auth=auth, timeout=REQUEST_SECONDS))
        if reply.status_code != 200:
            raise Forbidden(
                Message(
                    "the provider does not accept this sign-in, or not a second time; begin again on the sign-in page"
                )
            )
        token = _document(reply).get("id_token")
        if not isinstance(token, str):
            raise Forbidden(Message("the provider has sent no ID token; its client here needs the scope openid"))
        return token

    def _claims(self, token: str, nonce: str) -> dict[str, Any]:
        try:
            read = self._read(token)
            options: Any = {
                "iss": {"essential": True, "value": self.issuer},
                "aud": {"essential": True, "value": self.client_id},
            }
            claims = core.CodeIDToken(read.claims, read.header, options, {"nonce": nonce, "client_id": self.client_id})
            claims.validate(leeway=LEEWAY_SECONDS)
        except (errors.JoseError, ValueError, TypeError):
            raise Forbidden(
                Message("the provider's ID token is not for this sign-in, has expired or is not signed by it")
            ) from None
        return dict(claims)

    def _read(self, token: str) -> Any:
        """The token, if one of the provider's keys signed it. Keys are asked for again where none is of its `kid`."""
        try:
            return jwt.decode(token, self._read_keys(anew=False), algorithms=ALGORITHMS)
        except (errors.JoseError, ValueError):
            return jwt.decode(token, self._read_keys(anew=True), algorithms=ALGORITHMS)

    def _person(self, claims: dict[str, Any]) -> Person:
        subject = claims["sub"]
        if not (0 < len(subject) <= LONGEST_SUBJECT and subject.isprintable()):
            raise Forbidden(
                Message("the name that the provider gives you has characters that a log cannot show; ask its operator")
            )
        given = claims.get(self._scope_claim)
        values = {each for each in (given if isinstance(given, list) else [given]) if isinstance(each, str)}
        scope = next((each for each in SCOPES if values & self._scopes[each]), None)
        if scope is None:
            raise Forbidden(
                Message(
                    "the provider gives you no role here: its claim %(claim)s must name one that stands for owner, analyst "
                    "or reader",
                    claim=repr(self._scope_claim),
                )
            )
        tenant = self._tenant or claims.get(self._tenant_claim or "")
        if not isinstance(tenant, str) or not tenant:
            raise Forbidden(
                Message(
                    "the provider names no tenant for you: its claim %(claim)s must be one name",
                    claim=repr(self._tenant_claim),
                )
            )
        return Person(subject, scope, tenant)

    # -- what the provider says of itself ---------------------------------------------------------------------------

    def _endpoint(self, name: str) -> str:
        address = self._read_metadata().get(name)
        if not isinstance(address, str):
            raise Unavailable(Message("the sign-in provider names no %(name)s", name=name))
        _require_tls(name, address)
        return address

    def _read_metadata(self) -> dict[str, Any]:
        with self._lock:
            if self._metadata is None or self._metadata[0] + METADATA_SECONDS < time.monotonic():
                found = _document(_asked(lambda: _get(self.issuer.rstrip("/") + "/.well-known/openid-configuration")))
                if found.get("issuer") != self.issuer:
                    raise Unavailable(
                        Message("the sign-in provider calls itself by another name than IMPRIMATUR_OIDC_ISSUER")
                    )
                self._metadata = (time.monotonic(), found)
            return self._metadata[1]

    def _read_keys(self, *, anew: bool) -> Any:
        address = self._endpoint("jwks_uri")
        with self._lock:
            age = time.monotonic() - self._keys[0] if self._keys is not None else None
            if self._keys is None or age is None or age > (NEW_KEYS_SECONDS if anew else METADATA_SECONDS):
                try:
                    keys = jwk.KeySet.import_key_set(cast("Any", _document(_asked(lambda: _get(address)))))
                except (errors.JoseError, ValueError, KeyError):
                    raise Unavailable(Message("the sign-in provider's keys cannot be read")) from None
                self._keys = (time.monotonic(), keys)
            return self._keys[1]


def scopes_of(text: str) -> dict[Scope, frozenset[str]]:
    """`staff=reader,board=owner`: which values of the claim stand for which scope."""
    found: dict[Scope, set[str]] = {each: set() for each in SCOPES}
    for pair in names_of(text):
        value, _, scope = pair.rpartition("=")
        if not value or scope not in found:
            raise Unavailable(
                f"IMPRIMATUR_OIDC_SCOPES: write value=scope with one of {', '.join(SCOPES)}, and commas between"
            )
        found[scope].add(value.strip())
    return {scope: frozenset(values) for scope, values in found.items()}


def next_path_of(ticket: str) -> str:
    """The path that the browser wanted to go to. The caller makes sure that it is a path of this service."""
    text = ticket.rpartition(".")[2]
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)).decode()
    except ValueError:
        return "/"


def key_text(key: Secrets, ticket: str) -> str:
    """The key of the session, which no one is told. Each ticket has its own, so that none is of use twice."""
    return "imp_" + _part(key, "key", ticket)


def _part(key: Secrets, purpose: str, ticket: str) -> str:
    digest = key.api_key_digest(f"single sign-on\0{purpose}\0{ticket}")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _require_ticket(key: Secrets, ticket: str, state: str, now: dt.datetime) -> None:
    began = ticket.partition(".")[0]
    is_ours = bool(ticket) and hmac.compare_digest(_part(key, "state", ticket).encode(), state.encode())
    if not is_ours or now.timestamp() - int(began) > TICKET_SECONDS:
        raise Forbidden(AGAIN)


def _require_tls(name: str, address: str) -> None:
    """Codes and tokens travel encrypted, but on this very machine."""
    parts = urllib.parse.urlsplit(address)
    if parts.scheme != "https" and parts.hostname not in {"127.0.0.1", "::1", "localhost"}:
        raise Unavailable(f"{name}: give an address that begins with https://")


def _get(address: str) -> httpx.Response:
    return httpx.get(address, timeout=REQUEST_SECONDS)


def _asked(ask: Any) -> httpx.Response:
    try:
        return cast("httpx.Response", ask())
    except httpx.HTTPError:
        raise Unavailable(Message("the sign-in provider does not answer; try again, or sign in with a key")) from None


def _document(reply: httpx.Response) -> dict[str, Any]:
    try:
        found = reply.raise_for_status().json()
    except (httpx.HTTPError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise Unavailable(Message("the sign-in provider's answer cannot be read"))
    return found
