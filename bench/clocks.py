"""Clocks that are ten minutes fast and slow on different machines: all times that matter are the database's.

    python -m bench.clocks [--minutes 10] [--write]

A few lines of C between each process and the C library shift what it takes for the time of day; Postgres has the true one.
First the API and one worker are fast, the relay and the other worker slow; then the other way round. Orders, leases, keys
that end, deletion dates, and every time that is written down. `--write` records it in bench/results/endurance.md.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx

from bench.faults.stack import ORDER, BrokenPromise, FaultyStack
from bench.pages import keep
from bench.servers import machine
from service.local.stack import DATABASE
from service.local.supervisor import Program

LEASE_SECONDS = 6.0
CLOSE_SECONDS = 120.0
"""Far more than a run takes between an event and its check, far less than the shift."""
SHIFT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static time_t shift(void) { const char *s = getenv("CLOCK_SHIFT_SECONDS"); return s ? atol(s) : 0; }
int clock_gettime(clockid_t id, struct timespec *t) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, t);
    if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) t->tv_sec += shift();
    return failed;
}
int gettimeofday(struct timeval *restrict t, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    t->tv_sec = now.tv_sec, t->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *t) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (t) *t = now.tv_sec;
    return now.tv_sec;
}
"""
TIMES = {
    "releases": "SELECT created_at FROM releases UNION ALL SELECT updated_at FROM releases",
    "ledger entries": "SELECT created_at FROM ledger_entries",
    "keys": "SELECT created_at FROM api_keys",
    "audit lines": "SELECT at FROM audit_events",
    "signs of life": "SELECT beat_at FROM heartbeats",
    "signed heads of the log": "SELECT to_timestamp(timestamp_ms / 1000.0) FROM tree_heads",
    "certificates": "SELECT (certificate->>'issued_at')::timestamptz FROM releases WHERE certificate IS NOT NULL",
}


class SkewedStack(FaultyStack):
    """Every process of the service has a clock of its own."""

    def __init__(self, folder: Path, shifts: dict[str, float]) -> None:
        self.shifts, self.library = shifts, build(folder)
        super().__init__(folder, lease_seconds=LEASE_SECONDS, workers=2)

    def _python_programs(self) -> tuple[Program, ...]:
        return tuple(replace(each, environment=self._skewed(each)) for each in super()._python_programs())

    def _skewed(self, program: Program) -> dict[str, str]:
        shift = f"{self.shifts[program.name]:.0f}"
        return {**program.environment, "LD_PRELOAD": str(self.library), "CLOCK_SHIFT_SECONDS": shift}


def shifts(seconds: float) -> dict[str, float]:
    return {"api": seconds, "relay": -seconds, "worker": -seconds, "worker-2": seconds}


