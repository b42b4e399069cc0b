"""Kills its own process at a named point. Python imports this at its start where the folder is on PYTHONPATH.

The service knows nothing of it: functions are wrapped when their module is imported, and only where IMPRIMATUR_FAULTS
names a folder. A file `armed` in there, `POINT[@N] process|group|freeze`, says where the next process that gets there (for
its N-th time) dies by SIGKILL, alone or with its whole process group, as with a machine; or where the group is frozen by
SIGSTOP. It is renamed to `fired` first; of a frozen group it then holds the number.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import os
import signal
import sys
from collections import Counter
from pathlib import Path

FOLDER = os.environ.get("IMPRIMATUR_FAULTS")
BELL = "imprimatur.bell"
CHECKPOINT_EVERY_STEPS = 5
_seen = Counter()


def reached(point):
    """Die here, if this is the armed point."""
    armed, fired = (Path(FOLDER) / name for name in ("armed", "fired"))
    try:
        wanted, scope = armed.read_text().split()
        since = armed.stat().st_mtime_ns
    except (FileNotFoundError, ValueError):
        return
    name, _, count = wanted.partition("@")
    if name != point:
        return
    _seen[since] += 1
    if _seen[since] != int(count or 1):
        return
    try:
        armed.rename(fired)
    except FileNotFoundError:
        return
    os.utime(fired)
    if scope == "freeze":
        fired.write_text(str(os.getpgid(0)))
        os.killpg(os.getpgid(0), signal.SIGSTOP)
        return
    if scope == "group":
        os.killpg(os.getpgid(0), signal.SIGKILL)
    os.kill(os.getpid(), signal.SIGKILL)


def in_transaction(point):
    """For functions whose first argument is the session: before the call, before the commit, after the commit."""

    def wrap(function):
        @functools.wraps(function)
        def wrapped(session, *arguments, **options):
            from sqlalchemy import event

            reached(f"{point}.before")
            result = function(session, *arguments, **options)
            reached(f"{point}.uncommitted")
            event.listen(session, "after_commit", lambda _: reached(f"{point}.committed"), once=True)
            return result

        return wrapped

    return wrap


def around(before, after=None, *, when=lambda *_: True):
    """Before and after the call, where `when` says of its arguments that it is meant."""

    def wrap(function):
        @functools.wraps(function)
        def wrapped(*arguments, **options):
            meant = when(*arguments)
            if meant:
                reached(before)
            result = function(*arguments, **options)
            if meant and after is not None:
                reached(after)
            return result

        return wrapped

    return wrap


def placed(function):
    """The one statement that reserves and records, with time between its work and its commit."""

    @functools.wraps(function)
    def wrapped(connection, **values):
        with connection.transaction():
            result = function(connection, **values)
            reached("reserve.uncommitted")
        reached("reserve.committed")
        return result

    return wrapped


def rung(function):
    """The relay: before the broker has the message, and after."""

    @functools.wraps(function)
    def wrapped(self, name, *arguments, **options):
        if name != BELL:
            return function(self, name, *arguments, **options)
        reached("relay.before")
        result = function(self, name, *arguments, **options)
        reached("relay.sent")
        return result

    return wrapped


def received(function):
    """A message has become a request: its name is known afterwards only."""

    @functools.wraps(function)
    def wrapped(self, *arguments, **options):
        function(self, *arguments, **options)
        if self.name == BELL:
            reached("delivery.received")

    return wrapped


def claimed(function):
    """The next claim, where there is something to claim: before the database is asked, and after it has answered."""

    @functools.wraps(function)
    def wrapped(settings):
        if (Path(FOLDER) / "armed").exists() and _something_waits(settings):
            reached("claim.before")
        lease = function(settings)
        if lease is not None:
            reached("claim.committed")
        return lease

    return wrapped


def _something_waits(settings):
    from sqlalchemy import text

    from service.platform.database import statement

    # The worker's role may not ask the function that the relay asks.
    query = """
        SELECT EXISTS (SELECT FROM releases WHERE state IN ('reserved', 'charged')
                       AND (lease_expires_at IS NULL OR lease_expires_at < clock_timestamp()))
    """
    with statement(settings) as session:
        return session.execute(text(query)).scalar_one()


def deaf(function):
    """A worker whose process id stands in the file `deaf` asks its broker for nothing any more, and lives on."""

    @functools.wraps(function)
    def wrapped(self, *arguments, **options):
        try:
            if (Path(FOLDER) / "deaf").read_text() == str(os.getpid()):
                return None
        except FileNotFoundError:
            pass
        return function(self, *arguments, **options)

    return wrapped


def _with_visibility_timeout(function):
    """The broker's own redelivery, in seconds instead of an hour."""

    @functools.wraps(function)
    def wrapped(redis_url):
        app = function(redis_url)
        seconds = os.environ.get("IMPRIMATUR_FAULTS_VISIBILITY_SECONDS")
        if seconds is not None:
            app.conf.broker_transport_options = {
                **app.conf.broker_transport_options,
                "visibility_timeout": int(seconds),
            }
        return app

    return wrapped


def _about(prefix):
    return lambda _storage, given, *_: given.startswith(prefix)


def _is_bell(request, *_):
    return request.name == BELL


WRAPPERS = {
    "service.releases.service": {"order_release": around("reserve.before")},
    "service.releases.repository": {"place": placed},
    "service.platform.broker": {"celery_sender": _with_visibility_timeout},
    "celery.app.base": {"Celery.send_task": rung},
    "kombu.transport.redis": {"Channel._brpop_start": deaf},
    "celery.worker.request": {
        "Request.__init__": received,
        "Request.acknowledge": around("acknowledge.before", "acknowledge.after", when=_is_bell),
    },
    "workers.lease": {
        "claim_next": claimed,
        "charge": in_transaction("charge"),
        "record_checkpoint": in_transaction("checkpoint.record"),
        "publish": in_transaction("publish"),
    },
    "workers.plan": {
        "Plan.take_gaussian": around("label_counts.before"),
        "Plan.take_sampled_step": around("step.before"),
    },
    "service.platform.storage": {
        "Storage.put_content": lambda function: around(
            "checkpoint.before", "checkpoint.written", when=_about("checkpoints")
        )(around("bundle.before", "bundle.written", when=_about("bundles"))(function))
    },
    "workers.hooks": {
        # A run of twelve steps, so that it takes a moment, has two checkpoints after the one of its counts.
        "Hooks": lambda hooks: functools.partial(hooks, checkpoint_every_steps=CHECKPOINT_EVERY_STEPS)
    },
    "workers.tasks": {"run_child": around("child.before", "child.ended")},
}


class _Wrapping(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname, path=None, target=None):
        if fullname not in WRAPPERS:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            for place, wrap in WRAPPERS[fullname].items():
                *owners, name = place.split(".")
                owner = functools.reduce(getattr, owners, module)
                setattr(owner, name, wrap(getattr(owner, name)))

        spec.loader.exec_module = exec_module
        return spec


def _limit_memory():
    """Training processes may have their address space limited: a lack of memory that is real, and theirs alone."""
    limit = os.environ.get("IMPRIMATUR_FAULTS_CHILD_BYTES")
    if limit is not None and "workers.run" in sys.orig_argv:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (int(limit), int(limit)))


if FOLDER is not None:
    _limit_memory()
    sys.meta_path.insert(0, _Wrapping())
