"""Which system account runs Postgres. It refuses to run as root; everybody else runs it as themselves."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

from service.local.errors import CannotStart

if TYPE_CHECKING:
    from pathlib import Path

CANDIDATES = ("imprimatur", "pgserver", "postgres", "nobody")
"""Existing accounts to try when we are root; we never add one to the machine."""


@dataclass(frozen=True)
class Account:
    """An ordinary account that root lends to Postgres."""

    name: str
    uid: int
    gid: int


def account_for_postgres() -> Account | None:
    """The account that runs Postgres: None for our own; another one where we are root, as which Postgres refuses to run."""
    if os.geteuid() != 0:
        return None
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
    raise CannotStart(
        f"Postgres refuses to run as root and none of the accounts {', '.join(CANDIDATES)} exists. "
        "Create a system account named imprimatur, or start as an ordinary user."
    )


def command_as(account: Account | None, command: tuple[str, ...], paths: tuple[Path, ...]) -> tuple[str, ...]:
    """The command, run as the account, able to pass through every directory above `paths`.

    A checkout or data directory below root's 0700 home cannot be reached by another account. Instead of opening that
    home to everybody, the one process gets the capability to pass (CAP_DAC_OVERRIDE), and nothing on disk changes.
    """
    if account is None:
        return command
    setpriv = shutil.which("setpriv")
    closed = next((folder for path in paths for folder in path.resolve().parents if not _open(folder)), None)
    if setpriv is None:
        raise CannotStart(
            "Postgres cannot run as root, and `setpriv` (util-linux) is missing: start as an ordinary user."
        )
    lend = ("--inh-caps", "+dac_override", "--ambient-caps", "+dac_override") if closed else ()
    who = ("--reuid", str(account.uid), "--regid", str(account.gid), "--clear-groups")
    return (setpriv, *who, *lend, "--", *command)


def _open(folder: Path) -> bool:
    return bool(folder.stat().st_mode & stat.S_IXOTH)
