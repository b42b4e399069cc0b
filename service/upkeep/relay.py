"""The relay: it rings where a release waits for a worker, and shows that it lives.

Redis is never the truth, and a message says nothing but that there may be something to do: a worker claims the next
release from Postgres. Run as `python -m service.upkeep.relay`; several at once do no harm.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time

import redis
from celery import Celery
from kombu.exceptions import OperationalError
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from service.audit import repository as audit
from service.base.errors import ImprimaturError, InvalidInput, Unavailable
from service.datasets import staging
from service.ledger.log import sign_head
from service.platform.broker import BELL_TASK, QUEUE, beat, celery_sender
from service.platform.broker_address import broker_client, broker_url
from service.platform.context import look_at_storage, open_context
from service.platform.database import statement, transaction
from service.platform.reasons import broker_reason, is_not_set_up, tell
from service.platform.settings import Settings, get_settings
from service.upkeep.sweep import FIRST_SWEEP_SECONDS, STAGED_SECONDS, SWEEP_SECONDS, sweep

logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
BELLS = 16
"""Messages that lie in the broker at most. A worker that is woken claims until nothing waits; with more idle workers than
this, the next look rings again."""
TIDY_SECONDS = 600.0
HEAD_SECONDS = 5.0
"""So often the log of the ledger takes in new entries, and its head is signed if there were any; as often lines of the audit log get their places."""
TIDY = "DELETE FROM outbox WHERE created_at < now() - interval '1 day'"
"""API processes of the version before write messages there, which no process of this version sends."""


def ring(settings: Settings, sender: Celery, broker: redis.Redis) -> int:
    """Send as many messages as there are releases to claim, up to `BELLS`, less those that wait there unheard; how many were sent."""
    with statement(settings) as session:
        claimable = session.execute(text("SELECT queue_claimable(:most)"), {"most": BELLS}).scalar_one()
    missing = claimable - int(broker.llen(QUEUE)) if claimable else 0
    for _ in range(missing):
        sender.send_task(BELL_TASK)
    return max(0, missing)


class Relay:
    """One relay: what it last saw, and one round of work."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.sender = celery_sender(settings.redis_url)
        self.broker = broker_client(settings.redis_url)
        self.next_beat = self.next_tidying = 0.0

    def round(self) -> None:
        """Ring, beat. Raises what the broker or the database raise."""
        ring(self.settings, self.sender, self.broker)
        if time.monotonic() >= self.next_beat:
            self.broker.ping()  # a relay that could not ring says so in time
            with transaction(self.settings) as session:
                beat(session, "relay")
            self.next_beat = time.monotonic() + BEAT_SECONDS
        if time.monotonic() >= self.next_tidying:
            with transaction(self.settings) as session:
                session.execute(text(TIDY))
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
            tell("broker", broker_reason(error))
            logger.warning("the broker does not answer (%s); trying again", type(error).__name__)
            stop.wait(1.0)
        except DBAPIError as error:
            if not is_not_set_up(error):
                raise
            stop.wait(1.0)  # the log says why; once it is put right, this relay goes on


def main() -> None:
    """Run the relay until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        settings = get_settings()
        broker_url(settings.redis_url)
        look_at_storage(open_context())
    except (Unavailable, InvalidInput) as error:
        sys.exit(f"the relay cannot start: {error.detail}")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    for name, work in (
        ("sweep", _sweep_until),
        ("staged", _remove_staged_until),
        ("heads", _sign_heads_until),
        ("audit", _chain_audit_until),
    ):
        threading.Thread(target=work, args=(stop,), name=name, daemon=True).start()
    run(settings, stop)


def _sweep_until(stop: threading.Event) -> None:
    """The sweep shares the relay's process because one of each is enough; a fault of it must not stop the relay."""
    pause = FIRST_SWEEP_SECONDS  # soon after the start: a relay that is often restarted sweeps too
    while not stop.wait(pause):
        pause = SWEEP_SECONDS
        try:
            sweep(open_context())
        except ImprimaturError as error:
            logger.warning("the sweep was interrupted (%s); the next one continues", error.code)


def _remove_staged_until(stop: threading.Event) -> None:
    """Files that were not published within their hour. Not the sweep's work, which comes once an hour."""
    while not stop.wait(STAGED_SECONDS):
        try:
            staging.remove_expired(open_context())
        except Exception as error:  # noqa: BLE001 - as for heads
            logger.warning("no staged upload removed (%s); trying again", type(error).__name__)


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
