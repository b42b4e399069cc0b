# ruff: noqa: ARG002 - the signatures are Authlib's
"""An OpenID Connect provider on loopback, for tests: Authlib's own server, real keys, real signatures.

It signs in `subject` without asking. What a test sets in `changed` replaces claims of the next tokens; `signing_key`
may be replaced by one that the published set does not hold.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import AuthorizationCodeMixin, ClientMixin, grants
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core import OpenIDCode, UserInfo
from flask import Flask, jsonify
from joserfc import jwk
from werkzeug.serving import make_server

SECRET = "a secret: with/odd+characters"


@dataclass
class Code(AuthorizationCodeMixin):
    code: str
    redirect_uri: str
    scope: str
    nonce: str
    code_challenge: str
    code_challenge_method: str

    def get_redirect_uri(self):
        return self.redirect_uri

    def get_scope(self):
        return self.scope

    def get_nonce(self):
        return self.nonce

    def get_auth_time(self):
        return int(time.time())

    def get_acr(self):
        return None

    def get_amr(self):
        return None


@dataclass
class TheClient(ClientMixin):
    redirect_uri: str
    client_id: str = "imprimatur"

    def get_client_id(self):
        return self.client_id

    def get_default_redirect_uri(self):
        return self.redirect_uri

    def get_allowed_scope(self, scope):
        return scope

    def check_redirect_uri(self, redirect_uri):
        return redirect_uri == self.redirect_uri

    def check_client_secret(self, client_secret):
        return client_secret == SECRET

    def check_endpoint_auth_method(self, method, endpoint):
        return endpoint == "token" and method == "client_secret_basic"

    def check_response_type(self, response_type):
        return response_type == "code"

    def check_grant_type(self, grant_type):
        return grant_type == "authorization_code"


class Grant(grants.AuthorizationCodeGrant):
    """Codes, kept by the provider."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_basic",)

    def save_authorization_code(self, code, request):
        data, provider = request.payload.data, self.server.provider
        provider.codes[code] = Code(
            code,
            request.payload.redirect_uri,
            request.payload.scope,
            "" if provider.forgets_nonce else data["nonce"],
            data["code_challenge"],
            data["code_challenge_method"],
        )

    def query_authorization_code(self, code, client):
        return self.server.provider.codes.get(code)

    def delete_authorization_code(self, authorization_code):
        if not self.server.provider.takes_codes_twice:
            del self.server.provider.codes[authorization_code.code]

    def authenticate_user(self, authorization_code):
        return self.server.provider.subject


class Tokens(OpenIDCode):
    """What stands in ID tokens."""

    def __init__(self, provider):
        super().__init__(require_nonce=True)
        self.provider = provider

    def exists_nonce(self, nonce, request):
        return False

    def resolve_client_private_key(self, client):
        return self.provider.signing_key

    def get_client_algorithm(self, client):
        return "RS256"

    def get_client_claims(self, client):
        return {"iss": self.provider.issuer}

    def get_encode_header(self, client):
        return {"alg": "RS256", "kid": self.provider.signing_key.kid}

    def generate_user_info(self, user, scope):
        return UserInfo({"sub": user, **self.provider.claims, **self.provider.changed})


@dataclass
class TestProvider:
    """The provider; `issuer` is where it listens."""

    __test__ = False

    redirect_url: str
    subject: str = "anna"
    claims: dict[str, Any] = field(default_factory=lambda: {"roles": ["analyst"]})
    changed: dict[str, Any] = field(default_factory=dict)
    takes_codes_twice: bool = False
    forgets_nonce: bool = False

    def __post_init__(self) -> None:
        self.published_key = self.signing_key = jwk.RSAKey.generate_key(2048, {"kid": "first", "use": "sig"})
        self.codes: dict[str, Code] = {}
        self.server = make_server("127.0.0.1", 0, self._app(), threaded=True)
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def new_key(self, kid: str) -> jwk.RSAKey:
        return jwk.RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})

    def _app(self) -> Flask:
        provider, client = self, TheClient(self.redirect_url)
        app = Flask("provider")
        server = AuthorizationServer(app, lambda name: client if name == client.client_id else None, lambda *_: None)
        server.provider = self
        server.register_grant(Grant, [Tokens(self), CodeChallenge(required=True)])

        @app.get("/.well-known/openid-configuration")
        def metadata():
            return jsonify(
                issuer=provider.issuer,
                authorization_endpoint=f"{provider.issuer}/authorize",
                token_endpoint=f"{provider.issuer}/token",
                jwks_uri=f"{provider.issuer}/keys",
                response_types_supported=["code"],
                subject_types_supported=["public"],
                id_token_signing_alg_values_supported=["RS256"],
                code_challenge_methods_supported=["S256"],
            )

        @app.get("/keys")
        def keys():
            return jsonify(keys=[provider.published_key.as_dict(private=False)])

        @app.get("/authorize")
        def authorize():
            grant = server.get_consent_grant(end_user=provider.subject)
            return server.create_authorization_response(request=None, grant_user=provider.subject, grant=grant)

        @app.post("/token")
        def token():
            return server.create_token_response()

        _ = (metadata, keys, authorize, token)
        return app
