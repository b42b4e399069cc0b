"""TLS of docker-compose.yml, without Docker: its own URLs, options and files, against real servers on loopback.

The servers out of the wheels have no TLS. So clients are always tried through a front that speaks TLS with the same
certificates, and the servers' options with a Postgres and a Valkey or Redis built with TLS where the machine has them.
"""

from __future__ import annotations

import os
import re
import select
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest
import redis
import yaml
from cryptography import x509
from kombu.exceptions import OperationalError

from service.base.errors import InvalidInput
from service.local import TEST_SETTINGS, Postgres, Redis, Supervisor
from service.local.accounts import account_for_postgres, command_as
from service.local.servers import BROKER_RIGHTS, free_port
from service.platform.broker import celery_sender
from service.platform.broker_address import broker_client, broker_url

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
SERVICES = yaml.safe_load((ROOT / "docker-compose.yml").read_text())["services"]
VARIABLES = {
    name: f"secret0{number}"
    for number, name in enumerate(re.findall(r"^(\w+)=$", (ROOT / "docker" / "example.env").read_text(), re.MULTILINE))
}
SSL_REQUEST = (8).to_bytes(4, "big") + (80_877_103).to_bytes(4, "big")


def filled_in(text: str) -> str:
    """The variables of .env put in, as `docker compose` does."""
    return re.sub(r"\$\{(\w+)(?::[?-][^}]*)?\}", lambda match: VARIABLES[match[1]], text)


def urls(name: str) -> set[str]:
    return {
        filled_in(service["environment"][name])
        for service in SERVICES.values()
        if name in service.get("environment", {})
    }


DATABASE_URLS = urls("IMPRIMATUR_DATABASE_URL")
(OWNER_URL,) = urls("IMPRIMATUR_MIGRATION_DATABASE_URL")
(BROKER_URL,) = urls("IMPRIMATUR_REDIS_URL")


@dataclass(frozen=True)
class Certificates:
    authority: Path
    postgres: Path
    redis: Path

    def put_into(self, text: str) -> str:
        """Paths of the containers replaced by those of this test."""
        return text.replace("/authority/", f"{self.authority}/")


@pytest.fixture(scope="module")
def make() -> Iterator[Callable[..., Certificates]]:
    """Runs what the service `certificates` runs."""
    with ExitStack() as stack:

        def run(*more: str, into: Path | None = None) -> Certificates:
            account = account_for_postgres()
            home = into
            if home is None:
                home = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tls-")))
                home.chmod(0o755)  # the account that runs Postgres passes through
                for folder in ("authority", "postgres", "redis"):
                    (home / folder).mkdir(mode=0o755)
            _, script, *arguments = shlex.split(SERVICES["certificates"]["entrypoint"])
            owner = arguments.index("--owner")
            arguments[owner : owner + 2] = [] if account is None else ["--owner", str(account.uid)]
            arguments = [f"{home}{word}" if word.startswith("/") else word for word in arguments]
            script = str(ROOT / script.removeprefix("/app/"))
            done = subprocess.run(
                [sys.executable, script, *arguments, *more], check=True, capture_output=True, text=True
            )
            assert done.stdout.startswith(("Made", "The certificates are there", "No usable"))
            return Certificates(home / "authority", home / "postgres", home / "redis")

        yield run


@pytest.fixture(scope="module")
def certificates(make) -> Certificates:
    return make()


@pytest.fixture(scope="module")
def others(make) -> Certificates:
    """Of another installation."""
    return make()


