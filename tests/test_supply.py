"""What comes from others is pinned by hash, allowed by its licence, not known to be vulnerable, and listed."""

from __future__ import annotations

import json
import subprocess

import pytest

from supply import advisories, images, licences, locks
from supply.bill import SHIPPED, bill
from supply.closure import CUDA, closure, pins


def test_nothing_is_wrong_with_the_dependencies():
    """What `make audit-dependencies` asks."""
    assert licences.faults() == []
    assert licences.page_faults() == []
    assert locks.faults() == []
    assert images.faults() == []
    assert advisories.vulnerable(pins(), advisories.read_snapshot()) == []


@pytest.mark.parametrize(
    ("expression", "free"),
    [
        ("MIT", True),
        ("Apache-2.0 OR GPL-3.0-only", True),
        ("(Apache-2.0 OR BSD-2-Clause) AND MIT", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-only", False),
        ("SSPL-1.0", False),
        ("unknown", False),
    ],
)
def test_a_licence_is_free_when_every_part_of_it_is(expression, free):
    assert licences.is_free(expression) == free


def test_an_exception_is_for_one_licence_of_one_package(monkeypatch):
    monkeypatch.setitem(licences.ALLOWED, "psycopg", ("MPL-2.0", "another licence than it has"))
    assert [fault.split()[0] for fault in licences.faults()] == ["psycopg"]


def test_the_page_of_licences_lists_what_is_installed(monkeypatch, tmp_path):
    old = tmp_path / "licences.md"
    old.write_text(licences.PAGE.read_text().replace("| redis |", "| rediss |"))
    monkeypatch.setattr(licences, "PAGE", old)
    assert ["redis" in fault for fault in licences.page_faults()] == [True]


def test_an_old_pin_with_a_known_hole_is_found():
    found = advisories.vulnerable({**pins(), "jinja2": "3.1.3"}, advisories.read_snapshot())
    assert found
    assert all(line.startswith("jinja2 3.1.3: ") for line in found)
    assert any("CVE-2024-34064" in line and "fixed in 3.1.4" in line for line in found)


@pytest.mark.parametrize(
    ("version", "hit"),
    [
        ("0.9", False),
        ("1.0", True),
        ("1.4.9", True),
        ("1.5", False),
        ("2.0", True),
        ("2.0.1", False),
        ("3.0", True),
        ("3.1", True),
    ],
)
def test_a_version_is_affected_within_the_ranges_only(version, hit):
    entry = {
        "ranges": [
            {"introduced": "1.0", "fixed": "1.5"},
            {"introduced": "2.0", "last_affected": "2.0"},
            {"introduced": "3.0"},
        ],
    }
    assert advisories.affects(entry, version) == hit


def test_a_snapshot_is_made_of_either_database(monkeypatch, tmp_path):
    records = {
        "vulns/redis/PYSEC-1.yaml": {"id": "PYSEC-1", "affected": [_affected("redis", "0", "9.0")]},
        "vulns/other/PYSEC-2.yaml": {"id": "PYSEC-2", "affected": [_affected("other", "0", "9.0")]},
        "advisories/GHSA-3.json": {"id": "GHSA-3", "aliases": ["CVE-3"], "affected": [_affected("Jinja2", "0", "2.0")]},
        "advisories/GHSA-4.json": {
            "id": "GHSA-4",
            "withdrawn": "2026-01-01",
            "affected": [_affected("redis", "0", "9.0")],
        },
    }
    for name, record in records.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(json.dumps(record))  # JSON is YAML, too
    for command in (
        "init -q",
        "remote add origin https://github.com/pypa/advisory-database.git",
        "add .",
        "commit -qm x",
    ):
        identity = ["-c", "user.name=x", "-c", "user.email=x@localhost"]
        subprocess.run(["git", "-C", tmp_path, *identity, *command.split()], check=True)
    monkeypatch.setattr(advisories, "SNAPSHOT", tmp_path / "snapshot.json")
    assert advisories.make_snapshot([tmp_path]) == 2
    snapshot = advisories.read_snapshot()
    assert snapshot["sources"][0]["database"] == "https://github.com/pypa/advisory-database"
    snapshot["advisories"] = [entry for entry in snapshot["advisories"] if "read_at" not in entry]
    assert [line.split(":")[0] for line in advisories.vulnerable(pins(), snapshot)] == [f"redis {pins()['redis']}"]


def _affected(name: str, introduced: str, fixed: str) -> dict:
    events = [{"introduced": introduced}, {"fixed": fixed}]
    return {"package": {"ecosystem": "PyPI", "name": name}, "ranges": [{"type": "ECOSYSTEM", "events": events}]}


def test_an_image_without_a_digest_is_found(monkeypatch, tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_text("FROM python:3.11-slim AS base\nFROM base AS service\n")
    monkeypatch.setattr(images, "FILES", (file,))
    assert images.faults() == ["Dockerfile python:3.11-slim has no digest: make digests"]


def test_a_pin_that_the_hashes_do_not_know_is_found(monkeypatch):
    monkeypatch.setattr(locks, "pins", lambda: {**pins(), "redis": "9.9.9"})
    assert [fault.split()[0] for fault in locks.faults()] == ["redis"]


def test_the_bill_lists_every_shipped_distribution_with_hashes_and_a_free_licence():
    text = bill()
    assert text == bill(), "the same tree gives the same bill"
    content = json.loads(text)
    assert content["bomFormat"] == "CycloneDX"
    libraries = {part["name"]: part for part in content["components"] if part["type"] == "library"}
    required = {name for name, part in libraries.items() if part["scope"] == "required"}
    assert required == {name for part in SHIPPED for name in closure(part)}
    assert all(CUDA.fullmatch(name) for name in libraries.keys() - required)
    assert all(part["purl"].startswith(f"pkg:pypi/{name}@") and part["hashes"] for name, part in libraries.items())
    assert {part["name"] for part in content["components"] if part["type"] == "application"} == {"postgresql", "valkey"}
    assert all(part["hashes"] for part in content["components"] if part["type"] == "container")
    for strict in ("AGPL", "SSPL", "RSAL", "GPL-3.0-only"):
        assert f'"{strict}' not in text.replace("LGPL", "")
