"""A reading process that tries what it must not be able to do, and answers what came of each try."""

from __future__ import annotations

import ctypes
import os
import resource
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.intake import child, sandbox
from service.intake.sandbox.seccomp import MACHINES
from service.intake.sandbox.syscalls import DENIED
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from collections.abc import Callable

_CLONE_NEW_USER = 0x1000_0000
_CLONE_THREAD = 0x0001_0000
_NO_GOOD = [ctypes.c_long(-1)] * 5
"""Arguments with which no call does anything, where it is not refused."""


def _attempts() -> dict[str, Callable[[], object]]:
    """Each must fail with a PermissionError, or with what its name says."""
    kernel = ctypes.CDLL(None, use_errno=True)
    column = MACHINES[os.uname().machine].column
    number = {name: numbers[column] for name, numbers in DENIED.items()}

    def call(of: int | None, *arguments: object) -> int:
        answer = int(kernel.syscall(of, *arguments))
        if answer < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return answer

    found: dict[str, Callable[[], object]] = {}
    for name in (*_NETWORK, *_PROGRAMS, *_RIGHTS):
        found[name] = lambda name=name: call(number[name], *_NO_GOOD)  # type: ignore[misc]
    return found | {
        "write a file": lambda: os.open("/tmp/imprimatur-probe", os.O_WRONLY | os.O_CREAT, 0o600),
        "write a device": lambda: os.open("/dev/null", os.O_WRONLY),
        "write code": lambda: os.open(child.__file__, os.O_RDWR),
        "read the accounts": lambda: os.open("/etc/passwd", os.O_RDONLY),
        "list the root": lambda: list(Path("/").iterdir()),
        "list the checkout": lambda: list(Path(child.__file__).parents[2].iterdir()),
        "read the parent's environment": lambda: os.open(f"/proc/{os.getppid()}/environ", os.O_RDONLY),
        "read its own memory": lambda: os.open("/proc/self/mem", os.O_RDONLY),
        "fork": lambda: os.fork() or os._exit(0),
        "run a program": lambda: os.execv("/no/such/program", ["x"]),
        "signal the parent": lambda: os.kill(os.getppid(), 0),
        "a user namespace": lambda: call(272 if column == 0 else 97, _CLONE_NEW_USER),
        "clone into a namespace": lambda: call(56 if column == 0 else 220, _CLONE_NEW_USER | _CLONE_THREAD, 0, 0, 0, 0),
        "set a limit": lambda: call(302 if column == 0 else 261, 0, resource.RLIMIT_CPU, 1, 0),
        "become root": lambda: os.setuid(0),
        "dump core": lambda: call(157 if column == 0 else 167, 4, 1, 0, 0, 0),
    }


_NETWORK = ("socket", "socketpair", "connect", "bind", "listen", "accept4", "sendto", "sendmsg", "recvmsg")
_PROGRAMS = ("execve", "execveat", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "memfd_create")
_RIGHTS = (
    *("mount", "unshare", "setns", "chroot", "pivot_root", "keyctl", "add_key", "request_key", "bpf"),
    *(
        "perf_event_open",
        "userfaultfd",
        "io_uring_setup",
        "init_module",
        "setresuid",
        "capset",
        "personality",
        "seccomp",
    ),
)


def _outcome(attempt: Callable[[], object]) -> str:
    try:
        attempt()
    except OSError as error:
        return type(error).__name__
    return "done"


def _probe(document: dict[str, Any]) -> dict[str, Any]:
    attempts = _attempts()
    with ThreadPoolExecutor(1) as threads:  # what began later is bound as well
        later = threads.submit(lambda: {name: _outcome(attempt) for name, attempt in attempts.items()}).result()
    open_files = []
    for descriptor in range(1_024):
        with suppress(OSError):
            os.fstat(descriptor)
            open_files.append(descriptor)
    upload = SealedFile.handed_over(document["upload"])
    return {
        "main": {name: _outcome(attempt) for name, attempt in attempts.items()},
        "thread": later,
        "threads": threading.active_count(),
        "environment": dict(os.environ),
        "arguments": sys.argv,
        "files": open_files,
        "users": [*os.getresuid(), *os.getresgid(), *os.getgroups()],
        "no_new_privs": ctypes.CDLL(None).prctl(39, 0, 0, 0, 0),
        "limits": {
            name: resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1] for name in ("CORE", "CPU", "FSIZE", "AS")
        },
        "folder": str(Path.cwd()),
        "upload": upload.read_at(0, 100).decode("latin-1"),
        "modules": _imported_by_reading(document),
    }


def _imported_by_reading(document: dict[str, Any]) -> list[str]:
    before = set(sys.modules)
    child.read_upload(document)
    return sorted(set(sys.modules) - before)


def main(begun: sandbox.Begun) -> None:
    """The tries as the work of the process, after all that the real one does before."""
    child.main(begun, _probe)
