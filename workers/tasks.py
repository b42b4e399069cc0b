"""Celery tasks: woken, claim, run the training in a child process, beat while it lives. No mathematics, no private row."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

from celery.signals import celeryd_after_setup, worker_ready, worker_shutdown, worker_shutting_down
from celery.utils.nodenames import worker_direct
from sqlalchemy.exc import DBAPIError

from service.base.errors import ImprimaturError, Unavailable, WrongSecretKey
from service.platform.broker import BELL_TASK, OLD_TRAIN_TASK, PING_TASK, beat
from service.platform.context import Context, look_at_storage, open_context
from service.platform.reasons import Reason, is_not_set_up, tell
from service.platform.secret_roots import require_right
from workers import lease as leases
from workers.app import celery
from workers.child import end_over_limits, run_child
from workers.doorbell import Doorbell, forget_other_tasks
from workers.lease import RETRY, Lease, LeaseLost
from workers.numerics.compiling import SharedLibrary
from workers.reports.background import Reports
from workers.watch import Watch

logger = logging.getLogger(__name__)

LOOK_SECONDS = 3.0
"""A worker that hears no bell looks for itself so often: without a broker, orders begin later by this."""

stopping = threading.Event()
working = threading.Lock()
"""Held for as long as this worker claims and trains: one release at a time."""
watch = Watch(celery)
library = SharedLibrary()
reports = Reports(stopping)


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def on_setup(sender: str, instance: Any, **_: object) -> None:
    """A queue of this worker alone. Two workers on one machine may have one name, but not one process id."""
    watch.queue = worker_direct(f"{sender}.{os.getpid()}")
    instance.app.amqp.queues.select_add(watch.queue)
    forget_other_tasks(instance.app)
    threading.Thread(target=_say_what_is_missing, name="start", daemon=True).start()


def _say_what_is_missing() -> None:
    """At the start, whether or not there is a broker: what this worker will not be able to reach, and why."""
    try:
        context = open_context()
        look_at_storage(context)
        if may_claim(context):
            reports.look(context)  # what a worker that was stopped has left
    except ImprimaturError as error:
        tell("worker", Reason(error.code, error.detail))


@worker_ready.connect  # type: ignore[untyped-decorator]
def on_ready(**_: object) -> None:
    watch.start()
    looks.start()
    library.compile()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def on_shutting_down(**_: object) -> None:
    """Celery would wait for the training to end by itself; we hand it over."""
    stopping.set()


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def on_shutdown(**_: object) -> None:
    """Celery waits for its own threads; a training that began without a bell is handed over in ours."""
    stopping.set()
    if looks.is_alive():
        looks.join()


@celery.task(name=PING_TASK, base=Doorbell)  # type: ignore[untyped-decorator]
def ping() -> None:
    """This worker consumes; a beat in Postgres tells everybody else."""
    watch.heard()
    try:
        with open_context().transaction() as session:
            beat(session, "worker")
    except Unavailable:
        logger.warning("no heartbeat, the database does not answer")


@celery.task(name=BELL_TASK, base=Doorbell)  # type: ignore[untyped-decorator]
def bell() -> None:
    """Something may wait. Returns when nothing does: meanwhile this worker hears no other bell, and leaves it to others."""
    look()


@celery.task(name=OLD_TRAIN_TASK, base=Doorbell)  # type: ignore[untyped-decorator]
def old_bell() -> None:
    """A relay of the version before rings with the id of a release; which one is next is for the database to say."""
    look()


def look() -> None:
    """Claim and train, one release after the other, until none waits."""
    context = open_context()
    with working, watch.busy():
        while (lease := claim(context)) is not None:
            train(context, lease)
            reports.look(context)


def claim(context: Context) -> Lease | None:
    """The next release; None where there is none for this worker. One that is told to stop claims nothing."""
    if stopping.is_set() or not may_claim(context):
        return None
    try:
        return leases.claim_next(context.settings)
    except Unavailable:
        logger.warning("no release claimed: the database does not answer; this worker tries again")
        return None


def may_claim(context: Context) -> bool:
    """Whether this worker's database and key are there and the right ones; the log says why not."""
    try:
        with context.statement() as session:
            require_right(session, context.secrets)
    except Unavailable:
        logger.warning("no release claimed: the database does not answer; this worker tries again")
        return False
    except WrongSecretKey as error:
        logger.error("no claim. %s", error.detail)  # noqa: TRY400 - no fault of this code
        return False
    except DBAPIError as error:
        if not is_not_set_up(error):
            raise
        return False
    return True


def train(context: Context, lease: Lease) -> None:
    """One attempt at a release, from its claim to its end or to the next worker's turn."""
    logger.info("release %s claimed with token %d", lease.release_id, lease.token)
    ended = run_child(context, lease, stopping, library.for_a_child())
    if ended.status != 0:
        logger.warning("release %s: its process ended with status %d", lease.release_id, ended.status)
    if ended.over_limits:
        end_over_limits(context, lease)
    elif ended.status != 0:
        # Of a cancelled one the next claim settles the charge: its new token fences off whatever the killed one still sends.
        hand_over(context, lease, spent=not (ended.status == RETRY or ended.cancelled or stopping.is_set()))


def _look_now_and_then() -> None:
    while not stopping.wait(LOOK_SECONDS):
        try:
            look()
        except ImprimaturError as error:
            tell("worker", Reason(error.code, error.detail))
        except Exception as error:  # noqa: BLE001 - without this thread, a worker would depend on the broker
            logger.error("looking for releases failed with %s; this worker tries again", type(error).__name__)  # noqa: TRY400 - a message may quote anything


looks = threading.Thread(target=_look_now_and_then, name="looks", daemon=True)


def hand_over(context: Context, lease: Lease, *, spent: bool) -> None:
    """Give the claim back so that another attempt begins within seconds; an ended release needs nothing."""
    try:
        with context.transaction() as session:
            leases.give_back(session, lease, spent=spent)
    except LeaseLost:
        logger.info("release %s has ended or has moved on", lease.release_id)
    except Unavailable:
        logger.warning("release %s: the database does not answer; its lease will lapse", lease.release_id)
