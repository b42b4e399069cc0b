"""Who gets into the embedded Postgres: its roles by their passwords, through one folder of ours, and no one else."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest

from service.local import TEST_SETTINGS, CannotStart, Postgres, Supervisor
from service.local.accounts import account_for_postgres
from service.local.database_access import API_ROLE, PROCESS_ROLES, SOCKET_NAME, SUPERUSER, scram_verifier

if TYPE_CHECKING:
    from collections.abc import Iterator


def postgres_in(folder: Path) -> Postgres:
    return Postgres(folder / "postgres", folder, TEST_SETTINGS)


@contextmanager
def running(server: Postgres) -> Iterator[Postgres]:
    with Supervisor(server.logs / "pids.json") as supervisor:
        supervisor.start(server.program())
        server.create_roles()
        yield server
    server.forget_socket_directory()


def dsn(server: Postgres, role: str = SUPERUSER) -> str:
    return server.url(SUPERUSER, role).replace("+psycopg", "")


def who(address: str) -> str:
    with psycopg.connect(address) as connection:
        return connection.execute("SELECT current_user").fetchone()[0]


def rules(server: Postgres) -> list[list[str]]:
    lines = (server.data / "pg_hba.conf").read_text().splitlines()
    return [line.split() for line in lines if line and not line.startswith("#")]


def assert_only_passwords_let_in(server: Postgres) -> None:
    assert rules(server) == [["local", "all", "all", "scram-sha-256"]]
    host = f"host='{server.socket_directory}'"
    for role in (*PROCESS_ROLES, SUPERUSER):
        assert who(dsn(server, role)) == role
        with pytest.raises(psycopg.OperationalError, match="no password supplied"):
            psycopg.connect(f"{host} user={role} dbname=postgres passfile=/dev/null")
    for wrong in ("", "guess", (server.passwords / API_ROLE).read_text().strip()):
        with pytest.raises(psycopg.OperationalError, match=r"authentication failed|no password supplied"):
            psycopg.connect(f"{host} user={SUPERUSER} dbname=postgres password='{wrong}' passfile=/dev/null")
    assert {stat.S_IMODE(file.stat().st_mode) for file in server.passwords.iterdir()} == {0o600}
    assert stat.S_IMODE(server.passwords.stat().st_mode) == 0o700
    assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700


def test_each_role_logs_in_by_its_own_password_and_no_one_without(tmp_path):
    with running(postgres_in(tmp_path)) as server:
        assert_only_passwords_let_in(server)
    (server.passwords / SUPERUSER).unlink()  # lost: the next start makes another
    with running(postgres_in(tmp_path)) as server:
        assert_only_passwords_let_in(server)


def test_a_cluster_that_trusted_everybody_is_moved_over_at_the_next_start(tmp_path):
    """As earlier versions made it, down to the note of a socket in a folder that others can write in."""
    server, account = postgres_in(tmp_path), account_for_postgres()
    server.directory.mkdir(mode=0o700)
    server.data.mkdir(mode=0o700)
    if account is not None:
        os.chown(server.data, account.uid, account.gid)
    initdb = (
        str(server.binaries / "initdb"),
        "-D",
        str(server.data),
        "-U",
        SUPERUSER,
        "--auth=trust",
        "--encoding=UTF8",
    )
    server._run(initdb, (server.data, server.binaries), account)
    assert "trust" in (server.data / "pg_hba.conf").read_text()
    alone = (str(server.binaries / "postgres"), "--single", "-D", str(server.data), SUPERUSER)
    server._run(alone, (server.data, server.binaries), account, "CREATE TABLE kept AS SELECT 42 AS number\n")
    hostile = tmp_path / "somebody-elses"
    hostile.mkdir(mode=0o777)
    (hostile / "file").touch()
    (server.directory / "socket-directory").write_text(str(hostile))
    with running(server):
        assert_only_passwords_let_in(server)
        with psycopg.connect(dsn(server)) as connection:
            assert connection.execute("SELECT number FROM kept").fetchone() == (42,)
    assert (hostile / "file").exists()


def test_a_start_that_was_killed_between_its_steps_is_repeated(tmp_path):
    """With the rules of earlier versions and a password that is written down, but not set."""
    with running(postgres_in(tmp_path)) as server:
        pass
    (server.data / "pg_hba.conf").write_text("local all all trust\n")
    (server.passwords / SUPERUSER).write_text("never-set\n")
    with running(postgres_in(tmp_path)) as server:
        assert_only_passwords_let_in(server)


def test_the_verifier_is_that_of_the_standard():
    """RFC 7677 gives the keys of this password and salt; the server accepts what we make (see above)."""
    assert scram_verifier("pencil", base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")) == (
        "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY="
        ":wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="a path this long has no way in elsewhere")
@pytest.mark.parametrize("length", [107, 150, 400])
def test_a_long_path_has_its_socket_beside_the_data_too(tmp_path, length):
    home = tmp_path
    while len(os.fsencode(home)) < length:
        home /= "f" * min(100, max(1, length - len(os.fsencode(home)) - 1))
    home.mkdir(parents=True)
    with running(postgres_in(home)) as server:
        assert (server.directory / "socket" / SOCKET_NAME).is_socket()
        assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700
        assert who(dsn(server, API_ROLE)) == API_ROLE
        # A child of this process has the same way, and another process finds its own.
        code = f"import psycopg; print(psycopg.connect({dsn(server)!r}).execute('SELECT 7').fetchone())"
        assert "(7,)" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        code = (
            "from pathlib import Path\nfrom service.local import Postgres\n"
            f"home = Path({str(home)!r})\nprint(Postgres(home / 'postgres', home).connect().execute('SELECT 8').fetchone())"
        )
        assert "(8,)" in subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        way = server.connect().info.host
        assert way == str(server.socket_directory) or Path(way).readlink() == server.socket_directory


@pytest.mark.parametrize("kind", ["symlink", "file", "dangling"])
def test_what_is_in_the_way_of_the_socket_is_refused(tmp_path, kind):
    with running(postgres_in(tmp_path)) as server:
        pass
    shutil.rmtree(server.socket_directory)
    elsewhere = tmp_path / "elsewhere"
    if kind == "file":
        server.socket_directory.touch()
    else:
        server.socket_directory.symlink_to(elsewhere)
    if kind == "symlink":
        elsewhere.mkdir(mode=0o777)
    with pytest.raises(CannotStart, match="not a folder of this service"):
        postgres_in(tmp_path).program()
    assert not elsewhere.exists() or not list(elsewhere.iterdir())


def test_a_folder_that_others_could_write_in_is_closed(tmp_path):
    server = postgres_in(tmp_path)
    server.directory.mkdir()
    server.socket_directory.mkdir()
    server.socket_directory.chmod(0o777)
    with running(server):
        assert stat.S_IMODE(server.socket_directory.stat().st_mode) == 0o700


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a folder of somebody else")
def test_a_folder_of_somebody_else_is_refused(tmp_path):
    server = postgres_in(tmp_path)
    server.directory.mkdir()
    server.socket_directory.mkdir()
    os.chown(server.socket_directory, 12_345, 12_345)
    with pytest.raises(CannotStart, match="not a folder of this service"):
        server.program()


@pytest.mark.parametrize("account", [True, False], ids=["of another account", "of our account"])
def test_a_server_that_does_not_know_the_password_gets_no_statement(tmp_path, account):
    """It would let anybody in, and answer what it likes: an impostor on the socket of ours."""
    with running(postgres_in(tmp_path)) as server:
        pass
    heard = []
    with socket.socket(socket.AF_UNIX) as impostor:
        impostor.bind(str(server.socket_directory / SOCKET_NAME))
        impostor.listen()

        def welcome() -> None:
            client, _ = impostor.accept()
            with client, contextlib.suppress(OSError):
                client.recv(1_000)
                client.sendall(b"R\0\0\0\x08\0\0\0\0" + b"Z\0\0\0\x05I")  # AuthenticationOk, ReadyForQuery
                heard.append(client.recv(1_000))

        thread = threading.Thread(target=welcome)
        thread.start()
        address, _, peer = dsn(server).partition("&requirepeer=")
        assert peer
        if account and os.geteuid() == 0:
            address = f"{address}&requirepeer={peer}"
            refusal = "requirepeer"
        else:
            refusal = "authentication method requirement"
        with pytest.raises(psycopg.OperationalError, match=refusal):
            psycopg.connect(address, connect_timeout=60)
        thread.join(60)
    assert not any(b"SELECT" in said for said in heard)
