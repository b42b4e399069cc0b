"""A whole service to break: short leases, kill points, and the questions that must have the same answer every time."""

from __future__ import annotations

import os
import random
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil

from imprimatur import Client
from service.datasets.models import Dataset
from service.local import EmbeddedStack, supervisor
from service.local.supervisor import Program
from service.platform.context import open_context
from service.releases.models import Release
from service.upkeep.sweep import sweep

ROOT = Path(__file__).parents[2]
HOOKS = Path(__file__).parent / "hooks"
LEASE_SECONDS = 6.0
"""For tests that wait for one to lapse."""
PATIENCE_SECONDS = 120.0
ENDED = ("published", "failed", "voided")

SCHEMA: dict[str, Any] = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 1000, "required": True}},
    ]
}
ORDER: dict[str, Any] = {
    "method": "idpgan",
    "epsilon": 1.0,
    "steps": 12,
    "condition_on": "colour",
    "networks": {"generator_hidden": [8], "critic_hidden": [8], "noise_dimension": 4},
    "warm_start": {"kind": "none"},
}
BUDGET = 10.0
POSTGRES = {"fsync": "off", "autovacuum": "off"}
"""The machine stays up, so what the server has handed to the kernel is safe. It must hand it over before it answers:
with synchronous_commit off, a killed server forgets orders that were confirmed."""


class BrokenPromise(AssertionError):
    """Something that must hold after every crash did not."""


