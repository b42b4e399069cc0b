"""Which service is meant where none is named: that of the environment, or the `imprimatur up` of this user on this machine."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from imprimatur.errors import Unreachable
from imprimatur.formats import invalid

FOLDER = "imprimatur-data"
STARTING_SECONDS = 60.0
POLL_SECONDS = 0.2


@dataclass(frozen=True)
class Running:
    """A service that runs in a data directory, and the key of its first owner."""

    url: str
    key: str


def running_in(data: Path) -> Running | None:
    """The living `up` of a data directory, if there is one; one that is still starting is waited for."""
    deadline = time.monotonic() + STARTING_SECONDS
    while _is_locked(data):
        with suppress(FileNotFoundError):
            address = (data / "address").read_text(encoding="utf-8").strip()
            return Running(address, (data / "admin.key").read_text(encoding="utf-8").strip())
        if time.monotonic() > deadline:
            raise Unreachable(0, "unreachable", f"the service in {data} has not come up; see {data / 'logs'}")
        time.sleep(POLL_SECONDS)
    return None


def service_of(url: str | None, api_key: str | None) -> tuple[str, str | None]:
    """Address and key. A key of the environment goes to no address but that of the environment or of this machine's service."""
    if url is not None:
        return url, api_key
    named, key = os.environ.get("IMPRIMATUR_URL"), api_key or os.environ.get("IMPRIMATUR_API_KEY")
    if named:
        return named, key
    for data in _data_directories():
        running = running_in(data)
        if running is not None:
            return running.url, key or running.key
    raise invalid(
        "client",
        "no service is named and none runs here: give its address, set IMPRIMATUR_URL and IMPRIMATUR_API_KEY, or start one"
        " with `imprimatur up` in this folder or one above it",
    )


def _data_directories() -> list[Path]:
    """IMPRIMATUR_DATA; else `imprimatur-data` here and in the folders above, where it is this user's own.

    In a folder that others can write to, such as /tmp, somebody else could run a service that takes private rows.
    """
    named = os.environ.get("IMPRIMATUR_DATA")
    if named:
        return [Path(named)]
    here = Path.cwd()
    return [found for folder in (here, *here.parents) if _is_own(found := folder / FOLDER)]


def _is_own(folder: Path) -> bool:
    getuid = getattr(os, "getuid", None)  # Windows has none, and no service runs in a directory there
    try:
        return getuid is not None and folder.stat().st_uid == getuid()
    except OSError:
        return False


def _is_locked(data: Path) -> bool:
    """Whether a living process holds the directory's lock; an address left behind by a killed one proves nothing."""
    try:
        import fcntl  # noqa: PLC0415 - not on Windows, where no service runs in a directory
    except ModuleNotFoundError:
        return False
    try:
        with (data / "lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False
