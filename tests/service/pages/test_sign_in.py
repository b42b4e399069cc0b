"""Sessions of the page: who gets one, what ends it, and which forms are taken."""

import hashlib
import json
import re

import psycopg
import pytest

from service.auth import sessions
from service.auth.limits import RateLimits
from service.pages.visitors import cookie_name
from service.upkeep.installation import owner_transaction


def test_a_key_becomes_a_session_and_the_cookie_says_nothing(api, browser_of):
    browser = browser_of()
    key = api.owner["Authorization"].partition(" ")[2]
    reply = browser.sign_in(api.owner, "/datasets")
    assert (reply.status_code, reply.headers["location"]) == (303, "/datasets")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert key not in cookie
    page = browser.get("/")
    assert "first owner" in page.text
    assert key not in page.text


def test_a_wrong_key_gets_a_sentence_and_no_session(browser_of):
    browser = browser_of()
    reply = browser.sign_in({"Authorization": "Bearer imp_wrong"})
    assert reply.status_code == 401
    assert "not known" in reply.text
    assert "set-cookie" not in reply.headers
    assert browser.get("/datasets", follow_redirects=False).headers["location"] == "/sign-in?next=/datasets"


@pytest.mark.parametrize("away", ["//elsewhere.example", "https://elsewhere.example", "/\\elsewhere.example", "/a\nb"])
def test_no_one_is_sent_away_from_here(api, browser_of, away):
    assert browser_of().sign_in(api.owner, away).headers["location"] == "/"


def test_signing_out_ends_the_session_on_this_side_too(api, browser_of):
    browser = browser_of(api.owner)
    cookies = dict(browser.http.cookies)
    assert browser.post("/sign-out").url.path == "/sign-in"
    for name, value in cookies.items():
        browser.http.cookies.set(name, value)
    assert browser.get("/datasets", follow_redirects=False).status_code == 303


def test_a_session_ends_with_its_key(api, browser_of):
    browser = browser_of(api.analyst)
    assert browser.get("/datasets").status_code == 200
    keys = api.http.get("/v1/keys", headers=api.owner).json()["items"]
    (mine,) = [each["id"] for each in keys if each["name"] == "analyst"]
    assert api.http.delete(f"/v1/keys/{mine}", headers=api.owner).status_code == 204
    assert browser.get("/datasets", follow_redirects=False).status_code == 303


@pytest.mark.parametrize("column", ["seen_at", "created_at"])
def test_a_session_ends_when_no_one_is_there_and_after_a_day_s_work(api, context, browser_of, column):
    browser = browser_of(api.owner)
    with owner_transaction(context.settings) as session:
        session.connection().exec_driver_sql(f"UPDATE page_sessions SET {column} = {column} - interval '13 hours'")
    assert browser.get("/datasets", follow_redirects=False).status_code == 303


def test_a_form_without_the_token_of_the_session_is_refused(api, browser_of):
    browser, other = browser_of(api.owner), browser_of(api.owner)
    for token in ("", "0" * 64, other.token()):
        reply = browser.http.post("/sign-out", data={"csrf_token": token})
        assert reply.status_code == 403
        assert "load the page again" in reply.text
    assert browser.get("/datasets").status_code == 200
    assert (
        browser.http.post("/sign-out", data={"csrf_token": browser.token()}, follow_redirects=False).status_code == 303
    )


