"""docs/operating.md, "From nothing to a running service", carried out as it stands, against an empty Postgres."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from imprimatur import Client
from service.local import Postgres
from service.local.servers import TEST_SETTINGS, Redis, free_port
from service.local.supervisor import Supervisor
from service.platform.settings import Settings
from service.upkeep.checks import Places, check, is_complete
from tests import code_blocks
from tests.conftest import SMALL_ORDER, SMALL_SCHEMA, small_table
from tests.private_servers import wait_until

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("### From nothing to a running service")[2].partition("\n### ")[0]
SQL = re.findall(r"```sql\n(.*?)```", SECTION, re.DOTALL)
BLOCKS = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
SETTINGS, INSTALL, API, RELAY, WORKER, CHECK = range(6)
STEPS = [
    "database",
    "migrations",
    "role api",
    "role relay",
    "role worker",
    "roles' settings",
    "rights of all",
    "secret key file",
    "worker.key",
    "signing key",
]
STEPS += ["first owner", "relay", "worker", "storage", "redis", "API"]


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Postgres and Valkey that nothing has touched, as an operator finds them."""
    folder = tmp_path_factory.mktemp("servers")
    postgres, redis = Postgres(folder / "postgres", folder, TEST_SETTINGS), Redis(folder / "redis", folder)
    with Supervisor(folder / "pids.json") as supervisor:
        supervisor.start(postgres.program())
        supervisor.start(redis.program())
        yield postgres, redis
    postgres.forget_socket_directory()
    redis.forget_socket_directory()


class Operator:
    """A shell in a folder, in which the page's blocks are carried out with the addresses of this test in them."""

    def __init__(self, folder, servers):
        self.folder, (postgres, redis) = folder, servers
        self.url = f"http://127.0.0.1:{free_port()}"
        self.postgres = postgres
        address = re.sub(r"^.*?@", "", postgres.url("imprimatur"))
        settings = BLOCKS[SETTINGS]
        for name, value in (
            ("DATABASE", address),
            ("IMPRIMATUR_REDIS_URL", redis.url),
            ("IMPRIMATUR_STORAGE_URL", (folder / "objects").as_uri()),
        ):
            settings, count = re.subn(rf"{name}='[^']*'", f"{name}='{value}'", settings)
            assert count == 1
        (folder / "settings.sh").write_text(settings)

    def script(self, number):
        return f"set -eu\n{BLOCKS[number]}".replace("http://127.0.0.1:8000", self.url).replace(
            "--port 8000", f"--port {self.url.rpartition(':')[2]}"
        )

    def environment(self):
        ours = {name: value for name, value in os.environ.items() if not name.startswith("IMPRIMATUR_")}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return ours | {"PATH": path, "PYTHONPATH": str(ROOT), "NO_COLOR": "1", "COLUMNS": "200"}

    def run(self, script):
        return subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )

    def installs(self):
        """As the operator's shell has it: the check is typed where the installation was."""
        return self.script(INSTALL).rpartition("\nimprimatur install")[0] + "\n"

    @contextmanager
    def started(self, number, log):
        with (self.folder / log).open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", self.script(number)],
                cwd=self.folder,
                env=self.environment(),
                stdout=output,
                stderr=output,
            )
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)

    def states(self, *more):
        done = self.run(self.installs() + self.script(CHECK).rstrip() + " --json " + " ".join(more))
        document = json.loads(done.stdout)
        return done.returncode, document["complete"], {each["step"]: each for each in document["steps"]}


def ready(url):
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as reply:
            return reply.status == 200
    except urllib.error.HTTPError:
        return False
    except OSError:
        return False


def test_no_block_of_the_page_is_left_out():
    assert len(code_blocks.blocks(ROOT / "docs" / "operating.md")) == len(SQL) + len(BLOCKS)


