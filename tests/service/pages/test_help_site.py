"""`/help`: files of the built site and nothing else, with a policy that allows just the scripts that were built into each page."""

import base64
import hashlib

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from service.pages.help import Help, install

SCRIPT = "document.title = 'x'"


@pytest.fixture
def site(tmp_path):
    folder = tmp_path / "site"
    (folder / "privacy").mkdir(parents=True)
    (folder / "index.html").write_text(f"<title>Start</title><script>{SCRIPT}</script>")
    (folder / "privacy" / "index.html").write_text("<title>Privacy</title>")
    (folder / "404.html").write_text("<title>Not here</title>")
    (folder / "search_index.json").write_text("{}")
    (tmp_path / "secret.txt").write_text("not of the site")
    app = FastAPI(redirect_slashes=False)
    app.mount("/help", Help(folder))
    return TestClient(app, follow_redirects=False)


def test_a_page_may_run_its_own_scripts_and_no_others(site):
    reply = site.get("/help/")
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = reply.headers["Content-Security-Policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert "unsafe" not in policy
    assert "script-src 'self';" in site.get("/help/privacy/").headers["Content-Security-Policy"]
    assert "Content-Security-Policy" not in site.get("/help/search_index.json").headers


def test_a_folder_without_its_slash_leads_to_it_on_this_host(site):
    reply = site.get("/help/privacy", headers={"Host": "elsewhere.example"})
    assert (reply.status_code, reply.headers["Location"]) == (307, "privacy/")


@pytest.mark.parametrize("path", ["nothing", "..%2fsecret.txt", "../secret.txt", "privacy/../../secret.txt"])
def test_what_is_not_of_the_site_is_not_there(site, path):
    reply = site.get(f"/help/{path}")
    assert reply.status_code == 404
    assert "not of the site" not in reply.text


def test_the_service_shows_the_site_or_says_how_to_build_it(tmp_path):
    app = FastAPI(redirect_slashes=False)
    install(app)
    client = TestClient(app, follow_redirects=False)
    assert client.get("/help").headers["Location"] == "/help/"
    app = FastAPI()
    app.mount("/help", Help(tmp_path / "none"))
    reply = TestClient(app).get("/help/privacy/")
    assert reply.status_code == 404
    assert "make site" in reply.text
