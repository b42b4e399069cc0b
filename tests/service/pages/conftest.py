"""The page, opened as a browser opens it: cookies are kept, forms carry what the page put into them."""

import re
from dataclasses import dataclass

import pytest
from fastapi.testclient import TestClient

from service.pages import reading
from tests.service.http.conftest import SCHEMA, TABLE, Api, api, context, dataset_id

__all__ = ["SCHEMA", "TABLE", "Api", "api", "context", "dataset_id"]


@dataclass(frozen=True)
class Browser:
    """One browser of one person."""

    http: TestClient

    def get(self, path, **options):
        return self.http.get(path, **options)

    def post(self, path, data=None, **headers):
        """A form of this page, with the token that the page holds."""
        return self.http.post(path, data=data, headers={"X-CSRF-Token": self.token(), **headers})

    def token(self):
        found = re.search(r'name="csrf-token" content="(\w+)"', self.get("/").text)
        return "" if found is None else found[1]

    def sign_in(self, key, next_path="/"):
        sent = {"key": key["Authorization"].partition(" ")[2], "next": next_path}
        return self.http.post("/sign-in", data=sent, follow_redirects=False)


@pytest.fixture(autouse=True)
def every_draft_is_quick(monkeypatch):
    """However busy the machine: a draft that is not has tests of its own."""
    monkeypatch.setattr(reading, "QUICK_SECONDS", 600.0)


@pytest.fixture
def browser_of(api):
    """A new browser in which somebody of the api's keys is signed in; None: no one is."""

    def open_browser(key=None):
        browser = Browser(TestClient(api.http.app, raise_server_exceptions=False))
        if key is not None:
            assert browser.sign_in(key).status_code == 303
        return browser

    return open_browser