@contextmanager
def front(certificates: Path, behind: Path, *, asks: bool) -> Iterator[int]:
    """A TLS server before a unix socket; with `asks`, as Postgres does, TLS begins when the client has asked for it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.crt", certificates / "server.key")
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(raw: socket.socket) -> None:
        with ExitStack() as stack:
            stack.enter_context(raw)
            if asks and raw.recv(8) != SSL_REQUEST:
                return
            if asks:
                raw.sendall(b"S")
            try:
                client = stack.enter_context(context.wrap_socket(raw, server_side=True))
                server = stack.enter_context(socket.socket(socket.AF_UNIX))
                server.connect(str(behind))
                _pipe(client, server)
            except OSError:  # a client that refuses our certificate
                return

    def accept() -> None:
        while True:
            try:
                raw, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(raw,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _pipe(client: ssl.SSLSocket, server: socket.socket) -> None:
    while True:
        ready = [client] if client.pending() else select.select([client, server], [], [])[0]
        for source in ready:
            data = source.recv(65_536)
            if not data:
                return
            (server if source is client else client).sendall(data)


@pytest.fixture(scope="module")
def postgres_front(certificates, tmp_path_factory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("postgres")
    server = Postgres(folder / "postgres", folder, TEST_SETTINGS)
    with Supervisor(folder / "pids.json") as supervisor:
        supervisor.start(server.program())
        server.create_database("imprimatur")
        with server.connect() as connection:
            give_passwords(connection)
        with front(certificates.postgres, server.socket_directory / ".s.PGSQL.5432", asks=True) as port:
            yield port
    server.forget_socket_directory()


@pytest.fixture(scope="module")
def redis_front(certificates, tmp_path_factory) -> Iterator[int]:
    folder = tmp_path_factory.mktemp("redis")
    server = Redis(folder / "redis", folder, urlsplit(BROKER_URL).password)
    with Supervisor(folder / "pids.json") as supervisor:
        supervisor.start(server.program())
        with front(certificates.redis, server.socket, asks=False) as port:
            yield port
    server.forget_socket_directory()


def give_passwords(connection: psycopg.Connection) -> None:
    for parts in map(urlsplit, (*DATABASE_URLS, OWNER_URL)):
        known = connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (parts.username,)).fetchone()
        verb = "ALTER" if known else "CREATE"
        connection.execute(f"{verb} ROLE {parts.username} LOGIN PASSWORD '{parts.password}'")


def connect_to_postgres(url: str, port: int, certificates: Certificates) -> psycopg.Connection:
    url = certificates.put_into(url).replace("postgresql+psycopg://", "postgresql://")
    return psycopg.connect(f"{url}&hostaddr=127.0.0.1&port={port}", connect_timeout=60)


@pytest.fixture
def leads_to(monkeypatch) -> Callable[[int], None]:
    """Lets the name `redis` lead to a port of this machine."""
    real = socket.getaddrinfo

    def set_port(port: int) -> None:
        def lookup(host, *arguments, **options):
            if host in {"redis", "wrong"}:
                return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]
            return real(host, *arguments, **options)

        monkeypatch.setattr(socket, "getaddrinfo", lookup)

    return set_port


def speak_with_both_clients(url: str) -> None:
    with broker_client(url) as client:
        assert client.ping()
    with celery_sender(url).connection() as connection:
        connection.ensure_connection(max_retries=1, timeout=60)


@pytest.mark.parametrize("url", sorted({*DATABASE_URLS, OWNER_URL}), ids=lambda url: urlsplit(url).username)
def test_the_database_is_spoken_to_over_checked_tls(url, postgres_front, certificates, others):
    with connect_to_postgres(url, postgres_front, certificates) as connection:
        assert connection.pgconn.ssl_in_use
    with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
        connect_to_postgres(url, postgres_front, others)
    with pytest.raises(psycopg.OperationalError, match="does not match host name"):
        connect_to_postgres(url.replace("@postgres/", "@redis/"), postgres_front, certificates)


def test_the_broker_is_spoken_to_over_checked_tls(redis_front, certificates, others, leads_to):
    leads_to(redis_front)
    speak_with_both_clients(certificates.put_into(BROKER_URL))
    for wrong in (others.put_into(BROKER_URL), certificates.put_into(BROKER_URL).replace("@redis:", "@wrong:")):
        with broker_client(wrong) as client, pytest.raises(redis.ConnectionError, match="verify failed"):
            client.ping()
        with celery_sender(wrong).connection() as connection, pytest.raises(OperationalError, match="verify failed"):
            connection.ensure_connection(max_retries=1, timeout=60)


def test_an_address_that_says_nothing_of_certificates_is_checked_all_the_same(redis_front, leads_to):
    """Left to itself kombu would trust anybody here; the system's authorities do not know ours."""
    leads_to(redis_front)
    bare = BROKER_URL.partition("?")[0]
    with celery_sender(bare).connection() as connection, pytest.raises(OperationalError, match="verify failed"):
        connection.ensure_connection(max_retries=1, timeout=60)


