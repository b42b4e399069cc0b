"""Celery tasks: claim, run the training in a child process, beat while it lives. No mathematics, no private row."""

from __future__ import annotations

import logging
import os
import threading
import uuid
from typing import Any

from celery.signals import celeryd_after_setup, worker_ready, worker_shutting_down
from celery.utils.nodenames import worker_direct

from service.base.errors import Unavailable
from service.platform.context import Context, open_context
from service.platform.outbox import PING_TASK, TRAIN_TASK, beat, enqueue
from workers import lease as leases
from workers.app import celery
from workers.child import end_over_limits, run_child
from workers.lease import RETRY, Lease, LeaseLost
from workers.numerics.compiling import SharedLibrary
from workers.watch import Watch

logger = logging.getLogger(__name__)

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
    if lease is None:
        logger.info("release %s is not free; nothing to do", release_id)
        return
    logger.info("release %s claimed with token %d", release_id, lease.token)
    with watch.busy():
        ended = run_child(context, lease, stopping, library.for_a_child())
        if ended.status != 0:
            logger.warning("release %s: its process ended with status %d", release_id, ended.status)
        if ended.over_limits:
            end_over_limits(context, lease)
        elif ended.status != 0:
            # Of a cancelled one the next claim settles the charge: its new token fences off whatever the killed one still sends.
            hand_over(context, lease, spent=not (ended.status == RETRY or ended.cancelled or stopping.is_set()))


def claim(context: Context, release_id: uuid.UUID) -> Lease | None:
    """The claim, or None where there is nothing to do for this worker."""
    settings = context.settings
    with context.transaction() as session:
        if stopping.is_set():
            # This message is acknowledged already; write another one, for another worker.
            enqueue(session, TRAIN_TASK, release_id)
            return None
        return leases.claim(
            session, release_id, lease_seconds=settings.lease_seconds, max_attempts=settings.max_attempts
        )


def hand_over(context: Context, lease: Lease, *, spent: bool) -> None:
    """Give the claim back so that another attempt begins within seconds; an ended release needs nothing."""
    try:
        with context.transaction() as session:
            leases.give_back(session, lease, spent=spent)
    except LeaseLost:
        logger.info("release %s has ended or has moved on", lease.release_id)
    except Unavailable:
        logger.warning("release %s: the database does not answer; its lease will lapse", lease.release_id)
