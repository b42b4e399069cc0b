"""Schemathesis over the whole OpenAPI document: the real API over real HTTP, on real Postgres, with ids that are there.

    python -m bench.schemathesis            1,000 cases an operation
    python -m bench.schemathesis --quick    60 cases an operation

Half of the cases fit the document, half break it. No reply may be a server error, and each must be one that the document
names: its status, its media type, its headers and the shape of its JSON. No worker runs, so no order is carried out; one
release was trained and published beforehand. Exits with 1 when anything was found.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import random
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import schemathesis
import uvicorn
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from bench.pages import keep
from bench.servers import machine
from service.auth.service import create_tenant
from service.http.app import create_app
from service.http.protocol import ImpatientProtocol
from service.platform.context import Context, open_context
from service.platform.settings import Settings
from service.upkeep.installation import install_signing_key

if TYPE_CHECKING:
    from collections.abc import Iterator

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 1000, "required": True}},
    ]
}
ORDER = {
    "method": "idpgan",
    "epsilon": 0.5,
    "steps": 2,
    "condition_on": "colour",
    "networks": {"generator_hidden": [4], "critic_hidden": [4], "noise_dimension": 2},
}
GOOD_FIELDS = {
    "schema": json.dumps(SCHEMA),
    "budget": json.dumps({"epsilon": 2.0}),
    "order": json.dumps(ORDER),
    "rows": "10",
    "name": "found",
}
MOMENTS = ("expires_at", "rows_expire_at")
LAST = ("DELETE", "PATCH")
"""These change what the others look at."""


@dataclass
class World:
    """An API that listens, a key to it, and ids of things it knows."""

    url: str
    key: str
    pools: dict[str, list[str]]


@dataclass
class Outcome:
    """What one operation answered."""

    name: str
    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def cases(self) -> int:
        return self.statuses.total()


@contextmanager
def serve(context: Context) -> Iterator[World]:
    """A seeded API on a loopback port of its own."""
    # Half of the cases come without a good key, all from one address; and one budget must last for all orders.
    unlimited = context.settings.model_copy(update={"rate_limit_failures_per_minute": 1e9, "max_epsilon": 1_000.0})
    config = uvicorn.Config(
        create_app(unlimited),
        port=0,
        http=ImpatientProtocol,
        proxy_headers=False,
        log_level="critical",
        access_log=False,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield seed(context, f"http://127.0.0.1:{port}")
    finally:
        server.should_exit = True
        thread.join(30)


def seed(context: Context, url: str) -> World:
    """Datasets ready and erased; releases published and voided (one that runs would keep its event stream open)."""
    install_signing_key(context.settings, context.secrets)
    with context.transaction() as session:
        key = create_tenant(session, context.secrets, f"schemathesis {uuid.uuid4()}")
    with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=120.0) as http:
        ready, erased = (_upload(http, epsilon) for epsilon in (900.0, 2.0))
        http.delete(f"/v1/datasets/{erased}")
        published, voided = (_order(http, ready) for _ in range(2))
        http.post(f"/v1/releases/{voided}/cancel")
        _train(context, published)
        keys = [_good(http.post("/v1/keys", json={"name": "k", "scope": "reader"}))["id"] for _ in range(20)]
    pools = {"dataset_id": [ready, erased], "release_id": [published, voided], "key_id": keys}
    return World(url, key, pools)


def _upload(http: httpx.Client, epsilon: float) -> str:
    fields = {"schema": json.dumps(SCHEMA), "budget": json.dumps({"epsilon": epsilon})}
    files = {"file": ("t.csv", table())}
    return str(_good(http.post("/v1/datasets", data=fields, files=files))["id"])


def _order(http: httpx.Client, dataset: str) -> str:
    return str(_good(http.post(f"/v1/datasets/{dataset}/releases", json=ORDER))["id"])


def _good(reply: httpx.Response) -> dict[str, Any]:
    assert reply.is_success, reply.text
    return dict(reply.json())


def _train(context: Context, release_id: str) -> None:
    from workers import lease as leases
    from workers.run import Attempt

    lease = leases.claim_next(context.settings)
    assert lease is not None
    assert lease.release_id == uuid.UUID(release_id)
    Attempt(context, lease).run()


def explore(world: World, cases: int, only: str = "") -> Iterator[Outcome]:
    """Every operation, `cases` times; those that take things away last."""
    document = schemathesis.openapi.from_url(f"{world.url}/openapi.json")
    operations = [found.ok() for found in document.get_all_operations()]
    for operation in sorted(operations, key=lambda each: each.method.upper() in LAST):
        if only in operation.label:
            yield _explore_one(operation, world, cases)


def _explore_one(operation: Any, world: World, cases: int) -> Outcome:
    outcome = Outcome(operation.label)
    known = {name: st.sampled_from(ids) for name, ids in world.pools.items()}
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    strategies = [operation.as_strategy(generation_mode=mode) for mode in modes]

    # Generated only: a failure is counted and the search goes on; shrinking would repeat it and hide the others.
    @settings(
        max_examples=cases,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=st.one_of(strategies), data=st.data())
    def try_one(case: Any, data: st.DataObject) -> None:
        help_along(case, data, known)
        reply = case.call(base_url=world.url, headers={"Authorization": f"Bearer {world.key}"}, timeout=120)
        outcome.statuses[reply.status_code] += 1
        try:
            # /readyz answers 503 while no worker consumes, and says so in the document.
            case.validate_response(reply, checks=CHECKS[operation.path == "/readyz" :])
        except FailureGroup as group:
            for failure in group.exceptions:
                outcome.failures[f"{reply.status_code} {failure.title}: {str(failure)[:300]!r}"] += 1

    began = time.monotonic()
    try:
        try_one()
    except schemathesis.errors.SchemathesisError as error:  # pragma: no cover - the document itself cannot be used
        outcome.failures[f"cannot generate: {error}"] += 1
    outcome.seconds = time.monotonic() - began
    return outcome


def help_along(case: Any, data: st.DataObject, known: dict[str, st.SearchStrategy[str]]) -> None:
    """What chance would not hit: ids that exist, moments ahead of now, and tables that agree with their schema."""
    for name in case.path_parameters or {}:
        if name in known and data.draw(st.integers(0, 3)):
            case.path_parameters[name] = data.draw(known[name])
    if isinstance(case.body, dict):
        _help_body(case.body, data)


def _help_body(body: dict[str, Any], data: st.DataObject) -> None:
    for name, value in {**GOOD_FIELDS, "file": table().encode()}.items():
        if "file" in body and name in body and data.draw(st.booleans()):
            body[name] = value
    if "method" in body and data.draw(st.booleans()):
        for name in ("share", "sampling_probability"):
            body.pop(name, None)
        body |= {"condition_on": "colour", "epsilon": data.draw(st.sampled_from([0.01, 0.5, 1_000.0])), "steps": 5}
    for name in MOMENTS:
        if name in body and data.draw(st.booleans()):
            ahead = dt.datetime.now(dt.UTC) + dt.timedelta(days=data.draw(st.integers(1, 2_000)))
            body[name] = ahead.isoformat()


def table() -> str:
    """A table of SCHEMA that was never uploaded before."""
    rows = [f"{random.choice(['red', 'green'])},{random.randint(0, 1000)}" for _ in range(300)]
    return "\n".join(["colour,size", *rows]) + "\n"


@contextmanager
def fresh_service() -> Iterator[Context]:
    """Postgres out of its wheel and an empty store, gone afterwards."""
    from service.local import TEST_SETTINGS, Postgres, Supervisor
    from service.platform.database import migrate
    from tests.database_roles import TEST_ROLE, create_test_roles, let_tests_prepare

    with tempfile.TemporaryDirectory(prefix="imprimatur-schemathesis-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "objects").mkdir()
        (folder / "secret.key").write_bytes(os.urandom(32))
        postgres = Postgres(folder / "postgres", folder, TEST_SETTINGS)
        with Supervisor(folder / "pids.json") as supervisor:
            supervisor.start(postgres.program())
            create_test_roles(postgres)
            postgres.create_database("imprimatur")
            migrate(postgres.url("imprimatur"))
            let_tests_prepare(postgres, "imprimatur")
            context = open_context(
                Settings(
                    database_url=postgres.url("imprimatur", TEST_ROLE),
                    migration_database_url=postgres.url("imprimatur"),
                    redis_url="redis://127.0.0.1:1/0",  # the API never speaks to it
                    storage_url=(folder / "objects").as_uri(),
                    secret_key_file=folder / "secret.key",
                    scratch_dir=folder,
                )
            )
            yield context
        postgres.forget_socket_directory()


def lines_of(outcomes: list[Outcome]) -> list[str]:
    lines = ["| operation | cases | seconds | replies | findings |", "|---|---:|---:|---|---:|"]
    for one in outcomes:
        replies = " ".join(f"{status}×{times}" for status, times in sorted(one.statuses.items()))
        lines.append(f"| `{one.name}` | {one.cases:,} | {one.seconds:.1f} | {replies} | {one.failures.total()} |")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=1_000, help="cases an operation")
    parser.add_argument("--quick", action="store_true", help="60 cases an operation")
    parser.add_argument("--only", default="", help="operations whose `METHOD /path` contains this")
    arguments = parser.parse_args()
    outcomes = []
    with fresh_service() as context, serve(context) as world:
        for outcome in explore(world, 60 if arguments.quick else arguments.cases, arguments.only):
            outcomes.append(outcome)
            answered = " ".join(f"{status}×{times}" for status, times in sorted(outcome.statuses.items()))
            print(f"{outcome.name:<55} {outcome.cases:>6} cases {outcome.seconds:>7.1f} s  {answered}", flush=True)
            for failure, times in outcome.failures.most_common():
                print(f"    FOUND {times}× {failure}", flush=True)
    found = sum(outcome.failures.total() for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    cases = sum(outcome.cases for outcome in outcomes)
    total = f"{len(outcomes)} operations, {cases:,} cases, {found} findings in {seconds:.0f} s"
    print(total)
    if not arguments.quick and not arguments.only:
        keep("schemathesis", "\n".join([f"{machine()}; {total}.", "", *lines_of(outcomes)]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
