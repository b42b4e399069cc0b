"""Two versions of API, relay and worker at once, on one database: every order is published once and charged once.

    python -m bench.versions [--old COMMIT] [--write]

As an operator upgrades to revision 0030 (docs/operating.md): the old version runs; new workers and a new relay start beside it, and the
old ones are stopped; the database is migrated under the old API; a new API starts beside it, and the old one is stopped. At each stage
every API takes orders, on a dataset that the old version stored and, once there is one, on one of the new. The old code comes out of
the repository's history, and runs in the same virtual environment. `--write` records it in bench/results/endurance.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from bench.faults.stack import ORDER, SCHEMA
from bench.load.clients import table
from bench.pages import keep
from bench.servers import machine
from imprimatur import Client
from imprimatur.errors import ApiError
from service.local import EmbeddedStack, Supervisor
from service.local.servers import free_port
from service.local.stack import DATABASE
from service.local.supervisor import Program

ROOT = Path(__file__).parents[1]
OLD = "8e1cc5df"
"""The last commit of revision 0029."""
SETTINGS = {"IMPRIMATUR_LEASE_SECONDS": "20", "IMPRIMATUR_HEARTBEAT_SECONDS": "3"}
TINY = {**ORDER, "epsilon": 0.2, "steps": 4, "condition_on": None}
ENDED = {"published", "failed", "voided"}
PATIENCE_SECONDS = 240.0
INSTALL = (
    "import sys; from pathlib import Path; from service.platform.settings import Settings; "
    "from service.upkeep.installation import install; install(Settings(), Path(sys.argv[1]))"
)


class TwoVersions(EmbeddedStack):
    """The new version's stack, whose database an old version made and still uses."""

    def __init__(self, folder: Path, old_code: Path) -> None:
        super().__init__(folder / "data", 0, postgres_settings={"fsync": "off"}, extra_environment=SETTINGS)
        self.old_code, self.old_port = old_code, free_port()
        self.old_url = f"http://127.0.0.1:{self.old_port}"

    def start(self) -> None:
        """The servers, and what an installation of the old version leaves."""
        self._own_directory()
        self._start_postgres()
        self._exits.callback(self.redis.forget_socket_directory)
        self._supervisor.start(self.redis.program())
        self._run(self.old_code, "-c", INSTALL, str(self.directory / "admin.key"))

    def migrate(self) -> None:
        self._run(ROOT, "-m", "service.platform.database")

    def _run(self, code: Path, *arguments: str) -> None:
        environment = {**os.environ, **self.environment(), "PYTHONPATH": str(code)}
        subprocess.run((sys.executable, *arguments), env=environment, cwd=code, check=True)

    def old_programs(self) -> tuple[Program, ...]:
        """API, relay and worker of the old code."""
        return tuple(
            replace(
                each,
                command=tuple(str(self.old_port) if part == str(self.port) else part for part in each.command),
                environment={**each.environment, "PYTHONPATH": str(self.old_code)},
                log=self.logs / f"old-{each.name}.log",
                ready=self._old_answers if each.name == "api" else lambda: True,
            )
            for each in self._python_programs()
        )

    def _old_answers(self) -> bool:
        try:
            return httpx.get(f"{self.old_url}/healthz", timeout=5.0).status_code == 200
        except httpx.TransportError:
            return False

    def start_new(self, *names: str) -> None:
        """These parts of the new version."""
        for program in self._python_programs():
            if program.name in names:
                self._supervisor.launch(replace(program, environment={**program.environment, "PYTHONPATH": str(ROOT)}))
        if "api" in names:
            deadline = time.monotonic() + PATIENCE_SECONDS
            while not self._everything_ready():
                if time.monotonic() > deadline:
                    raise RuntimeError("the new version never got ready")
                time.sleep(0.2)


@dataclass
class Stage:
    """Orders that were taken while some versions ran."""

    name: str
    orders: list[tuple[str, str]]
    """Release and dataset."""
    seconds: float = 0.0
    old_workers: int = 0
    new_workers: int = 0


