"""Why a part does not work stands in its log, in one line and without a password. Each is a real process with one thing wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from service.local.database_access import PROCESS_ROLES
from service.local.servers import free_port

pytestmark = pytest.mark.slow

SECRET = "pass-word-that-is-wrong"
PARTS = ("api", "relay", "worker")
ROLE = dict(zip(PARTS, PROCESS_ROLES, strict=True))


@pytest.fixture
def right(settings, database, postgres, tmp_path):
    """The environment of a part, all of it right."""
    from service.upkeep.installation import install

    install(settings, tmp_path / "admin.key")

    def of(part):
        keyring = {"api": settings.keyring_path, "worker": settings.worker_keyring_path}.get(part)
        made = {
            "IMPRIMATUR_DATABASE_URL": postgres.url(database.name, ROLE[part]),
            "IMPRIMATUR_REDIS_URL": settings.redis_url,
            "IMPRIMATUR_STORAGE_URL": settings.storage_url,
            "IMPRIMATUR_SIGNING_KEY_FILE": str(settings.signing_key_path),
        }
        return made if keyring is None else made | {"IMPRIMATUR_SECRET_KEY_FILE": str(keyring)}

    return of


def command(part, port):
    return {
        "api": [
            *("uvicorn", "service.http.app:create_app", "--factory", "--port", str(port), "--no-access-log"),
            *("--http", "service.http.protocol:ImpatientProtocol", "--no-proxy-headers"),
        ],
        "relay": ["service.upkeep.relay"],
        "worker": [
            *("celery", "-A", "workers.app:celery", "worker", "--pool=threads", "--concurrency=1", "--loglevel=INFO"),
            *("--without-gossip", "--without-mingle", "--without-heartbeat"),
        ],
    }[part]


@contextmanager
def running(part, environment, log):
    port = free_port()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("IMPRIMATUR_")}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", *command(part, port)], env=inherited | environment, stdout=output, stderr=output
        )
    try:
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(60)


def wait_for_line(log, words, process):
    """The line with these words. A process that has ended says nothing more."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        ended = process.poll() is not None
        lines = [line for line in log.read_text(errors="replace").splitlines() if words in line]
        if lines:
            return lines[0]
        assert not ended, log.read_text(errors="replace")[-2000:]
        time.sleep(0.1)
    pytest.fail(f"{words!r} is not in:\n{log.read_text(errors='replace')[-3000:]}")


def wrong_password(url):
    return re.sub(r":[^:@/]+@", f":{SECRET}@", url)


@pytest.mark.parametrize("part", PARTS)
def test_a_wrong_password_of_the_database(right, tmp_path, part):
    environment = right(part)
    environment["IMPRIMATUR_DATABASE_URL"] = wrong_password(environment["IMPRIMATUR_DATABASE_URL"])
    log = tmp_path / "log"
    with running(part, environment, log) as (process, _):
        line = wait_for_line(log, "database: wrong_password:", process)
    assert ROLE[part] in line
    assert SECRET not in log.read_text()


def status_of(url, **headers):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return None, ""


@pytest.mark.parametrize("part", PARTS)
def test_a_database_that_is_not_migrated(right, postgres, tmp_path, part):
    postgres.create_database(name := f"empty_{os.getpid()}_{part}")
    environment = right(part) | {"IMPRIMATUR_DATABASE_URL": postgres.url(name, ROLE[part])}
    log = tmp_path / "log"
    with running(part, environment, log) as (process, url):
        line = wait_for_line(log, "database: not_migrated:", process)
        assert "imprimatur install" in line
        if part == "api":
            wait_for_line(log, "Uvicorn running on", process)
            status, body = status_of(f"{url}/v1/datasets", Authorization="Bearer imp_no")
            assert (status, "unavailable" in body, "migrated" in body) == (503, True, False)
            assert status_of(f"{url}/readyz")[0] == 503
    assert "Traceback" not in log.read_text()


def test_the_role_of_another_process(right, tmp_path):
    environment = right("api") | {"IMPRIMATUR_DATABASE_URL": right("relay")["IMPRIMATUR_DATABASE_URL"]}
    log = tmp_path / "log"
    with running("api", environment, log) as (process, url):
        wait_for_line(log, "Uvicorn running on", process)
        assert "as role imprimatur_relay" in wait_for_line(log, "database: wrong_role:", process)
        status, body = status_of(f"{url}/v1/datasets", Authorization="Bearer imp_no")
        assert (status, "not set up" in body) == (503, True)


def test_no_credentials_end_a_process_with_the_names_of_what_is_missing(right, tmp_path):
    log = tmp_path / "log"
    for part in PARTS:
        environment = right(part)
        del environment["IMPRIMATUR_DATABASE_URL"]
        environment["IMPRIMATUR_STORAGE_URL"] += SECRET
        with running(part, environment, log) as (process, _):
            assert process.wait(60) != 0
        text = log.read_text()
        assert "IMPRIMATUR_DATABASE_URL: is not set" in text
        assert "Traceback" not in text
        assert SECRET not in text  # pydantic's own text quotes every value that was set
        assert environment["IMPRIMATUR_REDIS_URL"] not in text
        assert "input_value" not in text  # how that text begins to quote them; it cuts long ones short


def test_no_secret_key_file(right, tmp_path):
    environment = right("api") | {"IMPRIMATUR_SECRET_KEY_FILE": str(tmp_path / "gone.key")}
    log = tmp_path / "log"
    with running("api", environment, log) as (process, _):
        assert process.wait(60) != 0
    assert "the API cannot start: The secret key file" in log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("part", ["relay", "worker"])
def test_a_wrong_password_of_redis(right, tmp_path, part):
    environment = right(part)
    environment["IMPRIMATUR_REDIS_URL"] = wrong_password(environment["IMPRIMATUR_REDIS_URL"])
    log = tmp_path / "log"
    words = {"relay": "broker: wrong_password:", "worker": "Cannot connect to redis"}
    with running(part, environment, log) as (process, _):
        wait_for_line(log, words[part], process)
    assert SECRET not in log.read_text()


@pytest.mark.parametrize("part", PARTS)
def test_a_storage_that_cannot_be_reached(right, tmp_path, part):
    environment = right(part) | {
        "IMPRIMATUR_STORAGE_URL": "s3://bucket/prefix",
        "AWS_ENDPOINT": f"http://127.0.0.1:{free_port()}",
        "AWS_ALLOW_HTTP": "true",
        "AWS_REGION": "x",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": SECRET,
    }
    log = tmp_path / "log"
    with running(part, environment, log) as (process, url):
        if part == "api":
            wait_for_line(log, "Uvicorn running on", process)
            status, body = status_of(f"{url}/readyz")
            assert (status, '"storage":"down"' in body) == (503, True)
        wait_for_line(log, "storage: s", process)
    assert SECRET not in log.read_text()