@pytest.mark.slow
def test_the_page_ends_in_a_running_service(servers, tmp_path):
    operator = Operator(tmp_path, servers)
    with operator.postgres.connect() as connection:
        for statement in SQL[0].strip().split("\n"):
            connection.execute(statement)
    with operator.postgres.connect("imprimatur") as connection:
        connection.execute(SQL[1])

    code, complete, steps = operator.states()
    assert (code, complete) == (1, False)
    assert "was run" in steps["migrations"]["detail"]
    assert {steps[name]["state"] for name in ("role api", "secret key file", "signing key", "API")} == {"missing"}

    done = operator.run(operator.script(INSTALL))
    assert done.returncode == 0, done.stderr
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "secrets").rglob("*") if path.is_file()} == {0o600}
    _, _, steps = operator.states()
    assert [name for name in STEPS if steps[name]["state"] != "ok"] == ["relay", "worker", "API"]

    with ExitStack() as parts:
        for number, log in ((API, "api.log"), (RELAY, "relay.log"), (WORKER, "worker.log")):
            parts.enter_context(operator.started(number, log))
        wait_until(lambda: ready(operator.url), 120)
        code, complete, steps = operator.states()
        assert (code, complete, list(steps)) == (0, True, STEPS), steps
        assert {each["state"] for each in steps.values()} == {"ok"}
        publishes(operator, tmp_path)
        other = operator.run(operator.installs() + 'imprimatur tenant create "Second Office" --json')
        assert other.returncode == 0, other.stderr
        with Client(operator.url, json.loads(other.stdout)["key"]) as client:
            assert [line["action"] for line in client.audit_log(10)] == ["create_tenant"]


def publishes(operator, folder):
    with Client(operator.url, (folder / "secrets" / "admin.key").read_text().strip()) as client:
        dataset = client.create_dataset(small_table(folder / "small.csv"), SMALL_SCHEMA, epsilon=5.0, name="small")
        ended = client.wait(client.create_release(dataset["id"], SMALL_ORDER)["id"], timeout=600)
        assert ended["state"] == "published", ended


# -- one thing missing ------------------------------------------------------------------------------------------------


@pytest.fixture
def installed(settings, tmp_path):
    from service.upkeep.installation import install

    install(settings, tmp_path / "admin.key")
    return settings


def found(settings, **places):
    return {each.step: each for each in check(settings, Places(**places))}


def change(settings, statement):
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(statement)


def _wrong_password(settings: Settings) -> Settings:
    url = re.sub(r":[^:@]+@", ":wrong-password@", settings.migration_database_url)
    return settings.model_copy(update={"migration_database_url": url})


def _open_file(settings):
    settings.keyring_path.chmod(0o644)
    return settings


def _other_file(settings):
    settings.keyring_path.write_bytes(os.urandom(32))
    return settings


def _no_worker_part(settings):
    settings.worker_keyring_path.unlink()
    return settings


def _no_signing_key(settings):
    settings.signing_key_path.unlink()
    return settings


def _old_revision(settings):
    change(settings, "UPDATE alembic_version SET version_num = '0014'")
    return settings


WRONG = {
    "database": (_wrong_password, "refuses the login"),
    "migrations": (_old_revision, "at revision 0014"),
    "secret key file": (_open_file, "chmod 600"),
    "secret key file, another": (_other_file, "not the one this database was made with"),
    "worker.key": (_no_worker_part, "No such file"),
    "signing key": (_no_signing_key, "IMPRIMATUR_SIGNING_KEY_FILE"),
    "redis": (lambda s: s.model_copy(update={"redis_url": re.sub(r":[^:@]+@", ":no@", s.redis_url)}), "password"),
    "storage": (lambda s: s.model_copy(update={"storage_url": "file:///proc/nowhere"}), "IMPRIMATUR_STORAGE_URL"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_missing_is_named_with_what_to_do(installed, name):
    wrong, words = WRONG[name]
    findings = check(wrong(installed), Places())
    (finding,) = [each for each in findings if each.step == name.partition(",")[0]]
    assert finding.state == "missing"
    assert words in finding.detail
    assert not is_complete(findings)
    assert "wrong-password" not in str(findings)


def test_a_role_without_a_password_is_noticed(installed, tmp_path):
    assert found(installed)["role api"].state == "ok"  # looked at by a superuser
    steps = found(installed, passwords=tmp_path)
    assert steps["role api"].state == "missing"
    (tmp_path / "imprimatur_api").write_text("not this one\n")
    assert "refuses the login" in found(installed, passwords=tmp_path)["role api"].detail


def test_a_check_changes_nothing(settings, tmp_path):
    settings.keyring_path.unlink()
    before = sorted(tmp_path.rglob("*"))
    assert not is_complete(check(settings, Places()))
    assert sorted(tmp_path.rglob("*")) == before