class Bench:
    def __init__(self, stack: TwoVersions) -> None:
        self.stack, self.stages = stack, list[Stage]()
        self.datasets: list[str] = []
        self.apis: list[str] = [stack.old_url]
        self.complaints: list[str] = []

    def upload(self, url: str) -> None:
        path = self.stack.directory / "table.csv"
        path.write_bytes(b"\n".join(line.rpartition(b",")[0] for line in table(200).splitlines()) + b"\n")
        with Client(url, self.stack.admin_key, timeout=60.0) as client:
            self.datasets.append(client.create_dataset(path, SCHEMA, epsilon=10.0, name="versions")["id"])

    def refuses_uploads(self, url: str) -> None:
        """As of a database that does not answer, and nothing is kept."""
        try:
            self.upload(url)
        except ApiError as error:
            self.complaints += [] if error.status == 503 else [f"an upload to the old API ended with {error.status}"]
        else:
            self.complaints.append("the old API took an upload, which new workers could not read")

    def stage(self, name: str) -> None:
        """An order from every API on every dataset; returns when all have ended."""
        began, known = time.monotonic(), self._done()
        orders = []
        for url in self.apis:
            for dataset in self.datasets:
                reply = httpx.post(
                    f"{url}/v1/datasets/{dataset}/releases",
                    json=TINY,
                    headers={"Authorization": f"Bearer {self.stack.admin_key}", "Idempotency-Key": str(uuid.uuid4())},
                    timeout=60.0,
                )
                reply.raise_for_status()
                orders.append((reply.json()["id"], dataset))
        waiting = {release for release, _ in orders}
        while waiting and time.monotonic() < began + PATIENCE_SECONDS:
            time.sleep(0.5)
            with self.stack.postgres.connect(DATABASE) as connection:
                rows = connection.execute("SELECT id, state FROM releases").fetchall()
            waiting -= {str(release) for release, state in rows if state in ENDED}
        done = self._done()
        stage = Stage(name, orders, time.monotonic() - began, *(done[i] - known[i] for i in (0, 1)))
        self.stages.append(stage)
        print(f"{name}: {len(orders) - len(waiting)} of {len(orders)} ended in {stage.seconds:.0f} s", flush=True)

    def _done(self) -> tuple[int, int]:
        """Claims by workers of the old version and the new."""
        logs = (self.stack.logs / name for name in ("old-worker.log", "worker.log"))
        old, new = (
            log.read_text(errors="replace").count(" claimed with token ") if log.exists() else 0 for log in logs
        )
        return old, new

    def faults(self) -> list[str]:
        """What is not as it must be."""
        found = []
        with self.stack.postgres.connect(DATABASE) as connection:
            states = {str(row[0]): row[1:] for row in connection.execute("SELECT id, state, failure FROM releases")}
            kinds: dict[str, list[str]] = {}
            for release, kind in connection.execute(
                "SELECT release_id, kind FROM ledger_entries ORDER BY dataset_id, seq"
            ):
                kinds.setdefault(str(release), []).append(kind)
        for stage in self.stages:
            for release, _ in stage.orders:
                if states[release][0] != "published":
                    found.append(f"{stage.name}: release {release} ended {states[release]}")
                elif kinds[release] != ["reserve", "post"]:
                    found.append(f"{stage.name}: release {release} has the entries {kinds[release]}")
        with Client(self.stack.url, self.stack.admin_key, timeout=60.0) as client:
            for dataset in self.datasets:
                ledger = client.ledger(dataset)
                found += [] if ledger["verified"] else [f"the ledger of {dataset} is not whole: {ledger['faults']}"]
            for release in (release for stage in self.stages for release, _ in stage.orders):
                if states[release][0] == "published":
                    with client.sample(release, rows=10) as pieces:
                        found += [] if any(pieces) else [f"release {release} gives no sample"]
        return found + self.complaints


def upgrade(folder: Path, old_code: Path) -> tuple[Bench, list[str]]:
    """All stages; what is wrong afterwards."""
    with ExitStack() as exits:
        stack = exits.enter_context(TwoVersions(folder, old_code))
        bench = Bench(stack)
        old_api, old_rest = (
            exits.enter_context(Supervisor(stack.directory / f"{name}.json")) for name in ("old-api", "old-rest")
        )
        api, relay, worker = stack.old_programs()
        for supervisor, program in ((old_api, api), (old_rest, relay), (old_rest, worker)):
            supervisor.start(program, PATIENCE_SECONDS)
        bench.upload(stack.old_url)
        bench.stage("the old version alone")
        stack.start_new("relay", "worker")
        bench.stage("relays and workers of both, old API")
        old_rest.stop()
        bench.stage("new relay and worker, old API and tables")
        stack.migrate()
        bench.stage("the same, all migrations done")
        bench.refuses_uploads(stack.old_url)
        stack.start_new("api")
        bench.apis.append(stack.url)
        bench.upload(stack.url)
        bench.stage("APIs of both")
        old_api.stop()
        bench.apis.remove(stack.old_url)
        bench.stage("the new version alone")
        return bench, bench.faults()


def page(bench: Bench, faults: list[str], old: str) -> str:
    lines = [
        (
            f"{machine()}; other work ran on the same machine. `python -m bench.versions`: version {old} and this one on"
            " one database, leases of 20 s. Every order published, charged once, sampled from; ledgers verified; after the migrations"
            f" the old API refuses uploads with 503. Broken promises: {'; '.join(faults) or 'none'}."
        ),
        "",
        "| what ran | orders | s until all had ended | claims by old workers | by new workers |",
        "|---|---|---|---|---|",
        *(
            f"| {each.name} | {len(each.orders)} | {each.seconds:.0f} | {each.old_workers} | {each.new_workers} |"
            for each in bench.stages
        ),
    ]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", default=OLD, help="a commit of the version before")
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="imprimatur-versions-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        old_code = folder / "old"
        old_code.mkdir()
        archive = subprocess.run(("git", "archive", options.old), cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(("tar", "-x", "-C", str(old_code)), input=archive, check=True)
        bench, faults = upgrade(folder, old_code)
    text = page(bench, faults, options.old)
    print(text)
    if options.write:
        keep("endurance", text, "two versions at once")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
