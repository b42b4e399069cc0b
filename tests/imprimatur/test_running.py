"""Which service a client takes where none is named, and which key it gives to whom."""

from __future__ import annotations

import fcntl
import os

import pytest

from imprimatur import AsyncClient, Client, errors, running

ENVIRONMENT = ("IMPRIMATUR_URL", "IMPRIMATUR_API_KEY", "IMPRIMATUR_DATA")


@pytest.fixture(autouse=True)
def nothing_is_named(monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def data(tmp_path):
    """The data directory of a service that runs."""
    folder = tmp_path / "imprimatur-data"
    folder.mkdir()
    (folder / "address").write_text("http://127.0.0.1:8765\n", encoding="utf-8")
    (folder / "admin.key").write_text("imp_here\n", encoding="utf-8")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


@pytest.fixture
def below(data, monkeypatch):
    """In a folder two levels below the one with the data directory."""
    folder = data.parent / "work" / "notebooks"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)


@pytest.mark.usefixtures("below")
def test_the_environment_names_service_and_key(monkeypatch):
    monkeypatch.setenv("IMPRIMATUR_URL", "http://example.org")
    monkeypatch.setenv("IMPRIMATUR_API_KEY", "imp_environment")
    assert running.service_of(None, None) == ("http://example.org", "imp_environment")
    assert running.service_of(None, "imp_mine") == ("http://example.org", "imp_mine")


def test_the_key_of_the_environment_goes_to_no_other_address(monkeypatch):
    monkeypatch.setenv("IMPRIMATUR_API_KEY", "imp_environment")
    assert running.service_of("http://example.org", None) == ("http://example.org", None)


@pytest.mark.usefixtures("below")
def test_a_service_that_runs_in_a_folder_above_is_found():
    assert running.service_of(None, None) == ("http://127.0.0.1:8765", "imp_here")
    with Client() as client:
        assert client.url == "http://127.0.0.1:8765"
    assert AsyncClient().url == "http://127.0.0.1:8765"


@pytest.mark.usefixtures("below")
def test_a_service_of_another_user_is_not_taken(monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(errors.InvalidInput, match="none runs here"):
        running.service_of(None, None)


def test_a_directory_without_a_living_service_is_not_taken(data, monkeypatch):
    monkeypatch.chdir(data.parent)
    (data / "lock").unlink()
    with pytest.raises(errors.InvalidInput, match="imprimatur up"):
        Client()


@pytest.mark.usefixtures("below")
def test_a_named_directory_is_the_only_one_looked_at(data, monkeypatch, tmp_path):
    monkeypatch.setenv("IMPRIMATUR_DATA", str(tmp_path / "elsewhere"))
    with pytest.raises(errors.InvalidInput):
        running.service_of(None, None)
    monkeypatch.setenv("IMPRIMATUR_DATA", str(data))
    assert running.service_of(None, None) == ("http://127.0.0.1:8765", "imp_here")


def test_a_service_that_does_not_come_up_is_said(data, monkeypatch):
    (data / "address").unlink()
    monkeypatch.setattr(running, "STARTING_SECONDS", 0.0)
    with pytest.raises(errors.Unreachable, match="has not come up"):
        running.running_in(data)
