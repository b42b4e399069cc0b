"""Who may log in to the embedded Postgres, and by which path: a password a role, one socket in a folder of ours.

Each role has a random password in a file of mode 0600. Nothing else lets anybody in: `pg_hba.conf` has one line, which
asks for it (SCRAM). A process that connects asks the server for the same: it must prove that it knows the password
(`require_auth`), and it must run as its account (`requirepeer`). A socket that somebody else puts in the way gets neither.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import pwd
import secrets
import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from service.local.errors import CannotStart

if TYPE_CHECKING:
    from service.local.accounts import Account

LONGEST_SOCKET_PATH = 100
"""Bytes; the kernel allows 107 on Linux and 103 on macOS."""
SOCKET_NAME = ".s.PGSQL.5432"
SUPERUSER = "postgres"
API_ROLE, RELAY_ROLE, WORKER_ROLE = "imprimatur_api", "imprimatur_relay", "imprimatur_worker"
PROCESS_ROLES = (API_ROLE, RELAY_ROLE, WORKER_ROLE)
"""Migrations give them their rights; here they get their passwords."""
SCRAM_ITERATIONS = 4_096
HBA = """\
# Written by `imprimatur up` at every start. A password for everybody, no other way in.
# TYPE  DATABASE  USER  METHOD
local   all       all   scram-sha-256
"""


def read_password(folder: Path, role: str) -> str:
    """The role's password, which a start has made."""
    try:
        return (folder / role).read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        raise CannotStart(f"{folder} has no password of {role}: start the service there once.") from None


def make_password(folder: Path, role: str) -> bool:
    """Make the role's password unless it has one; True where it is new."""
    folder.mkdir(exist_ok=True, mode=0o700)
    if (folder / role).exists():
        return False
    unfinished = folder / f"{role}.unfinished"
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(secrets.token_urlsafe(32) + "\n")
    unfinished.replace(folder / role)
    return True


def scram_verifier(password: str, salt: bytes | None = None) -> str:
    """What the server keeps of a password (RFC 5803). A statement with it gives no password away to a log."""
    salt = salt or secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, SCRAM_ITERATIONS)
    client, server = (hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key"))
    salt_text, stored, server_key = (
        base64.b64encode(each).decode() for each in (salt, hashlib.sha256(client).digest(), server)
    )
    return f"SCRAM-SHA-256${SCRAM_ITERATIONS}:{salt_text}${stored}:{server_key}"


def account_name(account: Account | None) -> str | None:
    """The system account that runs the server; None where ours has no name."""
    if account is not None:
        return account.name
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return None


def private_folder(folder: Path, account: Account | None) -> None:
    """Make the folder, or take the one that is there: a real one of mode 0700 that belongs to us or the server."""
    owner = os.geteuid() if account is None else account.uid
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in {os.geteuid(), owner}:
        raise CannotStart(f"{folder} is not a folder of this service: remove what is there.")
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        os.fchmod(descriptor, 0o700)
        if account is not None:
            os.fchown(descriptor, account.uid, account.gid)
    finally:
        os.close(descriptor)


class SocketPath:
    """How clients name the folder of the socket, whose path may be longer than the kernel takes for a socket.

    Then they go through a descriptor of this process, which leads to the very folder: `/proc/PID/fd/N`. Children of this
    process can use it as well. There is no second folder, so no other folder can be put in its place.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor: int | None = None

    def __str__(self) -> str:
        if len(os.fsencode(self._folder / SOCKET_NAME)) <= LONGEST_SOCKET_PATH:
            return str(self._folder)
        if sys.platform != "linux":
            raise CannotStart(f"The path {self._folder} is too long for a socket: choose a shorter --data.")
        if self._descriptor is None:
            self._descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        return f"/proc/{os.getpid()}/fd/{self._descriptor}"

    def close(self) -> None:
        """Until it is asked for again."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
