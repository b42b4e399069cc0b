"""The relay: outbox rows become Celery messages, what nobody holds is sent again, and parts show that they live.

Redis is never the truth. A message is sent after the transaction that wrote its row, at least once; the worker's
claim makes a second delivery harmless. Run as `python -m service.upkeep.relay`; several at once do no harm.
"""

from __future__ import annotations

import datetime as dt
import logging
import signal
import threading
import time

import redis
from celery import Celery
from kombu.exceptions import OperationalError
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.orm import Session

from service.audit import repository as audit
from service.base.errors import ImprimaturError, Unavailable
from service.ledger.log import sign_head
from service.platform.context import open_context
from service.platform.database import transaction
from service.platform.outbox import TRAIN_TASK, OutboxRow, beat, celery_sender
from service.platform.settings import Settings, get_settings
from service.upkeep.sweep import FIRST_SWEEP_SECONDS, SWEEP_SECONDS, sweep

logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
BROKER_MARKER = "imprimatur:relay"
"""Set once in the broker; when it is gone, so is everything the broker held."""
BATCH = 100
TIDY_SECONDS = 600.0
HEAD_SECONDS = 5.0
"""So often the log of the ledger takes in new entries, and its head is signed if there were any; as often lines of the audit log get their places."""
KEEP_SENT = dt.timedelta(days=1)
"""Sent messages are kept this long for whoever wants to know what happened."""


def relay_once(session: Session, sender: Celery) -> int:
    """Send the oldest unsent messages; a row is marked sent only if the broker took it."""
    rows = session.scalars(
        select(OutboxRow)
        .where(OutboxRow.sent_at.is_(None))
        .order_by(OutboxRow.id)
        .limit(BATCH)
        .with_for_update(skip_locked=True)
    ).all()
    for row in rows:
        sender.send_task(row.task, args=[str(row.release_id)])
        session.execute(update(OutboxRow).where(OutboxRow.id == row.id).values(sent_at=func.now()))
    return len(rows)


def requeue_stale(session: Session, *, lease_seconds: float, everything: bool = False) -> int:
    """Send again what nobody holds: releases whose worker stopped beating, and messages that may be lost.

    An unclaimed release is sent again after one lease, then two, four … up to 64, so a long queue does not fill the
    broker; with `everything` (the broker lost its memory) all unclaimed ones go at once.
    """
    result = session.execute(
        text(
            """
            WITH stale AS (
                SELECT id FROM releases
                WHERE state IN ('reserved', 'charged')
                  AND CASE WHEN lease_expires_at IS NOT NULL THEN lease_expires_at < now()
                      ELSE :everything OR enqueued_at
                           + make_interval(secs => :lease_seconds * power(2, least(sends - 1, 6))) < now() END
                ORDER BY enqueued_at LIMIT CASE WHEN :everything THEN NULL ELSE 1000 END FOR UPDATE SKIP LOCKED
            ), marked AS (
                UPDATE releases r SET lease_expires_at = NULL, enqueued_at = now(),
                       sends = CASE WHEN r.lease_expires_at IS NULL THEN r.sends + 1 ELSE 1 END
                FROM stale WHERE r.id = stale.id RETURNING r.id
            )
            INSERT INTO outbox (task, release_id) SELECT :task, id FROM marked
            """
        ),
        {"task": TRAIN_TASK, "lease_seconds": lease_seconds, "everything": everything},
    )
    return int(result.rowcount)  # type: ignore[attr-defined]


class Relay:
    """One relay: what it last saw, and one round of work."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sender = celery_sender(settings.redis_url)
        self.broker = redis.Redis.from_url(settings.redis_url, socket_timeout=5, socket_connect_timeout=5)
        self.broker_forgot = False
        self.next_beat = self.next_tidying = 0.0

    def round(self) -> None:
        """Requeue, relay, beat. Raises what the broker or the database raise."""
        # Remembered until it is dealt with: the database may be away just when the broker comes back empty.
        self.broker_forgot |= bool(self.broker.set(BROKER_MARKER, 1, nx=True))
        with transaction(self.settings) as session:
            requeue_stale(session, lease_seconds=self.settings.lease_seconds, everything=self.broker_forgot)
            sent = relay_once(session, self.sender)
        self.broker_forgot = False
        if sent:
            logger.info("relayed %d messages", sent)
        if time.monotonic() >= self.next_beat:
            with transaction(self.settings) as session:
                beat(session, "relay")
            self.next_beat = time.monotonic() + BEAT_SECONDS
        if time.monotonic() >= self.next_tidying:
            with transaction(self.settings) as session:
                session.execute(delete(OutboxRow).where(OutboxRow.sent_at < func.now() - KEEP_SENT))
            self.next_tidying = time.monotonic() + TIDY_SECONDS


def run(settings: Settings, stop: threading.Event) -> None:
    """Relay until told to stop. A broker or database that does not answer is tried again, for ever."""
    relay = Relay(settings)
    while not stop.wait(settings.relay_seconds):
        try:
            relay.round()
        except Unavailable:
            logger.warning("the database does not answer; trying again")
            stop.wait(1.0)
        except (redis.RedisError, OperationalError, OSError) as error:
            logger.warning("the broker does not answer (%s); trying again", type(error).__name__)
            stop.wait(1.0)


def main() -> None:
    """Run the relay until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    for name, work in (("sweep", _sweep_until), ("heads", _sign_heads_until), ("audit", _chain_audit_until)):
        threading.Thread(target=work, args=(stop,), name=name, daemon=True).start()
    run(get_settings(), stop)


def _sweep_until(stop: threading.Event) -> None:
    """The sweep shares the relay's process because one of each is enough; a fault of it must not stop the relay."""
    pause = FIRST_SWEEP_SECONDS  # soon after the start: a relay that is often restarted sweeps too
    while not stop.wait(pause):
        pause = SWEEP_SECONDS
        try:
            sweep(open_context())
        except ImprimaturError as error:
            logger.warning("the sweep was broken off (%s); the next one goes on", error.code)


def _sign_heads_until(stop: threading.Event) -> None:
    """Apart from the rounds, which must not wait for it. Messages are relayed without a signing key, too."""
    pause = 0.0
    while not stop.wait(pause):
        pause = HEAD_SECONDS
        try:
            sign_head(open_context())
        except Exception as error:  # noqa: BLE001 - without this thread no head is signed until the relay is restarted
            logger.warning("no tree head signed (%s); trying again", type(error).__name__)


def _chain_audit_until(stop: threading.Event) -> None:
    """Lines of the audit log get their places after they are committed; no request waits for it."""
    pause = 0.0
    while not stop.wait(pause):
        pause = HEAD_SECONDS
        try:
            with open_context().transaction() as session:
                audit.integrate(session)
        except Exception as error:  # noqa: BLE001 - as for heads
            logger.warning("no line of the audit log got its place (%s); trying again", type(error).__name__)


if __name__ == "__main__":
    main()
