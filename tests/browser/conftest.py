"""A real Chromium on the real service. Each window is a browser of its own: its own cookies, nothing kept.

    chromium      the browser; without one every test here is skipped, with the reason
    open_window   opens a window: `open_window(key)` is signed in already, `open_window()` is not yet
    keys_of       keys of one tenant: owner, analyst, reader
    dataset       a fresh small dataset of a tenant of this test alone

Whatever a window's page may not do - a violation of its policy, an error in its console, a request to elsewhere - fails
the test at its end. A test that expects such a line takes it from `Window.complaints`.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from imprimatur import Client

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SECONDS = 90.0
"""For what a worker does on a busy machine. Nothing here measures time."""
FROM_THE_SYSTEM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium(known: str = "") -> str | None:
    """Path of a Chromium: the one named, one of the system, or what Playwright has installed itself (`known`)."""
    named = os.environ.get("IMPRIMATUR_TEST_BROWSER")
    if named:
        return named
    found = next(filter(None, map(shutil.which, FROM_THE_SYSTEM)), None)
    return found or (known if known and Path(known).exists() else None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """`make test` leaves these to `make test-browser`."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium():
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    with sync_api.sync_playwright() as playwright:
        path = find_chromium(playwright.chromium.executable_path)
        if path is None:
            pytest.skip("there is no Chromium here; install one, or name one in IMPRIMATUR_TEST_BROWSER")
        sync_api.expect.set_options(timeout=SECONDS * 1000.0)
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


@dataclass
class Window:
    """One window, and what its page was not allowed to do."""

    page: Page
    address: str
    complaints: list[str] = field(default_factory=list)

    def go(self, path: str) -> None:
        self.page.goto(self.address + path)

    @property
    def path(self) -> str:
        return urlsplit(self.page.url).path

    def sign_in(self, key: str, path: str = "/") -> None:
        self.go(path)
        self.page.get_by_label("API key").fill(key)
        self.page.get_by_role("button", name="Sign in").click()
        self.page.get_by_role("button", name="Sign out").wait_for()

    def take(self, pattern: str) -> list[str]:
        """Complaints that a test has expected; those are no failure."""
        taken = [each for each in self.complaints if re.search(pattern, each)]
        self.complaints = [each for each in self.complaints if each not in taken]
        return taken

    def is_scrolled_sideways(self) -> bool:
        """Whether the page is wider than the window."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"))


VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}:${event.lineNumber}`));
"""


def watch(window: Window) -> None:
    """Note what the page was not allowed to do, and whatever it asks of another place."""
    page = window.page
    page.on("console", lambda line: window.complaints.append(line.text) if line.type in {"error", "warning"} else None)
    page.on("pageerror", lambda error: window.complaints.append(f"error: {error}"))
    page.on(
        "request",
        lambda sent: (
            None
            if sent.url.startswith((window.address, "data:", "blob:"))
            else window.complaints.append(f"elsewhere: {sent.url}")
        ),
    )


@pytest.fixture
def open_window(chromium: Browser, stack):
    opened: list[tuple[Any, Window]] = []

    def open_one(key: str | None = None, path: str = "/", **options: Any) -> Window:
        options = {"locale": "en-GB", "viewport": {"width": 1280, "height": 800}, **options}
        place = chromium.new_context(accept_downloads=True, **options)
        place.set_default_timeout(SECONDS * 1000.0)
        if options.get("java_script_enabled", True):
            place.add_init_script(VIOLATIONS)
        window = Window(place.new_page(), stack.url)
        watch(window)
        opened.append((place, window))
        if key is not None:
            window.sign_in(key, path)
        return window

    yield open_one
    for place, _ in opened:
        place.close()
    assert [each for _, window in opened for each in window.complaints] == []


@pytest.fixture
def client(stack, api_key):
    with Client(stack.url, api_key) as made:
        yield made


@dataclass(frozen=True)
class Keys:
    owner: str
    analyst: str
    reader: str


@pytest.fixture
def keys_of(client, api_key) -> Keys:
    made = {scope: client.create_key(f"the {scope}", scope)["key"] for scope in ("analyst", "reader")}
    return Keys(api_key, **made)


@pytest.fixture
def dataset(client, small_csv, small_schema) -> dict[str, Any]:
    return client.create_dataset(small_csv, small_schema, epsilon=5.0, name="visits")


QUICK_ORDER = {"method": "marginals", "epsilon": 1.0}
"""Done in a moment."""
ENDLESS_ORDER = {
    "method": "idpgan",
    "epsilon": 1.0,
    "steps": 20_000,
    "condition_on": "colour",
    "networks": {"generator_hidden": [8], "critic_hidden": [8], "noise_dimension": 4},
    "warm_start": {"kind": "none"},
}
"""Runs until it is cancelled."""


@pytest.fixture
def running(client, dataset):
    """A release that has begun and does not end by itself; cancelled afterwards."""
    release = client.create_release(dataset["id"], ENDLESS_ORDER)
    yield release
    client.cancel(release["id"])
