"""Signing in by an OpenID Connect provider: a real one, with real keys, on loopback."""

import re
import time
import urllib.parse

import httpx
import pytest
from fastapi.testclient import TestClient
from joserfc import jwk, jwt

from service.auth import single_sign_on
from service.auth.service import create_tenant
from service.base.errors import Unavailable
from service.http.app import create_app
from service.platform.crypto import Secrets
from service.upkeep.installation import owner_transaction
from tests.service.pages.conftest import Browser
from tests.sign_in_provider import SECRET, TestProvider

pytestmark = pytest.mark.slow

HERE = "http://localhost/sign-in/oidc/callback"


@pytest.fixture
def provider():
    made = TestProvider(HERE)
    yield made
    made.close()


@pytest.fixture
def tenant_key(settings):
    """The owner's key of the tenant that the provider's people belong to."""
    with owner_transaction(settings) as session:
        return create_tenant(session, Secrets.load(settings.secret_key_file), "clinic")


@pytest.fixture
def settings_with(settings, database, provider, tmp_path):
    secret = tmp_path / "client_secret"
    secret.write_text(SECRET + "\n")
    more = {
        "database_url": database.api_url,
        "oidc_issuer": provider.issuer,
        "oidc_client_id": "imprimatur",
        "oidc_client_secret_file": secret,
        "oidc_redirect_url": HERE,
        "oidc_tenant": "clinic",
    }
    return lambda **others: settings.model_copy(update={**more, **others})


@pytest.fixture
def open_browser(settings_with, tenant_key, signing_key):  # noqa: ARG001 - both must be there
    def make(app=None, **others):
        app = app or create_app(settings_with(**others))
        return Browser(
            TestClient(app, base_url="http://localhost", raise_server_exceptions=False, follow_redirects=False)
        )

    return make


def go(browser, next_path="/"):
    """To the provider and as far as it sends the browser back; the address that it sends it to."""
    left = browser.get("/sign-in/oidc", params={"next": next_path})
    assert left.status_code == 303
    sent = httpx.get(left.headers["location"])
    assert sent.status_code == 302, sent.text
    return sent.headers["location"]


def sign_in(browser, next_path="/"):
    return browser.get(go(browser, next_path))


def test_a_person_is_signed_in_and_named_in_the_audit_log(open_browser, tenant_key):
    browser = open_browser()
    assert 'href="/sign-in/oidc?next=' in browser.get("/").text
    reply = sign_in(browser, "/datasets")
    assert (reply.status_code, reply.headers["location"]) == (303, "/datasets")
    page = browser.get("/datasets").text
    assert "sign-in: anna (analyst)" in page
    assert browser.get("/admin").status_code == 403
    owner = {"Authorization": f"Bearer {tenant_key}"}
    (line,) = [each for each in browser.get("/v1/audit", headers=owner).json()["items"] if each["action"] == "sign_in"]
    (key,) = [
        each for each in browser.get("/v1/keys", headers=owner).json()["items"] if each["name"] == "sign-in: anna"
    ]
    assert line["key_id"] == key["id"]
    assert key["scope"] == "analyst"
    assert key["expires_at"] is not None


def test_an_owner_ends_the_session_by_ending_its_key(open_browser, tenant_key):
    browser = open_browser()
    sign_in(browser)
    owner = {"Authorization": f"Bearer {tenant_key}"}
    (key,) = [
        each for each in browser.get("/v1/keys", headers=owner).json()["items"] if each["name"] == "sign-in: anna"
    ]
    assert browser.http.delete(f"/v1/keys/{key['id']}", headers=owner).status_code == 204
    assert browser.get("/datasets").status_code == 303


def test_the_request_has_pkce_state_and_nonce_and_the_browser_alone_the_ticket(open_browser):
    browser = open_browser()
    first, second = (browser.get("/sign-in/oidc") for _ in range(2))
    asked = [
        dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(each.headers["location"]).query)) for each in (first, second)
    ]
    assert asked[0]["code_challenge_method"] == "S256"
    assert asked[0]["response_type"] == "code"
    assert asked[0]["redirect_uri"] == HERE
    for name in ("state", "nonce", "code_challenge"):
        assert len(asked[0][name]) >= 43
        assert asked[0][name] != asked[1][name]
    cookie = first.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert not set(asked[0].values()) & set(cookie.replace(";", "=").split("="))


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce": "another"},
        {"aud": "another service"},
        {"aud": ["imprimatur", "another service"]},  # and says not for which of both it was made
        {"aud": "another service", "azp": "imprimatur"},
        {"azp": "another service"},
        {"iss": "https://elsewhere.example"},
        {"exp": int(time.time()) - 3_600},
        {"iat": int(time.time()) + 3_600},
        {"exp": None},
        {"sub": None},
    ],
    ids=lambda changed: re.sub(r"\d{10}", "…", str(changed)),  # the clock is no name
)
def test_a_token_that_is_not_for_this_sign_in_is_refused(open_browser, provider, changed):
    browser = open_browser()
    provider.changed = changed
    reply = sign_in(browser)
    assert reply.status_code == 403
    assert "ID token" in reply.text
    assert browser.get("/datasets").status_code == 303
    provider.changed = {}
    assert sign_in(browser).status_code == 303


def test_a_token_without_the_nonce_is_refused(open_browser, provider):
    provider.forgets_nonce = True
    assert sign_in(open_browser()).status_code == 403


