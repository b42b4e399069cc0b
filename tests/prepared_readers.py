"""The process that reads an upload, forked from one that has imported everything, where a test is about something else.

To import polars and pyarrow takes a second of processor time, to read a small table some milliseconds. Everything else is
as it is in a service: a process of its own for each file, with every layer of the sandbox, its limits and its pipes. What
the start of that process is like itself is tried in `tests/service/intake`, without this.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Sequence

CHILDREN = ("service.intake.child", "service.intake.drafted_child", "service.intake.sent_rows_child")
"""What `service.intake.sandboxed` may be asked for here; anything else is started as ever."""
MOST_DESCRIPTORS = 16
MOST_BYTES = 4096


# -- in the process that asks -------------------------------------------------------------------------------------


class PreparedReaders:
    """Stands in for the module `subprocess` in `service.intake.ingest`. One a process; starts at its first use."""

    PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: socket.socket | None = None
        self._prepared: subprocess.Popen[bytes] | None = None

    def Popen(self, command: list[str], **options: Any) -> Any:  # noqa: N802 - as `subprocess` calls it
        """A reader that is forked, or a process that is started as ever."""
        if command[-2] != "service.intake.sandboxed" or command[-1] not in CHILDREN:
            return subprocess.Popen(command, **options)
        return self._forked(command[-1], options["env"], list(options["pass_fds"]))

    def stop(self) -> None:
        """End the prepared process; it can make no reader after this."""
        if self._asked is not None and self._prepared is not None:
            self._asked.close()
            self._prepared.wait(30)
            self._asked = self._prepared = None

    def _forked(self, child: str, environment: dict[str, str], files: list[int]) -> Forked:
        job_read, job_write = os.pipe()
        said_read, said_write = os.pipe()
        ended_read, ended_write = os.pipe()
        handed = [job_read, said_write, ended_write]
        try:
            with self._lock:
                asked = self._asked or self._start(environment)
                _send(asked, {"child": child, "files": files}, [*handed, *files])
                _, (watched,) = _receive(asked)
        finally:
            for each in handed:
                os.close(each)
        return Forked(watched, job_write, said_read, ended_read)

    def _start(self, environment: dict[str, str]) -> socket.socket:
        ours, theirs = socket.socketpair()
        self._prepared = subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "tests.prepared_readers", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd="/",
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._asked = ours
        return ours


class Forked:
    """What of `subprocess.Popen` the service uses."""

    def __init__(self, watched: int, job: int, said: int, ended: int) -> None:
        self.stdin, self.stdout = os.fdopen(job, "wb"), os.fdopen(said, "rb")
        self._watched, self._ended = watched, ended
        self._lock = threading.Lock()
        self._status: int | None = None

    def kill(self) -> None:
        with self._lock, suppress(ProcessLookupError):
            if self._status is None:
                signal.pidfd_send_signal(self._watched, signal.SIGKILL)

    def wait(self) -> int:
        """Its exit status, or minus the signal that ended it. From one thread, as the service does."""
        if self._status is None:
            said = os.read(self._ended, 16)
            with self._lock:
                self._status = int(said) if said else -signal.SIGKILL
                os.close(self._ended)
                os.close(self._watched)
        return self._status


def _send(to: socket.socket, document: dict[str, Any], descriptors: Sequence[int]) -> None:
    socket.send_fds(to, [json.dumps(document).encode()], list(descriptors))


def _receive(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    content, descriptors, _, _ = socket.recv_fds(asked, MOST_BYTES, MOST_DESCRIPTORS)
    return (json.loads(content) if content else {}), list(descriptors)


# -- in the process that forks ------------------------------------------------------------------------------------


def main() -> None:
    """Import everything, then fork a reader whenever one is asked for, and say how each has ended."""
    asked = socket.socket(fileno=int(sys.argv[1]))
    _import_all()
    gc.freeze()  # a collection in a reader would copy what all of them share
    running: dict[int, tuple[int, int]] = {}
    while True:
        ready, _, _ = select.select([asked, *running], [], [])
        for watched in running.keys() & set(ready):
            pid, ended = running.pop(watched)
            os.write(ended, str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])).encode())
            os.close(ended)
            os.close(watched)
        if asked in ready:
            document, descriptors = _receive(asked)
            if not document:
                return
            job, said, ended, *files = descriptors
            pid = os.fork()
            if pid == 0:
                _become_reader(document["child"], [job, said, *files], [0, 1, *document["files"]])
            watched = os.pidfd_open(pid)
            running[watched] = (pid, ended)
            _send(asked, {"pid": pid}, [watched])
            for each in (job, said, *files):
                os.close(each)


def _import_all() -> None:
    """What the readers would import themselves, before any of them knows its job."""
    from service.intake import child

    for name in (*CHILDREN, *child._FOR_ALL, *child._pandas(), *child._FOR_IMAGES, *child._FOR_TABLES):
        importlib.import_module(name)


def _become_reader(child: str, files: list[int], places: list[int]) -> NoReturn:
    """What `subprocess` and the interpreter do at the start of a process, then what `sandboxed` does."""
    from service.intake import sandbox, sandboxed

    try:
        os.setsid()
        beyond = max([*files, *places]) + 1
        high = [fcntl.fcntl(each, fcntl.F_DUPFD, beyond) for each in files]
        os.closerange(3, beyond)
        for each, place in zip(high, places, strict=True):
            os.dup2(each, place)
            os.close(each)
        finish = sandbox.finish
        sandbox.finish = lambda begun, _: finish(begun, os.getppid())  # the parent is this module, not who asked
        sys.argv[1:] = [child]
        sandboxed.main()
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
