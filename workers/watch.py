"""Does this worker consume? It sends itself a message through the broker, and ends itself when none comes back.

Celery's consumers have lost Redis for ever in many of their versions: the process lives, answers, and consumes nothing.
No probe from outside tells such a worker from an idle one. The supervisor that keeps workers alive starts an ended one again.
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

from service.platform.broker import PING_TASK

logger = logging.getLogger(__name__)

PING_SECONDS = 5.0
UNHEARD_PINGS = 5
"""So many in a row may come to nothing while the broker takes them: 25 seconds in which nothing was trained. A worker that
has just lost its broker reconnects within a few."""
EX_UNAVAILABLE = 69


class Watch:
    """One worker's watch over itself: what it asked, and what came back."""

    def __init__(self, app: Celery) -> None:
        self.queue: Queue | None = None
        self._app = app
        self._unheard = 0
        self._busy = False

    def start(self) -> None:
        """Watch from a thread of its own: the threads that might be stuck are the ones being watched."""
        threading.Thread(target=self._run, name="watch", daemon=True).start()

    def heard(self) -> None:
        """A ping came through."""
        self._unheard = 0

    @contextmanager
    def busy(self) -> Iterator[None]:
        """While a training runs, nothing is consumed, and nothing need be. What was unheard before it still is."""
        self._busy = True
        try:
            yield
        finally:
            self._busy = False

    def _run(self) -> None:
        while True:
            if not self._busy:
                self._ask()
            time.sleep(PING_SECONDS)

    def _ask(self) -> None:
        self._unheard += 1
        try:
            self._app.send_task(PING_TASK, queue=self.queue)
        except (OperationalError, OSError):
            self._unheard = 0  # without a broker no worker can consume
            return
        if self._unheard > UNHEARD_PINGS and not self._busy:
            logger.error("this worker consumes nothing although the broker answers; it ends, to be started again")
            os._exit(EX_UNAVAILABLE)
