"""A page that is not there, or could not be made: a browser sees a page with the usual navigation, an API client a problem."""

import errno
import functools
import re
import uuid
from unittest.mock import Mock

import pytest

import service.pages.datasets as pages_of_datasets
from service.auth.limits import RateLimits
from service.pages import error_pages
from service.requests.rates import Rates
from tests.service.pages.spoken import english_in

AS_BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SECRET = "Quedlinburg-Ost"


def has_navigation(page):
    return 'href="/datasets"' in page and 'action="/sign-out"' in page


def test_a_browser_gets_a_page_for_an_unknown_address_and_a_client_a_problem(api, browser_of):
    browser = browser_of(api.reader)
    for address in ("/nonsense", "/datasets/x/y/z"):
        reply = browser.get(address, headers=AS_BROWSER)
        assert (reply.status_code, reply.headers["content-type"]) == (404, "text/html; charset=utf-8")
        assert "There is nothing at this address" in reply.text
        assert has_navigation(reply.text)
        assert "Content-Security-Policy" in reply.headers
    for address, headers in (("/nonsense", {}), ("/nonsense", {"Accept": "application/json"}), ("/v1/x", AS_BROWSER)):
        reply = browser.get(address, headers=headers)
        assert (reply.status_code, reply.headers["content-type"]) == (404, "application/problem+json")
        assert reply.json()["detail"] == "there is nothing at this address; the API begins at /v1"
    assert "Diese Seite gibt es nicht" in browser.get("/x", headers=AS_BROWSER | {"Accept-Language": "de"}).text


def test_who_is_not_signed_in_sees_no_navigation_and_no_more(browser_of):
    reply = browser_of().get("/nonsense", headers=AS_BROWSER)
    assert reply.status_code == 404
    assert not has_navigation(reply.text)
    assert 'href="/">' in reply.text


def test_unknown_addresses_are_counted_as_pages_are(api, context, browser_of, monkeypatch):
    """They ask the database who is signed in."""
    browser, few = browser_of(api.reader), {"rate_limit_requests_per_minute": 3, "rate_limit_burst_seconds": 60}
    monkeypatch.setattr("service.auth.limits.Rates", functools.partial(Rates, clock=lambda: 0.0))  # no time passes
    limits = RateLimits(context.settings.model_copy(update=few))
    monkeypatch.setattr(api.http.app.state, "rate_limits", limits)
    replies = [browser.get("/nonsense", headers=AS_BROWSER) for _ in range(4)]
    assert [reply.status_code for reply in replies] == [404, 404, 404, 429]
    assert "too many requests" in replies[-1].text
    assert browser.get("/datasets", headers=AS_BROWSER).status_code == 429
    assert browser.get("/nonsense", headers={"Accept": "application/json"}).status_code == 404


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/datasets/new", 403),
        ("/datasets/no-id", 404),
        ("/releases/00000000-0000-4000-8000-000000000000", 404),
        ("/sign-out", 405),
    ],
)
def test_a_refusal_keeps_the_navigation_of_who_is_signed_in(api, browser_of, address, status):
    reply = browser_of(api.analyst).get(address, headers=AS_BROWSER)
    assert reply.status_code == status
    assert has_navigation(reply.text)
    assert "/admin" not in reply.text
    assert reply.headers["cache-control"] == "no-store"
    assert ("allow" in reply.headers) == (status == 405)
    assert re.search(r'role="alert">[A-Z]', reply.text)


@pytest.mark.parametrize(
    ("method", "address", "english", "german", "near"),
    [
        ("GET", "/sign-out", "it takes what a form sends", "was ein Formular sendet", None),
        ("GET", f"/datasets/{uuid.UUID(int=1)}/releases", "form", "Formular", f"/datasets/{uuid.UUID(int=1)}"),
        ("GET", f"/admin/keys/{uuid.UUID(int=1)}/revoke", "form", "Formular", "/admin/keys"),
        ("POST", "/admin/audit", "takes nothing that is sent to it", "nimmt nichts entgegen", "/admin/audit"),
    ],
)
def test_an_address_that_takes_no_such_request_says_where_to_go(
    api, browser_of, method, address, english, german, near
):
    browser = browser_of(api.analyst)
    for language, said in (("en", english), ("de", german)):
        reply = browser.http.request(method, address, headers=AS_BROWSER | {"Accept-Language": language})
        assert (reply.status_code, said in reply.text, has_navigation(reply.text)) == (405, True, True)
        assert (f'<a href="{near}" role="button"' in reply.text) == (near is not None)
        assert reply.headers["allow"] in {"GET", "POST"}


@pytest.mark.parametrize("what", ["datasets", "releases"])
def test_what_is_not_there_is_said_in_words_of_the_page(api, browser_of, what):
    browser = browser_of(api.analyst)
    for unknown in (uuid.uuid4(), "no-id"):
        for language in ("en", "de"):
            reply = browser.get(f"/{what}/{unknown}", headers=AS_BROWSER | {"Accept-Language": language})
            assert reply.status_code == 404
            assert not [word for word in ("GET", "/v1", "dataset_id", "release_id") if word in reply.text]
            assert language == "en" or english_in(reply.text) == []


def test_what_another_tenant_has_looks_like_what_nobody_has(api, browser_of, dataset_id):
    stranger, nobody = browser_of(api.stranger), str(uuid.uuid4())
    pages = []
    for one in (str(dataset_id), nobody):
        replies = [
            stranger.get(f"/datasets/{one}{more}", headers=AS_BROWSER) for more in ("", "/order", "/ledger", "/x")
        ]
        assert {reply.status_code for reply in replies} == {404}
        pages.append([reply.text.replace(one, "ID") for reply in replies])
    assert pages[0] == pages[1]
    assert all(has_navigation(page) for page in pages[0])


def test_where_something_failed_the_page_says_so_and_quotes_nothing(api, browser_of, monkeypatch):
    browser = browser_of(api.reader)

    def fail(*_, **__):
        raise RuntimeError(SECRET)

    monkeypatch.setattr(pages_of_datasets, "page", fail)
    reply = browser.get("/datasets", headers=AS_BROWSER)
    assert (reply.status_code, reply.headers["content-type"]) == (500, "text/html; charset=utf-8")
    assert "nothing is known to be lost" in reply.text
    assert has_navigation(reply.text)
    assert re.search(r"<code>([0-9a-f-]{36})</code>", reply.text)[1] == reply.headers["x-request-id"]
    assert SECRET not in reply.text
    assert browser.get("/datasets", headers={"Accept": "*/*"}).json()["code"] == "internal_error"
    with monkeypatch.context() as full:
        full.setattr(pages_of_datasets, "page", Mock(side_effect=OSError(errno.ENOSPC, SECRET)))
        for asked in (AS_BROWSER, {"Accept": "*/*"}):
            reply = browser.get("/datasets", headers=asked)
            assert (reply.status_code, reply.headers["retry-after"]) == (503, "60")
            assert SECRET not in reply.text
    monkeypatch.setattr(error_pages, "page", fail)  # even the page that says so
    reply = browser.get("/datasets", headers=AS_BROWSER)
    assert (reply.status_code, reply.json()["code"]) == (500, "internal_error")
    assert SECRET not in reply.text