def test_a_token_signed_by_another_key_is_refused_and_a_new_key_is_found(open_browser, provider, monkeypatch):
    browser = open_browser()
    assert sign_in(browser).status_code == 303
    other = open_browser(app=browser.http.app)
    provider.signing_key = provider.new_key("first")  # says it is the one that is published
    assert sign_in(other).status_code == 403
    provider.published_key = provider.signing_key = provider.new_key("second")
    monkeypatch.setattr(single_sign_on, "NEW_KEYS_SECONDS", 0)
    assert sign_in(other).status_code == 303


def test_neither_no_signature_nor_one_by_a_shared_secret_is_taken(open_browser, provider):
    ring = {"none": None, "HS256": jwk.OctKey.import_key(SECRET)}
    reader = open_browser().http.app.state.sign_in_provider
    for algorithm, key in ring.items():
        now = int(time.time())
        claims = {"iss": provider.issuer, "aud": "imprimatur", "sub": "anna", "nonce": "n", "iat": now, "exp": now + 60}
        token = jwt.encode({"alg": algorithm}, claims, key, algorithms=[algorithm])
        with pytest.raises(single_sign_on.Forbidden):
            reader._claims(token, "n")


def test_an_answer_works_once(open_browser, provider):
    """Even where the provider takes its code again, and the browser has kept the cookie."""
    browser = open_browser()
    provider.takes_codes_twice = True
    answer = go(browser)
    cookies = dict(browser.http.cookies)
    assert browser.get(answer).status_code == 303
    again = open_browser(app=browser.http.app)
    again.http.cookies.update(cookies)
    reply = again.get(answer)
    assert reply.status_code == 403
    assert "begin again" in reply.text
    assert "set-cookie" not in reply.headers


def test_an_answer_of_another_browser_is_refused(open_browser):
    browser = open_browser()
    answer = go(browser)
    other = open_browser(app=browser.http.app)
    assert other.get(answer).status_code == 403
    go(other)
    assert other.get(answer).status_code == 403
    assert other.get("/datasets").status_code == 303


def test_an_answer_that_took_too_long_is_refused(open_browser, monkeypatch):
    browser = open_browser()
    answer = go(browser)
    monkeypatch.setattr(single_sign_on, "TICKET_SECONDS", -1)
    assert browser.get(answer).status_code == 403


def test_an_answer_of_another_provider_and_a_refusal_of_the_provider_are_pages(open_browser):
    browser = open_browser()
    answer = go(browser)
    assert browser.get(answer + "&iss=https://elsewhere.example").status_code == 403
    state = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(answer).query))["state"]
    reply = browser.get(f"{HERE}?error=access_denied&error_description=<b>no</b>&state={state}")
    assert reply.status_code == 403
    assert "<b>no" not in reply.text
    assert ">The provider has not signed you in;" in reply.text
    assert browser.get(answer).status_code == 303  # its own one still works


@pytest.mark.parametrize(
    "claims", [{}, {"roles": []}, {"roles": "Owner"}, {"roles": {"owner": 1}}, {"roles": [["owner"]]}], ids=str
)
def test_without_a_role_there_is_a_refusal(open_browser, provider, claims):
    browser = open_browser()
    provider.claims = claims
    reply = sign_in(browser)
    assert reply.status_code == 403
    assert "roles" in reply.text
    assert browser.get("/datasets").status_code == 303


def test_roles_and_tenants_by_claims(open_browser, provider):
    browser = open_browser(
        oidc_scope_claim="groups", oidc_scopes="staff=reader, board=owner", oidc_tenant=None, oidc_tenant_claim="house"
    )
    provider.claims = {"groups": ["staff", "board", "choir"], "house": "clinic"}
    assert sign_in(browser).status_code == 303
    assert browser.get("/admin").status_code == 200  # the most that one of them may
    provider.claims |= {"house": "elsewhere"}
    reply = sign_in(open_browser(app=browser.http.app))
    assert reply.status_code == 403
    assert "tenant" in reply.text
    provider.claims |= {"house": ["clinic"]}
    assert sign_in(open_browser(app=browser.http.app)).status_code == 403


def test_no_one_is_sent_elsewhere_afterwards(open_browser):
    assert sign_in(open_browser(), "//elsewhere.example").headers["location"] == "/"


def test_without_a_provider_there_is_no_such_page(browser_of):
    assert browser_of().get("/sign-in/oidc").status_code == 404
    assert "/sign-in/oidc" not in browser_of().get("/").text


def test_metadata_of_another_issuer_are_not_taken(open_browser, provider):
    browser = open_browser(oidc_issuer=f"{provider.issuer}/")
    assert browser.get("/sign-in/oidc").status_code == 503


def test_a_provider_that_is_away_is_said_and_keys_still_work(open_browser, provider, tenant_key):
    provider.close()
    browser = open_browser()
    assert browser.get("/sign-in/oidc").status_code == 503
    assert browser.sign_in({"Authorization": f"Bearer {tenant_key}"}).status_code == 303


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"oidc_client_id": None}, "CLIENT_ID"),
        ({"oidc_tenant": None}, "TENANT"),
        ({"oidc_issuer": "http://provider.example"}, "https://"),
        ({"oidc_redirect_url": "http://service.example/sign-in/oidc/callback"}, "https://"),
        ({"oidc_scopes": "staff=king"}, "value=scope"),
    ],
    ids=str,
)
def test_settings_that_do_not_fit_together_are_said(settings_with, changed, word):
    with pytest.raises(Unavailable, match=word):
        single_sign_on.Provider(settings_with(**changed))
