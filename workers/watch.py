"""Does this worker consume? It sends itself a message through the broker, and ends itself when none comes back.

Celery's consumers have lost Redis for ever in many of their versions: the process lives, answers, and consumes nothing.
No probe from outside tells such a worker from an idle one. Whoever keeps workers alive starts an ended one again.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from celery import Celery
from kombu import Queue
from kombu.exceptions import OperationalError

from service.platform.outbox import PING_TASK

logger = logging.getLogger(__name__)

PING_SECONDS = 5.0
SILENCE_SECONDS = 25.0
"""With the broker answering all the while. A worker that has just lost its broker reconnects within a few seconds."""
EX_UNAVAILABLE = 69


class Watch:
    """One worker's watch over itself: what it asked, and what came back."""

    def __init__(self, app: Celery) -> None:
        self.queue: Queue | None = None
        self._app = app
        self._asked_at: float | None = None
        self._busy = False

    def start(self) -> None:
        """Watch from a thread of its own: the threads that might be stuck are the ones being watched."""
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def heard(self) -> None:
        """A ping came through."""
        self._asked_at = None

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a training runs, nothing is consumed, and nothing need be."""
        self._busy = True
        try:
            yield
        finally:
            self._busy, self._asked_at = False, None

    def _run(self) -> None:
        while True:
            if not self._busy:
                self._ask()
            time.sleep(PING_SECONDS)

    def _ask(self) -> None:
        try:
            self._app.send_task(PING_TASK, queue=self.queue, expires=PING_SECONDS)
        except (OperationalError, OSError):
            self._asked_at = None  # without a broker nobody can consume
            return
        now = time.monotonic()
        asked_at = self._asked_at
        if asked_at is None:
            self._asked_at = now
        elif now - asked_at > SILENCE_SECONDS and not self._busy:
            logger.error("this worker consumes nothing although the broker answers; it ends, to be started again")
            os._exit(EX_UNAVAILABLE)