@pytest.mark.parametrize("part", ["ssl_cert_reqs=none", "ssl_cert_reqs=optional", "ssl_check_hostname=False"])
def test_no_address_turns_the_checks_off(part):
    with pytest.raises(InvalidInput, match="certificates are checked"):
        broker_url(f"rediss://:x@redis:6379/0?{part}")


# -- the servers, with TLS of their own ---------------------------------------------------------------------------


def postgres_with_tls() -> Path:
    for folder in (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *map(Path, os.get_exec_path())):
        if (folder / "postgres").exists() and (folder / "initdb").exists():
            return folder
    pytest.skip("no Postgres built with TLS on this machine")


@pytest.fixture
def compose_postgres(certificates, tmp_path) -> Iterator[int]:
    """Postgres with the command of the compose file, its paths replaced."""
    binaries, account, port = postgres_with_tls(), account_for_postgres(), free_port()
    home = Path(tempfile.mkdtemp(prefix="pg-"))
    password = home / "password"
    password.write_text(urlsplit(OWNER_URL).password)
    if account is not None:
        for path in (home, password):
            os.chown(path, account.uid, account.gid)
    image, *options = shlex.split(SERVICES["postgres"]["command"])
    assert image == "postgres"
    hba = ROOT / "docker" / "pg_hba.conf"
    options = [
        word.replace("/tls/", f"{certificates.postgres}/").replace("/etc/imprimatur/pg_hba.conf", str(hba))
        for word in options
    ]
    initdb = [str(binaries / "initdb"), "-D", str(home / "data"), "-U", "postgres", f"--pwfile={password}", "--no-sync"]
    initdb += shlex.split(SERVICES["postgres"]["environment"]["POSTGRES_INITDB_ARGS"])
    server = [
        str(binaries / "postgres"),
        "-D",
        str(home / "data"),
        *options,
        "-c",
        f"port={port}",
        "-c",
        f"unix_socket_directories={home}",
        "-c",
        "listen_addresses=127.0.0.1",
        "-c",
        "fsync=off",
    ]
    try:
        subprocess.run(
            command_as(account, tuple(initdb), (home,)),
            check=True,
            capture_output=True,
            cwd="/",
            env={"PATH": os.defpath, "LC_ALL": "C"},
        )
        with (tmp_path / "log").open("wb") as log:
            process = subprocess.Popen(command_as(account, tuple(server), (home, hba)), stdout=log, stderr=log, cwd="/")
        try:
            owner = until_it_answers(
                lambda: connect_to_postgres(OWNER_URL.replace("/imprimatur?", "/postgres?"), port, certificates),
                tmp_path / "log",
            )
            with owner:
                owner.autocommit = True
                owner.execute("CREATE DATABASE imprimatur")
                give_passwords(owner)
            yield port
        finally:
            process.terminate()
            process.wait(30)
    finally:
        shutil.rmtree(home)


def until_it_answers(connect: Callable, log: Path):
    for _ in range(100):
        try:
            return connect()
        except (psycopg.OperationalError, redis.ConnectionError) as error:
            last = error
            time.sleep(0.1)
    raise AssertionError(log.read_text()) from last


def test_postgres_as_composed_takes_tls_with_a_password_and_nothing_else(compose_postgres, certificates, others):
    for url in sorted({*DATABASE_URLS, OWNER_URL}):
        with connect_to_postgres(url, compose_postgres, certificates) as connection:
            assert connection.pgconn.ssl_in_use
            known = (
                "SELECT count(*) FROM pg_authid WHERE rolpassword IS NOT NULL AND rolpassword NOT LIKE 'SCRAM-SHA-256%'"
            )
            assert "//postgres:" not in url or connection.execute(known).fetchone() == (0,)
        with pytest.raises(psycopg.OperationalError, match="certificate verify failed"):
            connect_to_postgres(url, compose_postgres, others)
        with pytest.raises(psycopg.OperationalError, match=r"no pg_hba.conf entry .* no encryption"):
            connect_to_postgres(url.replace("verify-full", "disable"), compose_postgres, certificates)
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            connect_to_postgres(url.replace("secret0", "guessed"), compose_postgres, certificates)


