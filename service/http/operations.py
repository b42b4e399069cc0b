"""What an operator watches, in `/metrics`: the queue, how releases end and how long they take, the parts, the pools.

Of all tenants together and without an id, a name or a tenant in any label. Read from the database when somebody asks, at
most once in `FRESH_SECONDS`: each API process gives the same numbers of the database, and its own of its pools.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from sqlalchemy import text

from service.base.errors import Unavailable
from service.platform.broker import seconds_since_beat
from service.platform.database import pool_state

if TYPE_CHECKING:
    from prometheus_client import Metric
    from sqlalchemy.orm import Session

    from service.platform.context import Context

FRESH_SECONDS = 5.0
ENDED_STATES = ("published", "failed", "voided")
FRACTIONS = (0.5, 0.9, 1.0)

QUEUE = text("SELECT waiting, running, oldest_waiting_seconds FROM queue_state()")
ENDED = text("""
SELECT state, count(*) AS number FROM releases
WHERE state IN ('published', 'failed', 'voided') AND updated_at > now() - interval '1 hour' GROUP BY state
""")
TIMES = text("""
SELECT percentile_disc(CAST(:fractions AS double precision[])) WITHIN GROUP (ORDER BY waiting) AS waiting,
       percentile_disc(CAST(:fractions AS double precision[])) WITHIN GROUP (ORDER BY running) AS running
FROM (SELECT extract(epoch FROM e.created_at - r.created_at) AS waiting,
             extract(epoch FROM r.updated_at - e.created_at) AS running
      FROM releases AS r JOIN ledger_entries AS e ON e.release_id = r.id AND e.kind = 'post'
      WHERE r.state IN ('published', 'failed', 'voided') AND r.updated_at > now() - interval '1 hour') AS ended
""")
"""A release waits until its charge is posted, and runs from then on."""


class Operations(Collector):
    """One process's view. `pools`: gauges of this process, by name, each with what it says and how it is read."""

    def __init__(self, context: Context, pools: dict[str, tuple[str, Callable[[], float]]]) -> None:
        self._context = context
        self._pools = pools
        self._lock = threading.Lock()
        self._known: list[Metric] = []
        self._fresh_until = 0.0

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked when this is registered."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All of it. Without a database: that there is none, and the pools."""
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._known = self._of_the_database()
                self._fresh_until = time.monotonic() + FRESH_SECONDS
            known = list(self._known)
        known += [GaugeMetricFamily(name, says, value=read()) for name, (says, read) in self._pools.items()]
        used, limit = pool_state(self._context.settings)
        connections = GaugeMetricFamily(
            "imprimatur_database_connections", "Connections of this process.", labels=["of"]
        )
        connections.add_metric(["in_use"], used)
        connections.add_metric(["limit"], limit)
        return [*known, connections]

    def _of_the_database(self) -> list[Metric]:
        up = GaugeMetricFamily("imprimatur_database_up", "1 where the database answers this process, else 0.")
        try:
            with self._context.snapshot() as session:
                found = [*_queue(session), *_ended(session), _beats(session)]
        except Unavailable:
            up.add_metric([], 0.0)
            return [up]
        up.add_metric([], 1.0)
        return [up, *found]


def install_operations(
    registry: CollectorRegistry, context: Context, pools: dict[str, tuple[str, Callable[[], float]]]
) -> None:
    """Register the metrics of the queue, the parts and this process's pools."""
    registry.register(Operations(context, pools))


def _queue(session: Session) -> list[Metric]:
    state = session.execute(QUEUE).one()
    return [
        GaugeMetricFamily("imprimatur_releases_waiting", "Releases that no worker holds yet.", value=state.waiting),
        GaugeMetricFamily("imprimatur_releases_running", "Releases that a worker holds.", value=state.running),
        GaugeMetricFamily(
            "imprimatur_oldest_waiting_seconds",
            "How long ago the oldest of those that wait was ordered; 0 where none waits.",
            value=state.oldest_waiting_seconds,
        ),
    ]


def _ended(session: Session) -> list[Metric]:
    counts = {row.state: row.number for row in session.execute(ENDED)}
    ended = GaugeMetricFamily(
        "imprimatur_releases_ended_last_hour", "Releases that ended within the last hour.", labels=["outcome"]
    )
    for outcome in ENDED_STATES:
        ended.add_metric([outcome], counts.get(outcome, 0))
    seconds = GaugeMetricFamily(
        "imprimatur_release_seconds_last_hour",
        "Of charged releases that ended within the last hour: how long they waited for a worker, and ran.",
        labels=["phase", "quantile"],
    )
    times = session.execute(TIMES, {"fractions": list(FRACTIONS)}).one()
    for phase, values in (("waiting", times.waiting), ("running", times.running)):
        for fraction, value in zip(FRACTIONS, values or (), strict=False):
            seconds.add_metric([phase, f"{fraction:g}"], float(value))
    return [ended, seconds]


def _beats(session: Session) -> Metric:
    ages = GaugeMetricFamily(
        "imprimatur_seconds_since_beat",
        "How long ago any relay, any worker last showed that it works; no line: never.",
        labels=["part"],
    )
    for part in ("relay", "worker"):
        if (age := seconds_since_beat(session, part)) is not None:
            ages.add_metric([part], age)
    return ages
