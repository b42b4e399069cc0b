"""The relay: outbox rows in Postgres become Celery messages; expired leases are put back; everything beats.

Redis is never the truth. A message is sent after the transaction that wrote its row, at least once; the worker's
claim makes a second delivery harmless. Run as `python -m service.outbox`.
"""

from __future__ import annotations

import datetime as dt
import logging
import signal
import threading
import time
import uuid

import redis
from celery import Celery
from kombu.exceptions import OperationalError
from sqlalchemy import BigInteger, DateTime, Identity, Text, delete, func, insert, select, text, update
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.db import Base, transaction
from service.errors import Unavailable
from service.settings import Settings, get_settings

logger = logging.getLogger(__name__)

TRAIN_TASK = "imprimatur.train"
PING_TASK = "imprimatur.ping"
QUEUE = "imprimatur"
PING_SECONDS = 5.0
BEAT_SECONDS = 1.0
BROKER_MARKER = "imprimatur:relay"
"""Set once in the broker; when it is gone, so is everything the broker held."""
BATCH = 100
TIDY_SECONDS = 600.0
KEEP_SENT = dt.timedelta(days=1)
"""Sent messages are kept this long for whoever wants to know what happened."""


class OutboxRow(Base):
    """One message to be sent, written in the transaction that makes it true."""

    __tablename__ = "outbox"

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    task: Mapped[str] = mapped_column(Text)
    release_id: Mapped[uuid.UUID]
    created_at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))
    sent_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))


class Heartbeat(Base):
    """When a part of the house last showed that it works."""

    __tablename__ = "heartbeats"

    part: Mapped[str] = mapped_column(Text, primary_key=True)
    beat_at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))


def celery_sender(redis_url: str) -> Celery:
    """A Celery application that only sends: tasks are known by name, workers are never imported."""
    app = Celery("imprimatur", broker=redis_url)
    app.conf.update(
        task_default_queue=QUEUE,
        task_ignore_result=True,
        broker_connection_retry_on_startup=True,
        broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 5},
        task_publish_retry_policy={"max_retries": 1, "interval_start": 0.1},
    )
    return app


def enqueue(session: Session, task: str, release_id: uuid.UUID) -> None:
    """Write a message into the caller's transaction."""
    session.execute(insert(OutboxRow).values(task=task, release_id=release_id))


def beat(session: Session, part: str) -> None:
    """Say that a part is alive, now."""
    now = func.now()
    session.execute(
        upsert(Heartbeat)
        .values(part=part, beat_at=now)
        .on_conflict_do_update(index_elements=["part"], set_={"beat_at": now})
    )


def seconds_since_beat(session: Session, part: str) -> float | None:
    """Age of a part's last beat by the database's clock; None when it never beat."""
    age = session.execute(
        select(func.extract("epoch", func.clock_timestamp() - Heartbeat.beat_at)).where(Heartbeat.part == part)
    ).scalar_one_or_none()
    return None if age is None else float(age)


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
                ORDER BY enqueued_at LIMIT 1000 FOR UPDATE SKIP LOCKED
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
        self.next_beat = self.next_ping = self.next_tidying = 0.0

    def round(self) -> None:
        """Requeue, relay, beat. Raises what the broker or the database raise."""
        broker_forgot = bool(self.broker.set(BROKER_MARKER, 1, nx=True))
        with transaction(self.settings) as session:
            requeue_stale(session, lease_seconds=self.settings.lease_seconds, everything=broker_forgot)
            sent = relay_once(session, self.sender)
        if sent:
            logger.info("relayed %d messages", sent)
        if time.monotonic() >= self.next_beat:
            self._beat()
            self.next_beat = time.monotonic() + BEAT_SECONDS
        if time.monotonic() >= self.next_tidying:
            with transaction(self.settings) as session:
                session.execute(delete(OutboxRow).where(OutboxRow.sent_at < func.now() - KEEP_SENT))
            self.next_tidying = time.monotonic() + TIDY_SECONDS

    def _beat(self) -> None:
        with transaction(self.settings) as session:
            beat(session, "relay")
            worker_age = seconds_since_beat(session, "worker")
        quiet = worker_age is None or worker_age > PING_SECONDS
        if quiet and time.monotonic() >= self.next_ping:
            # Only a worker that consumes can answer: it beats when the ping reaches it.
            self.sender.send_task(PING_TASK, expires=PING_SECONDS)
            self.next_ping = time.monotonic() + PING_SECONDS


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
    run(get_settings(), stop)


if __name__ == "__main__":
    main()