class FaultyStack(EmbeddedStack):
    """`imprimatur up` with kill points in every one of its Python processes."""

    def __init__(
        self,
        folder: Path,
        *,
        lease_seconds: float = LEASE_SECONDS,
        workers: int = 1,
        durable: bool = False,
        **settings: object,
    ) -> None:
        self._workers = workers
        self.faults = folder.absolute() / "faults"
        self.faults.mkdir(parents=True)
        environment = {
            "PYTHONPATH": os.pathsep.join([str(HOOKS), str(ROOT), os.environ.get("PYTHONPATH", "")]),
            "IMPRIMATUR_FAULTS": str(self.faults),
            "IMPRIMATUR_LEASE_SECONDS": str(lease_seconds),
            "IMPRIMATUR_HEARTBEAT_SECONDS": str(lease_seconds / 6),
            "IMPRIMATUR_RELAY_SECONDS": "0.1",
            **{f"IMPRIMATUR_{name.upper()}": str(value) for name, value in settings.items()},
        }
        # What dies here every few seconds would otherwise be started again after half a minute only.
        supervisor.LONGEST_BACKOFF_SECONDS = supervisor.FIRST_BACKOFF_SECONDS
        super().__init__(
            folder / "data", 0, postgres_settings={} if durable else POSTGRES, extra_environment=environment
        )

    def _python_programs(self) -> tuple[Program, ...]:
        *others, worker = super()._python_programs()
        more = (
            replace(worker, name=f"worker-{n}", log=self.logs / f"worker-{n}.log") for n in range(2, self._workers + 1)
        )
        return (*others, worker, *more)

    def arm(self, point: str, scope: str = "process") -> None:
        """The next process that gets to `point` dies there; with scope `group`, its whole process group."""
        (self.faults / "fired").unlink(missing_ok=True)
        unfinished = self.faults / "arming"
        unfinished.write_text(f"{point} {scope}")
        unfinished.rename(self.faults / "armed")

    def fired_at(self) -> float | None:
        """When the armed point was reached, in seconds of the clock."""
        fired = self.faults / "fired"
        return fired.stat().st_mtime if fired.exists() else None

    def wait_until_fired(self, seconds: float = PATIENCE_SECONDS) -> float:
        """The moment at which the armed point was reached; some come after the end of their release."""
        deadline = time.monotonic() + seconds
        while (fired := self.fired_at()) is None:
            if time.monotonic() > deadline:
                raise BrokenPromise("the point was never reached")
            time.sleep(0.05)
        return fired

    def client(self) -> Client:
        return Client(self.url, self.admin_key)

    def new_dataset(self, rows: int = 200) -> str:
        """A table that was never uploaded before, with a budget of ε = 10."""
        rng = random.Random()
        lines = [
            "colour,size",
            *(f"{rng.choice(['red', 'green', 'blue'])},{rng.randint(0, 1000)}" for _ in range(rows)),
        ]
        table = self.directory / f"{uuid.uuid4()}.csv"
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with self.client() as client:
            return client.create_dataset(table, SCHEMA, epsilon=BUDGET, name="faults")["id"]

    def order(self, dataset_id: str, order: dict[str, Any] = ORDER) -> str:
        """Post the order until it is answered, with one Idempotency-Key, as a client does whose connection breaks."""
        key, deadline = str(uuid.uuid4()), time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            try:
                reply = httpx.post(
                    f"{self.url}/v1/datasets/{dataset_id}/releases",
                    json=order,
                    headers={"Authorization": f"Bearer {self.admin_key}", "Idempotency-Key": key},
                    timeout=30,
                )
            except httpx.TransportError:
                time.sleep(0.2)
                continue
            if reply.status_code != 503:
                reply.raise_for_status()
                return reply.json()["id"]
            time.sleep(0.2)
        raise BrokenPromise("the order was never answered")

    def release(self, release_id: str) -> Release:
        with open_context(self.settings()).transaction() as session:
            return session.get_one(Release, uuid.UUID(release_id))

    def wait(self, release_id: str, *, until: tuple[str, ...] = ENDED, seconds: float = PATIENCE_SECONDS) -> Release:
        """The release once it has ended, read from the database: the API may be dead just now."""
        deadline = time.monotonic() + seconds
        while (release := self.release(release_id)).state not in until:
            if time.monotonic() > deadline:
                raise BrokenPromise(f"release {release_id} is still {release.state}, {release.phase}")
            time.sleep(0.05)
        return release

    def wait_for_step(self, release_id: str, step: int, seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while self.release(release_id).step < step:
            if time.monotonic() > deadline:
                raise BrokenPromise(f"release {release_id} never came to step {step}")
            time.sleep(0.02)

    def wait_until_ready(self, seconds: float = PATIENCE_SECONDS) -> None:
        deadline = time.monotonic() + seconds
        while not self._everything_ready():
            if time.monotonic() > deadline:
                raise BrokenPromise("the service never got ready again")
            time.sleep(0.1)

    def wait_until_idle(self, seconds: float = PATIENCE_SECONDS) -> None:
        """Until no worker has a training process, and has had the time to notice that its last one is gone."""
        deadline = time.monotonic() + seconds
        while any(_children(pid) for name, pid in self.pids.items() if name.startswith("worker")):
            if time.monotonic() > deadline:
                raise BrokenPromise("a training process does not end")
            time.sleep(0.1)
        time.sleep(1.0)

    def check_charged_once(
        self, dataset_id: str, release_id: str, kinds: tuple[str, ...] = ("reserve", "post")
    ) -> None:
        """Reserved once, charged once, for one price, and the chain is whole."""
        with self.client() as client:
            ledger = client.ledger(dataset_id)
            price = client.release(release_id)["price"]["shares"]
        entries = [entry for entry in ledger["items"] if entry["release_id"] == release_id]
        if tuple(sorted(entry["kind"] for entry in entries)) != tuple(sorted(kinds)):
            raise BrokenPromise(f"release {release_id} has the entries {[entry['kind'] for entry in entries]}")
        if any((entry["simple"], entry["renyi"]) != (price["simple"], price["renyi"]) for entry in entries[:2]):
            raise BrokenPromise(f"release {release_id} was charged another price than its own")
        if not ledger["verified"]:
            raise BrokenPromise(f"the ledger is not whole: {ledger['faults']}")

    def check_published(self, dataset_id: str, release_id: str) -> None:
        """Published, charged once, before it was published."""
        release = self.release(release_id)
        if release.state != "published":
            raise BrokenPromise(f"release {release_id} ended {release.state}: {release.failure}")
        self.check_charged_once(dataset_id, release_id)

    def check_storage(self) -> int:
        """Sweep, then nothing is there that no row names, and everything that one names; the number of orphans swept."""
        context = open_context(self.settings())
        swept = sweep(context, min_age_seconds=0)
        with context.transaction() as session:
            named = set()
            for columns in ((Dataset.storage_key, Dataset.upload_key), (Release.bundle_key, Release.checkpoint_key)):
                named |= {key for row in session.query(*columns) for key in row if key is not None}
        if set(context.storage.list()) != named:
            raise BrokenPromise(f"storage and database disagree: {set(context.storage.list()) ^ named}")
        return swept


def _children(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children()
    except psutil.NoSuchProcess:
        return []
