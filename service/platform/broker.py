"""What goes through the broker, and signs of life as rows of Postgres.

The broker is a doorbell: a message says that there may be something to do, never what. Postgres says what. So a message
that is lost, comes twice, or was put there by a stranger can do no more than wake a worker, or let it sleep on until it
looks by itself.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from sqlalchemy import DateTime, Text, func, select
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Mapped, Session, mapped_column

from service.base.lazy import lazy
from service.platform.broker_address import broker_url
from service.platform.database import Base

if TYPE_CHECKING:
    import celery
else:
    celery = lazy("celery")

BELL_TASK = "imprimatur.bell"
PING_TASK = "imprimatur.ping"
OLD_TRAIN_TASK = "imprimatur.train"
"""The message of the version before, with a release's id in it; to a worker of this version it is a bell."""
QUEUE = "imprimatur"


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
        task_serializer="json",
        accept_content=["json"],
        broker_connection_retry_on_startup=True,
        broker_transport_options={"socket_timeout": 5, "socket_connect_timeout": 5},
        task_publish_retry_policy={"max_retries": 1, "interval_start": 0.1},
    )
    return app


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
