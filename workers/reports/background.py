"""Reports for owners are made beside what this worker does next, one after the other, and no release waits for one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING

from sqlalchemy import text

from service.base.errors import ImprimaturError
from service.datasets import owner_reports
from workers.child import POLL_SECONDS, kill_tree, limits_of, memory_of_tree

if TYPE_CHECKING:
    from service.platform.context import Context

COMMAND = (sys.executable, "-m", "workers.reports.run")
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
"""Threads that wait for a core which a training has would spin (`workers.training.training_threads`)."""
LOOK_SECONDS = 1.0
"""Between two looks whether the worker is to stop."""
RECENT_DAYS = 2
"""A report that was not made by then is not made any more."""

PENDING = text(
    "SELECT r.id, r.dataset_id FROM releases r JOIN datasets d ON d.id = r.dataset_id"
    " WHERE r.state = 'published' AND r.order_ @> '{\"owner_report\": true}' AND d.wrapped_data_key IS NOT NULL"
    " AND r.updated_at > clock_timestamp() - make_interval(days => :days) ORDER BY r.updated_at"
)


class Reports:
    """One thread of a worker. A release that was tried once is left to other workers."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self._tried: set[uuid.UUID] = set()
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def look(self, context: Context) -> None:
        """Something was published, or this worker has begun: make what is missing. Returns at once."""
        self._wanted.set()
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._make_all, args=(context,), name="reports", daemon=True)
                self._thread.start()

    def _make_all(self, context: Context) -> None:
        while not self._stopping.is_set():
            if not self._wanted.wait(LOOK_SECONDS):
                continue
            self._wanted.clear()
            for release_id in pending(context):
                if release_id not in self._tried and not self._stopping.is_set():
                    self._tried.add(release_id)
                    self._make(context, release_id)

    def _make(self, context: Context, release_id: uuid.UUID) -> None:
        """Within the limits of a job; ended with the worker. How it ends is shown to the owner alone."""
        limits = limits_of(context)
        command = [*COMMAND, str(release_id), *limits.as_arguments()]
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=os.environ | ONE_THREAD)  # noqa: S603 - our own module
        deadline = time.monotonic() + limits.seconds
        try:
            while child.poll() is None and time.monotonic() < deadline:
                if memory_of_tree(child.pid) > limits.memory_bytes or self._stopping.wait(POLL_SECONDS):
                    break
        finally:
            if child.poll() is None:
                kill_tree(child.pid)
                child.wait()


def pending(context: Context) -> list[uuid.UUID]:
    """Recent releases whose report is wanted and not there, the oldest first; none where nothing can be found out."""
    try:
        with context.transaction() as session:
            wanted = session.execute(PENDING, {"days": RECENT_DAYS}).all()
        return [id_ for id_, dataset in wanted if not context.storage.exists(owner_reports.key_of(dataset, id_))]
    except ImprimaturError:
        return []