def build(folder: Path) -> Path:
    source, library = folder / "clock.c", folder / "clock.so"
    source.write_text(SHIFT)
    compiler = shutil.which("cc") or "gcc"
    subprocess.run((compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"), check=True)
    return library


def now(seconds: float = 0.0) -> dt.datetime:
    return dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)


def wait_until(moment: dt.datetime) -> None:
    time.sleep(max(0.0, (moment - now()).total_seconds()))


class Bench:
    def __init__(self, stack: SkewedStack) -> None:
        self.stack, self.broken = stack, list[str]()
        self.http = httpx.Client(
            base_url=stack.url, headers={"Authorization": f"Bearer {stack.admin_key}"}, timeout=60.0
        )

    def require(self, held: bool, sentence: str) -> None:
        if not held:
            self.broken.append(sentence)

    def run(self) -> list[str]:
        with self.http:
            for check in (self.orders, self.lapsed_lease, self.key_that_ends, self.deletion_date, self.times):
                try:
                    check()
                except (BrokenPromise, httpx.HTTPStatusError, KeyError) as error:
                    self.broken.append(f"{check.__name__}: {error!r}")
        return self.broken

    def orders(self) -> None:
        """No worker takes a release from another that lives, whatever its own clock says of the lease."""
        dataset = self.stack.new_dataset()
        releases = [self.stack.order(dataset) for _ in range(3)]
        for release in releases:
            ended = self.stack.wait(release)
            self.require(ended.attempts == 1, f"a living worker lost its release, {ended.attempts} attempts")
            self.stack.check_published(dataset, release)

    def lapsed_lease(self) -> None:
        """A dead worker's release is taken by another after its lease, not ten minutes later."""
        dataset = self.stack.new_dataset()
        self.stack.wait_until_idle()
        self.stack.arm("step.before@2", "group")
        release = self.stack.order(dataset)
        fired = self.stack.wait_until_fired()
        ended = self.stack.wait(release)
        self.stack.check_published(dataset, release)
        self.require(ended.attempts == 2, f"{ended.attempts} attempts after one death")
        self.require(time.time() - fired < CLOSE_SECONDS, "the release of a dead worker waited too long")

    def key_that_ends(self) -> None:
        """A key ends when it should."""
        end = now(15)
        reply = self.http.post("/v1/keys", json={"name": "short", "scope": "reader", "expires_at": end.isoformat()})
        if reply.status_code != 201:
            self.broken.append(f"a key that ends in 15 s was refused: {reply.text}")
            return
        headers = {"Authorization": f"Bearer {reply.json()['key']}"}
        before = self.http.get("/v1/datasets", headers=headers).status_code
        wait_until(end + dt.timedelta(seconds=2))
        after = self.http.get("/v1/datasets", headers=headers).status_code
        self.require((before, after) == (200, 401), f"a key was answered {before} before its end and {after} after it")

    def deletion_date(self) -> None:
        """Rows are used up to their date and never afterwards, not even by a slow worker that had the order before."""
        dataset = self.stack.new_dataset()
        end = now(12)
        with self.stack.postgres.connect(DATABASE) as connection:  # by another machine, whose clock is right
            connection.execute("UPDATE datasets SET rows_expire_at = %s WHERE id = %s", (end, dataset))
        state = self.http.get(f"/v1/datasets/{dataset}").json()["state"]
        self.require(state == "ready", f"a dataset is {state} before its date")
        with self.frozen_workers():
            release = self.stack.order(dataset)
            wait_until(end + dt.timedelta(seconds=2))
        ended = self.stack.wait(release)
        self.require(ended.state != "published", "a release was made of rows after their deletion date")
        with self.stack.client() as client:
            kinds = [entry["kind"] for entry in client.ledger(dataset)["items"]]
        self.require("post" not in kinds, f"rows were charged for after their deletion date: {kinds}")
        state = self.http.get(f"/v1/datasets/{dataset}").json()["state"]
        self.require(state == "erased", f"a dataset is {state} after its date")
        status = self.http.post(f"/v1/datasets/{dataset}/releases", json=ORDER).status_code
        self.require(status == 410, f"an order after the date was answered {status}")

    @contextmanager
    def frozen_workers(self) -> Iterator[None]:
        groups = [pid for name, pid in self.stack.pids.items() if name.startswith("worker")]
        self.stack.wait_until_idle()
        for pid in groups:
            os.killpg(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in groups:
                os.killpg(pid, signal.SIGCONT)

    def times(self) -> None:
        """What is written down is the true time."""
        with self.stack.postgres.connect(DATABASE) as connection:
            for name, query in TIMES.items():
                found = [abs((row[0] - now()).total_seconds()) for row in connection.execute(query).fetchall()]
                self.require(bool(found), f"no times of {name}")
                far = max(found, default=0.0)
                self.require(far < CLOSE_SECONDS + self.lasted, f"{name} have a time that is {far:.0f} s away")

    @property
    def lasted(self) -> float:
        """How long this service has been there, whose first rows are as old."""
        return time.time() - (self.stack.directory / "admin.key").stat().st_mtime


def skewed(folder: Path, seconds: float) -> list[str]:
    """What is wrong with clocks that are so far ahead and behind."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    with SkewedStack(folder, shifts(seconds)) as stack:
        return Bench(stack).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    lines = [f"{machine()}; other work ran on the same machine. `python -m bench.clocks`:", ""]
    broken = []
    with tempfile.TemporaryDirectory(prefix="imprimatur-clocks-") as name:
        Path(name).chmod(0o755)
        for number, seconds in enumerate((60 * options.minutes, -60 * options.minutes)):
            found = skewed(Path(name) / str(number), seconds)
            words = ", ".join(f"{part} {shift / 60:+.0f} min" for part, shift in shifts(seconds).items())
            lines.append(
                f"- {words}: {'; '.join(found) or 'orders, leases, ends of keys, deletion dates and all written times held'}."
            )
            print(lines[-1], flush=True)
            broken += found
    if options.write:
        keep("endurance", "\n".join(lines), "clocks ten minutes fast and slow")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