@pytest.mark.parametrize("headers", [{"Origin": "https://elsewhere.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_form_of_another_site_is_refused(api, browser_of, headers):
    browser = browser_of(api.owner)
    assert browser.post("/sign-out", **headers).status_code == 403
    key = api.owner["Authorization"].partition(" ")[2]
    assert browser_of().http.post("/sign-in", data={"key": key}, headers=headers).status_code == 403


def test_behind_tls_the_cookie_is_of_this_host_alone(api, context, database):
    from fastapi.testclient import TestClient

    from service.http.app import create_app
    from tests.service.pages.conftest import Browser

    settings = context.settings.model_copy(update={"database_url": database.api_url, "behind_tls": True})
    with TestClient(create_app(settings), base_url="https://testserver") as http:
        cookie = Browser(http).sign_in(api.owner).headers["set-cookie"]
    assert cookie.startswith("__Host-imprimatur=")
    assert "Secure" in cookie
    assert "Path=/" in cookie
    assert "Domain" not in cookie


def test_many_wrong_keys_are_refused_before_they_are_looked_up(context, browser_of):
    browser, most = browser_of(), int(3 * context.settings.rate_limit_failures_per_minute)
    replies = (browser.sign_in({"Authorization": f"Bearer imp_{number}"}) for number in range(most))
    wrong = next(replies)
    assert wrong.status_code == 401
    assert ">This API key is not known" in wrong.text
    refused = next(reply for reply in replies if reply.status_code == 429)
    assert int(refused.headers["retry-after"]) >= 1
    german = browser.http.post("/sign-in", data={"key": "imp_x"}, headers={"Accept-Language": "de"})
    assert german.status_code == 429
    assert ">Zu viele Anfragen ohne gültigen Schlüssel; warten Sie " in german.text


def failing_address(api, context, monkeypatch, most):
    """So few failures of an address are allowed; returns what is looked up of sessions from now on."""
    few = RateLimits(context.settings.model_copy(update={"rate_limit_failures_per_minute": most}))
    monkeypatch.setattr(api.http.app.state, "rate_limits", few)
    looked, find = [], sessions.find
    monkeypatch.setattr(sessions, "find", lambda *a, **k: looked.append(a[2]) or find(*a, **k))
    return looked


def test_cookies_of_no_session_are_refused_before_they_are_looked_up(api, context, browser_of, monkeypatch):
    """Each cost a question to the database, without a limit, a line or a number."""
    good, idle, stranger = browser_of(api.reader), browser_of(api.reader), browser_of()
    looked = failing_address(api, context, monkeypatch, 5)
    assert good.get("/datasets").status_code == 200
    assert len(looked) == 1, "once a request"
    looked.clear()
    stranger.http.cookies.set(cookie_name(context.settings), "guessed")
    replies = [stranger.get("/datasets", follow_redirects=False) for _ in range(9)]
    assert [reply.status_code for reply in replies] == [303] * 5 + [429] * 4
    assert looked == ["guessed"] * 5
    assert int(replies[-1].headers["retry-after"]) >= 1
    nothing = stranger.get("/nonsense", headers={"Accept": "text/html"})
    assert (nothing.status_code, len(looked)) == (429, 5)
    form = stranger.get("/sign-in?ended=yes")
    assert (form.status_code, len(looked)) == (200, 5), "the form for a key is there, and nothing is looked up"
    assert good.get("/datasets").status_code == 200, "who was signed in a moment ago is, whatever the address does"
    assert idle.get("/datasets").status_code == 429


def test_who_was_signed_in_gets_the_sign_in_page_and_leaves_a_line(api, context, browser_of, monkeypatch, caplog):
    browser = browser_of(api.owner)
    looked = failing_address(api, context, monkeypatch, 5)
    (token,) = browser.http.cookies.values()
    with owner_transaction(context.settings) as session:
        session.connection().exec_driver_sql("UPDATE page_sessions SET seen_at = seen_at - interval '13 hours'")
    caplog.clear()
    assert browser.get("/session", headers={"HX-Request": "true"}).status_code == 401
    page = browser.get("/datasets")
    assert (page.status_code, page.url.path) == (200, "/sign-in")
    assert "Your session has ended" in page.text
    assert len(looked) == 3
    lines = [json.loads(each.getMessage()) for each in caplog.records if each.name == "service.http.refusals"]
    assert [(line["status"], line["code"], line["reason"], line["route"]) for line in lines] == [
        (401, "unauthenticated", "session", "/session"),
        (303, "unauthenticated", "session", "/datasets"),
        (200, "unauthenticated", "session", "/sign-in"),
    ]
    assert len({line["failed_key"] for line in lines}) == 1
    assert token not in caplog.text
    text = api.http.get("/metrics").text
    assert 'imprimatur_authentication_failures_total{reason="session"} 3.0' in text


def test_a_key_has_so_many_sessions_and_the_one_not_seen_for_longest_ends(api, context, browser_of, monkeypatch):
    monkeypatch.setattr(sessions, "MOST_OF_A_KEY", 3)
    other, first, *others = browser_of(api.reader), *(browser_of(api.owner) for _ in range(3))
    with owner_transaction(context.settings) as session:
        session.connection().exec_driver_sql("UPDATE page_sessions SET seen_at = seen_at - interval '5 minutes'")
    assert first.get("/session").status_code == 204  # the oldest, and in use
    newest = [browser_of(api.owner) for _ in range(2)]
    for browser, is_open in ((first, True), *((each, False) for each in others), *((each, True) for each in newest)):
        assert (browser.get("/session", follow_redirects=False).status_code == 204) == is_open
    assert other.get("/session").status_code == 204, "of another key"
    with owner_transaction(context.settings) as session:
        assert session.connection().exec_driver_sql("SELECT count(*) FROM page_sessions").scalar() == 4


def test_a_script_that_asks_for_a_part_is_sent_to_sign_in(browser_of):
    reply = browser_of().get("/datasets", headers={"HX-Request": "true"}, follow_redirects=False)
    assert (reply.status_code, reply.headers["hx-redirect"]) == (401, "/sign-in")


def test_who_was_away_too_long_is_told_so_and_led_back_to_the_page_that_was_open(api, context, browser_of, dataset_id):
    """A page, a form and a part of a page."""
    browser, here = browser_of(api.analyst), f"/datasets/{dataset_id}/order"
    assert browser.get("/session").status_code == 204
    token = browser.token()
    with owner_transaction(context.settings) as session:
        session.connection().exec_driver_sql("UPDATE page_sessions SET seen_at = seen_at - interval '13 hours'")
    asked = {"headers": {"X-CSRF-Token": token}, "follow_redirects": False}
    shown = {"HX-Request": "true", "HX-Current-URL": f"http://testserver{here}"}
    for reply in (
        browser.get(here, follow_redirects=False),
        browser.http.post(here, data={"epsilon": "1"}, **asked),
        browser.http.post(here, data={"epsilon": "1"}, **{**asked, "headers": {"X-CSRF-Token": token, **shown}}),
    ):
        to = reply.headers.get("location") or reply.headers["hx-redirect"]
        assert to == f"/sign-in?next={here}&ended=yes"
    placed = browser.http.post(f"/datasets/{dataset_id}/releases", data={"epsilon": "1"}, **asked)
    assert placed.headers["location"] == f"/sign-in?next=/datasets/{dataset_id}&ended=yes"
    away = browser.get(
        "/datasets",
        headers={"HX-Request": "true", "HX-Current-URL": "http://x//elsewhere.example"},
        follow_redirects=False,
    )
    assert 'name="next" value="/"' in browser.get(away.headers["hx-redirect"]).text
    page = browser.get(to).text
    assert "Your session has ended" in page
    assert f'name="next" value="{here}"' in page
    assert "Your session has ended" not in browser_of().get("/sign-in").text


def test_an_address_that_is_none_leads_to_the_sign_in_page(browser_of):
    answer = browser_of().get(
        "/datasets", headers={"HX-Request": "true", "HX-Current-URL": "http://["}, follow_redirects=False
    )
    assert answer.status_code < 500
    assert "/sign-in" in str(answer.headers)


def test_only_a_hash_of_the_cookie_is_kept(api, context, browser_of):
    browser = browser_of(api.owner)
    (token,) = browser.http.cookies.values()
    with owner_transaction(context.settings) as session:
        (digest,) = session.connection().exec_driver_sql("SELECT digest FROM page_sessions").scalars()
    assert bytes(digest).hex() not in token
    assert token.encode() not in bytes(digest)
    with context.driver() as connection:
        assert (
            sessions.find(connection, context.secrets, bytes(digest).hex(), idle_seconds=60, longest_seconds=60) is None
        )


def test_who_writes_to_the_database_begins_no_session(api, context, database, browser_of):
    """The API's role inserts sessions. With a plain hash of a token of its own it was signed in as any owner."""
    browser_of(api.owner)
    browser = browser_of()
    with psycopg.connect(database.api_url.replace("+psycopg", ""), autocommit=True) as connection:
        (key,) = connection.execute("SELECT id FROM api_keys WHERE scope = 'owner' LIMIT 1").fetchone()
        token = f"mine.{key.hex}"  # as a session's is
        for text in (token, f"page session {token}"):
            forge = "INSERT INTO page_sessions (digest, key_id) VALUES (%s, %s)"
            connection.execute(forge, (hashlib.sha256(text.encode()).digest(), key))
    browser.http.cookies.set(cookie_name(context.settings), token)
    assert "/sign-in" in browser.get("/datasets", follow_redirects=False).headers["location"]


def test_who_writes_to_the_database_gives_no_session_another_key(api, database, browser_of):
    """Rows are deleted and inserted: a reader's session as that of an owner."""
    browser = browser_of(api.reader)
    assert browser.get("/datasets", follow_redirects=False).status_code == 200
    with psycopg.connect(database.api_url.replace("+psycopg", ""), autocommit=True) as connection:
        (digest,) = connection.execute("DELETE FROM page_sessions RETURNING digest").fetchone()
        forge = "INSERT INTO page_sessions (digest, key_id) SELECT %s, id FROM api_keys WHERE scope = 'owner' LIMIT 1"
        connection.execute(forge, (digest,))
    assert "/sign-in" in browser.get("/datasets", follow_redirects=False).headers["location"]


def test_a_session_s_digest_is_that_of_no_api_key(api, database, browser_of):
    """The API's role inserts keys, and reads the digest of its own session: as the digest of an owner's key it opened the tenant."""
    browser = browser_of(api.reader)
    (token,) = browser.http.cookies.values()
    with psycopg.connect(database.api_url.replace("+psycopg", ""), autocommit=True) as connection:
        forge = (
            "INSERT INTO api_keys (id, tenant_id, name, scope, digest, root_id)"
            " SELECT gen_random_uuid(), k.tenant_id, 'forged', 'owner', s.digest, k.root_id"
            " FROM page_sessions s, api_keys k WHERE k.scope = 'owner' LIMIT 1 RETURNING id"
        )
        assert connection.execute(forge).fetchone()
    for text in (token, f"page session {token}", f"\xff{token}"):
        answer = api.http.get("/v1/datasets", headers={"Authorization": f"Bearer {text}".encode("latin-1")})
        assert answer.status_code == 401


def test_both_languages(api, browser_of):
    browser = browser_of(api.owner)
    english = browser.get("/datasets").text
    assert '<html lang="de">' in browser.get("/datasets", headers={"Accept-Language": "de-CH,de;q=0.9"}).text
    german = browser.get("/language/de?next=/datasets").text
    assert 'html lang="en"' in english
    assert 'html lang="de"' in german
    assert "Datensätze" in german
    assert browser.get("/language/xx").status_code == 422


def test_every_file_that_a_page_names_is_here_and_kept_for_ever(browser_of):
    page = browser_of().get("/").text
    named = re.findall(r'(?:src|href)="(/assets/[^"]+)"', page)
    assert len(named) >= 4
    for address in named:
        reply = browser_of().get(address)
        assert reply.status_code == 200
        assert "immutable" in reply.headers["cache-control"]
        assert reply.headers["content-encoding"] == "gzip"
        plain = browser_of().get(address, headers={"Accept-Encoding": "identity"})
        assert "content-encoding" not in plain.headers
        assert plain.content == reply.content
    assert browser_of().get("/assets/0000000000000000/style.css").status_code == 404
