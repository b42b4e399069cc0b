"""What the reading process gives up before it looks at the first byte of an upload, in layers.

Each layer holds by itself, and is missing where the system does not have it. `begin` and `finish` try every one out and
say which of them hold; what each of them stops is tried in `tests/service/intake/test_sandbox.py`, inside the process.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import socket
import sys
import sysconfig
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from service.intake.sandbox import landlock, seccomp

OWN_USER, NO_NEW_PRIVILEGES, SECCOMP, LANDLOCK = "user of its own", "no_new_privs", "seccomp", "Landlock"
LAYERS = (OWN_USER, NO_NEW_PRIVILEGES, SECCOMP, LANDLOCK)

_FIRST_USER, _USERS = 61_184, 4_336
"""Users for services that live shortly (systemd's DynamicUser), which no file belongs to."""
_MOST_THREADS = 256
_SET_DEATH_SIGNAL, _SET_DUMPABLE, _SET_NO_NEW_PRIVILEGES, _GET_NO_NEW_PRIVILEGES = 1, 4, 38, 39
_SYSTEM = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/usr/share/zoneinfo")
"""Shared libraries, and the time zones that Parquet names; the same on every machine with this system."""


def expected() -> dict[str, bool]:
    """Which layers this process can give the ones it starts. Asks the kernel, and changes nothing."""
    return {
        OWN_USER: os.geteuid() == 0,
        NO_NEW_PRIVILEGES: sys.platform == "linux",
        SECCOMP: seccomp.is_available(),
        LANDLOCK: landlock.version() > 0,
    }


@dataclass(frozen=True)
class Begun:
    """What holds so far."""

    landlocked: bool
    memory: int | None
    """Descriptor of this process's memory figures, which lie out of reach now."""

    def held_bytes(self) -> int:
        """Address space in use; 0 where the system does not say."""
        if self.memory is None:
            return 0
        return int(os.pread(self.memory, 100, 0).split()[0]) * os.sysconf("SC_PAGE_SIZE")


def begin(module_folder: Path) -> Begun:
    """Leave of the disk only what imports need, for reading. Before any library has started a thread."""
    memory = None
    with suppress(OSError):
        memory = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
    if sys.platform != "linux":
        return Begun(landlocked=False, memory=memory)
    ctypes.CDLL(None).prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    threads = Path("/proc/self/task")
    alone = threads.exists() and len(list(threads.iterdir())) == 1
    landlocked = alone and landlock.restrict([*_folders_of_python(), module_folder, *map(Path, _SYSTEM)])
    return Begun(landlocked=landlocked and _is_refused("/"), memory=memory)


def finish(begun: Begun, parent: int) -> dict[str, bool]:
    """Give up the rest, for good, after everything is imported. Says of every layer whether it holds."""
    own_user = _take_own_user()
    if sys.platform != "linux":
        return dict.fromkeys(LAYERS, False) | {OWN_USER: own_user}
    kernel = ctypes.CDLL(None)
    kernel.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    kernel.prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)  # a change of user would have unset it
    if os.getppid() != parent:  # it ended before it could be watched
        os.kill(os.getpid(), signal.SIGKILL)
    return {
        OWN_USER: own_user,
        NO_NEW_PRIVILEGES: kernel.prctl(_GET_NO_NEW_PRIVILEGES, 0, 0, 0, 0) == 1,
        SECCOMP: seccomp.install() and _has_no_sockets(),
        LANDLOCK: begun.landlocked,
    }


def _take_own_user() -> bool:
    """Where this process is root's: a user and a group that nothing else on the machine has, and no other groups."""
    if os.geteuid() != 0:
        return False
    user = _FIRST_USER + os.getpid() % _USERS
    try:
        os.setgroups([])
        os.setresgid(user, user, user)
        with suppress(ValueError, OSError):  # counts what is this user's alone
            resource.setrlimit(resource.RLIMIT_NPROC, (_MOST_THREADS, _MOST_THREADS))
        os.setresuid(user, user, user)
    except OSError:  # a container that has no such user
        return False
    return os.getresuid() == (user, user, user) and os.getgroups() == []


def _folders_of_python() -> list[Path]:
    """Of the interpreter, the libraries and this package. Of a checkout, in which more may lie, the packages alone."""
    root = Path(__file__).parents[3]
    libraries = [Path(entry) for entry in sys.path if entry]
    if not (root / "polars").exists():
        libraries = [entry for entry in libraries if entry.resolve() != root.resolve()]
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    interpreter = Path(sys.base_prefix) / "lib"
    return [*map(Path, map(sysconfig.get_path, names)), *libraries, interpreter, root / "service", root / "imprimatur"]


def _is_refused(folder: str) -> bool:
    try:
        os.close(os.open(folder, os.O_RDONLY))
    except PermissionError:
        return True
    return False


def _has_no_sockets() -> bool:
    try:
        socket.socket().close()
    except PermissionError:
        return True
    return False
