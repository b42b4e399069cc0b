"""A file whose draft takes a while: its page says how far it is, with and without scripts, and is the sender's alone."""

import re
import threading
import time

import pytest

from service.datasets import staging
from service.pages import reading
from service.upkeep.installation import owner_transaction
from tests.service.pages.conftest import Browser
from tests.service.pages.test_upload_walk import CELL, PRIVATE, declared, send, values_of

PATIENCE_SECONDS = 600.0


@pytest.fixture
def owner(api):
    """A browser on the loop of the application itself, where work goes on behind replies."""
    browser = Browser(api.http)
    assert browser.sign_in(api.owner).status_code == 303
    return browser


class Gate:
    """Before the real draft is made: says a share, and waits until it may go on."""

    def __init__(self):
        self.may_go_on = threading.Event()
        self.callers = []

    def around(self, draft_of):
        def draft(upload, limits, scratch_dir, caller):
            self.callers.append(caller)
            caller(0.4)
            with caller.taking_along(self.may_go_on.set):
                assert self.may_go_on.wait(PATIENCE_SECONDS)
            caller(0.4)  # raises where the caller has left
            return draft_of(upload, limits, scratch_dir, caller)

        return draft


@pytest.fixture
def gate(monkeypatch):
    gate = Gate()
    monkeypatch.setattr(reading, "QUICK_SECONDS", 0.0)
    monkeypatch.setattr(reading, "REPORT_SECONDS", 0.05)
    monkeypatch.setattr(reading, "draft_of", gate.around(reading.draft_of))
    yield gate
    gate.may_go_on.set()


def until(look):
    last = time.monotonic() + PATIENCE_SECONDS
    while not (found := look()):
        assert time.monotonic() < last
        time.sleep(0.05)
    return found


def test_how_far_it_is_and_then_the_columns(owner, gate):
    page = send(owner, PRIVATE, "secret name.csv")
    address = page.url.path
    assert address.endswith("/reading")
    assert '<noscript><meta http-equiv="refresh"' in page.text
    shown = until(lambda: text if "read: 40 %" in (text := owner.get(address).text) else "")
    assert '<progress value="0.4" max="1"' in shown
    part = owner.get(address, headers={"HX-Request": "true"})
    assert "<html" not in part.text
    assert "hx-redirect" not in part.headers
    walk = address.removesuffix("/reading")
    for path in (walk, f"{walk}/declare", f"{walk}/budget"):
        assert owner.get(path).url.path == address
    assert f'href="{walk}"' in owner.get("/datasets/new").text
    gate.may_go_on.set()
    done = until(lambda: reply if (reply := owner.get(address)).url.path.endswith("/declare") else None)
    assert CELL in done.text
    fragment = owner.get(address, headers={"HX-Request": "true"}, follow_redirects=False)
    assert fragment.headers["hx-redirect"] == walk
    budget = declared(owner, done, **{"c2.use": "ignore"})
    assert "Published: " in owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"}).text


@pytest.mark.usefixtures("gate")
def test_only_its_sender_sees_how_far_it_is(api, browser_of, context, owner):
    address = send(owner, PRIVATE).url.path
    second = api.http.post("/v1/keys", json={"name": "second", "scope": "owner"}, headers=api.owner).json()["key"]
    for key in (api.analyst, api.reader, api.stranger, {"Authorization": f"Bearer {second}"}):
        reply = browser_of(key).get(address)
        assert reply.status_code in {403, 404}
        assert "%" not in re.sub(r"<head>.*</head>", "", reply.text, flags=re.DOTALL)
    with owner_transaction(context.settings) as session:
        rows = session.connection().exec_driver_sql("SELECT to_json(s)::text FROM staged_uploads s").scalars().all()
    stored = b"".join(context.storage.get(key) for key in context.storage.list(staging.STAGED))
    assert CELL.encode() not in stored
    assert "share" not in rows[0]
    assert b"share" not in stored


def test_a_file_that_cannot_be_read_says_why_and_takes_no_place(api, context, owner, gate):
    gate.may_go_on.set()
    address = send(owner, b"\x00\x01\x02\x03" * 100, "broken.csv").url.path
    page = until(lambda: text if 'role="alert"' in (text := owner.get(address).text) else "")
    assert "http-equiv" not in page
    assert "hx-trigger" not in page
    assert owner.get(address, headers={"HX-Request": "true"}).headers["hx-refresh"] == "true"
    chosen = owner.post(address.replace("reading", "discard"))
    assert chosen.url.path == "/datasets/new"
    assert list(context.storage.list(staging.STAGED)) == []
    address = send(owner, b"\x00\x01\x02\x03" * 100, "broken.csv").url.path
    until(lambda: 'role="alert"' in owner.get(address).text)
    send(owner)
    assert owner.get(address).status_code == 404  # room was made for the next
    lines = api.http.get("/v1/audit", headers=api.owner).json()["items"]
    done = [(line["action"], line["object_id"]) for line in lines if line["object_kind"] == "staged_upload"]
    assert sorted(action for action, _ in done) == ["discard_upload"] * 2 + ["stage_upload"] * 3
    assert len(set(done)) == len(done)  # one line of each file that was sent


def test_why_a_file_cannot_be_read_is_said_in_the_language_of_the_page(owner, gate):
    gate.may_go_on.set()
    address = send(owner, b"%PDF-1.7\n1 0 obj\n", "report.pdf").url.path
    german = {"Accept-Language": "de"}
    page = until(lambda: text if 'role="alert"' in (text := owner.get(address, headers=german).text) else "")
    assert "Die Datei ist PDF. Tabellen können CSV, JSON-Zeilen," in page
    assert "The file is PDF." in owner.get(address).text


def test_discarding_ends_the_reading(context, owner, gate):
    address = send(owner).url.path
    assert owner.post(address.replace("reading", "discard")).url.path == "/datasets/new"
    until(gate.may_go_on.is_set)  # which the caller does as it leaves
    assert owner.get(address).status_code == 404
    until(lambda: not list(context.storage.list(staging.STAGED)))


@pytest.mark.parametrize("between", ["_said_of_reading", "_new_filled_key"])
def test_what_is_written_just_after_a_discard_is_removed(monkeypatch, context, owner, gate, between):
    """The row is looked up, the file discarded, the object written: nothing would ever remove it."""
    usual, seen = getattr(staging, between), []
    address = send(owner).url.path

    def discarded_now(*arguments):
        if not seen:
            seen.append(owner.post(address.replace("reading", "discard")).status_code)
        return usual(*arguments)

    monkeypatch.setattr(staging, between, discarded_now)
    if between == "_new_filled_key":
        gate.may_go_on.set()
    until(lambda: seen)
    assert seen == [200]
    until(lambda: not list(context.storage.list(staging.STAGED)))


@pytest.mark.usefixtures("gate")
def test_a_reading_that_nobody_goes_on_with_says_so(monkeypatch, owner):
    address = send(owner).url.path
    monkeypatch.setattr(staging, "_SILENT_SECONDS", -1.0)
    page = owner.get(address).text
    assert "The service was stopped while it read the file" in page
    assert "http-equiv" not in page


def test_a_quick_draft_needs_no_page_of_its_own(monkeypatch, owner):
    monkeypatch.setattr(reading, "QUICK_SECONDS", PATIENCE_SECONDS)
    assert send(owner).url.path.endswith("/declare")
    assert send(owner, b"\x00" * 100, "broken.csv").status_code == 422
