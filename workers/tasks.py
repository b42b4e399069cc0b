"""Celery tasks: claim, run the training in a child process, beat while it lives. No mathematics, no private row."""

from __future__ import annotations

import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from typing import Any

from celery.signals import celeryd_after_setup, worker_ready, worker_shutting_down
from celery.utils.nodenames import worker_direct

from service.base.errors import Unavailable, WrongSecretKey
from service.platform.context import Context, open_context
from service.platform.outbox import PING_TASK, TRAIN_TASK, beat, enqueue
from service.platform.secret_roots import require_right
from workers import lease as leases
from workers.app import celery
from workers.lease import RETRY, Lease, LeaseLost
from workers.numerics.compiling import SharedLibrary
from workers.watch import Watch

logger = logging.getLogger(__name__)

STOP_SECONDS = 10.0
POLL_SECONDS = 0.2

stopping = threading.Event()
watch = Watch(celery)
library = SharedLibrary()


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def on_setup(sender: str, instance: Any, **_: object) -> None:
    """A queue of this worker alone. Two workers on one machine may have one name, but not one process id."""
    watch.queue = worker_direct(f"{sender}.{os.getpid()}")
    instance.app.amqp.queues.select_add(watch.queue)


@worker_ready.connect  # type: ignore[untyped-decorator]
def on_ready(**_: object) -> None:
    watch.start()
    library.compile()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def on_shutting_down(**_: object) -> None:
    """Celery would wait for the training to end by itself; we hand it over."""
    stopping.set()


@celery.task(name=PING_TASK)  # type: ignore[untyped-decorator]
def ping() -> None:
    """This worker consumes; a beat in Postgres tells everybody else."""
    watch.heard()
    try:
        with open_context().transaction() as session:
            beat(session, "worker")
    except Unavailable:
        logger.warning("no heartbeat, the database does not answer")


@celery.task(name=TRAIN_TASK)  # type: ignore[untyped-decorator]
def train(release_id: str) -> None:
    """Run one release, if nobody else does."""
    context = open_context()
    try:
        lease = claim(context, uuid.UUID(release_id))
    except Unavailable:
        logger.warning("release %s: no claim, the database does not answer; the relay sends it again", release_id)
        return
    except WrongSecretKey as error:
        logger.error("release %s: not claimed. %s", release_id, error.detail)  # noqa: TRY400 - no fault of this code
        return
    if lease is None:
        logger.info("release %s is not free; nothing to do", release_id)
        return
    logger.info("release %s claimed with token %d", release_id, lease.token)
    with watch.busy():
        exit_status = run_child(context, lease)
        if exit_status != 0:
            logger.warning("release %s: its process ended with status %d", release_id, exit_status)
            hand_over(context, lease, spent=exit_status != RETRY and not stopping.is_set())


def claim(context: Context, release_id: uuid.UUID) -> Lease | None:
    """The claim, or None where there is nothing to do for this worker."""
    settings = context.settings
    with context.transaction() as session:
        require_right(session, context.secrets)
        if stopping.is_set():
            # This message is acknowledged already; write another one, for another worker.
            enqueue(session, TRAIN_TASK, release_id)
            return None
        return leases.claim(
            session, release_id, lease_seconds=settings.lease_seconds, max_attempts=settings.max_attempts
        )


def run_child(context: Context, lease: Lease) -> int:
    """Train in a process of its own, so that a crash or a lack of memory there cannot take the worker along."""
    command = [sys.executable, "-m", "workers.run", str(lease.release_id), str(lease.token)]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **library.for_a_child())  # noqa: S603 - our own module
    next_beat, deadline, told = 0.0, math.inf, False
    try:
        while (status := child.poll()) is None:
            now = time.monotonic()
            if now >= next_beat:
                next_beat = now + context.settings.heartbeat_seconds
                if not _beat(context, lease):
                    # Lost, or just published: what the child still writes is fenced off, so it may end by itself.
                    next_beat, deadline = math.inf, min(deadline, now + STOP_SECONDS)
            if stopping.is_set() and not told:
                child.send_signal(signal.SIGTERM)
                told, deadline = True, min(deadline, now + STOP_SECONDS)
            if now > deadline:
                child.kill()
            time.sleep(POLL_SECONDS)
        return status
    finally:
        child.kill()
        child.wait()


def hand_over(context: Context, lease: Lease, *, spent: bool) -> None:
    """Give the claim back so that another attempt begins within seconds; an ended release needs nothing."""
    try:
        with context.transaction() as session:
            leases.give_back(session, lease, spent=spent)
    except LeaseLost:
        logger.info("release %s has ended or has moved on", lease.release_id)
    except Unavailable:
        logger.warning("release %s: the database does not answer; its lease will lapse", lease.release_id)


def _beat(context: Context, lease: Lease) -> bool:
    """Renew the claim; False once it is lost. A silent database is no reason to stop before the lease lapses."""
    try:
        with context.transaction() as session:
            leases.renew(session, lease, lease_seconds=context.settings.lease_seconds)
            beat(session, "worker")
    except LeaseLost:
        return False
    except Unavailable:
        logger.warning("release %s: no heartbeat, the database does not answer", lease.release_id)
    return True