@pytest.fixture
def compose_broker(certificates, tmp_path) -> Iterator[int]:
    """docker/broker.sh, with a server of this machine that has TLS."""
    found = shutil.which("valkey-server") or shutil.which("redis-server")
    if found is None:
        pytest.skip("no valkey-server or redis-server on the PATH")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "valkey-server").symlink_to(found)
    port = free_port()
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "CERTIFICATES": str(certificates.redis),
        "BROKER_PORT": str(port),
        "REDISCLI_AUTH": filled_in(SERVICES["redis"]["environment"]["REDISCLI_AUTH"]),
    }
    script = ROOT / "docker" / Path(SERVICES["redis"]["command"]).name
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(["sh", str(script)], env=environment, stdout=log, stderr=log, cwd=tmp_path)
    try:
        for _ in range(100):
            text = (tmp_path / "log").read_text()
            if "TLS support" in text or "Bad directive" in text:
                pytest.skip(f"{found} was built without TLS")
            if "Ready to accept connections" in text:
                break
            assert process.poll() is None, text
            time.sleep(0.1)
        command_line = Path(f"/proc/{process.pid}/cmdline")
        assert not command_line.exists() or environment["REDISCLI_AUTH"] not in command_line.read_text()
        yield port
    finally:
        process.terminate()
        process.wait(30)


def test_the_broker_as_composed_takes_tls_with_a_password_and_nothing_else(
    compose_broker, certificates, others, leads_to
):
    leads_to(compose_broker)
    url = certificates.put_into(BROKER_URL)
    speak_with_both_clients(url)
    with (
        broker_client(others.put_into(BROKER_URL)) as client,
        pytest.raises(redis.ConnectionError, match="verify failed"),
    ):
        client.ping()
    with redis.Redis(port=compose_broker, socket_timeout=60) as plain, pytest.raises(redis.ConnectionError):
        plain.ping()
    with broker_client(url.replace("secret0", "guessed")) as client, pytest.raises(redis.AuthenticationError):
        client.ping()
    with broker_client(url) as client, pytest.raises(redis.exceptions.NoPermissionError):
        client.flushall()


def test_both_brokers_give_the_same_rights():
    assert BROKER_RIGHTS in (ROOT / "docker" / "broker.sh").read_text()


# -- the certificates ---------------------------------------------------------------------------------------------


def test_certificates_are_kept_until_they_near_their_end_and_the_authority_has_no_key(make):
    first = make()
    files = {
        path: path.read_bytes()
        for folder in (first.authority, first.postgres, first.redis)
        for path in folder.iterdir()
    }
    assert sorted(f"{path.parent.name}/{path.name}" for path in files) == [
        "authority/ca.crt",
        *(f"{server}/server.{end}" for server in ("postgres", "redis") for end in ("crt", "key")),
    ]
    assert {path.stat().st_mode & 0o777 for path in files if path.suffix == ".key"} == {0o600}
    again = make(into=first.authority.parent)
    assert {path: path.read_bytes() for path in files} == files
    (again.redis / "server.crt").write_bytes((again.postgres / "server.crt").read_bytes())  # another host's
    make(into=first.authority.parent)
    changed = {path.name for path, content in files.items() if path.read_bytes() != content}
    assert changed == {"ca.crt", "server.crt", "server.key"}
    renewed = (first.authority / "ca.crt").read_bytes()
    make("--renew", into=first.authority.parent)
    assert (first.authority / "ca.crt").read_bytes() != renewed
    certificate = x509.load_pem_x509_certificate((first.redis / "server.crt").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["redis"]
