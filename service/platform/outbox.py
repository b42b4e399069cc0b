"""Messages to workers and signs of life, as rows of Postgres; `service/upkeep/relay.py` carries them to the broker.

A message is written in the transaction that makes it true, so there is never one without the other.
"""

from __future__ import annotations

import datetime as dt
import uuid
from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, DateTime, Identity, Text, func, insert, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.base.lazy import lazy
from service.platform.broker import broker_url
from service.platform.database import Base

if TYPE_CHECKING:
    import celery
else:
    celery = lazy("celery")

TRAIN_TASK = "imprimatur.train"
PING_TASK = "imprimatur.ping"
QUEUE = "imprimatur"


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


def celery_sender(redis_url: str) -> celery.Celery:
    """A Celery application that only sends: tasks are known by name, workers are never imported."""
    app = celery.Celery("imprimatur", broker=broker_url(redis_url))
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
