"""The web page: how long the server takes for it, and how many bytes a browser loads.

    python -m bench.page [--runs 30] [--quick] [--write]

A service of its own on this machine: 100 datasets, one of them with 50 releases (one of each is real, the others are copies of its row). A time is
from a request on a kept connection to the last byte of its reply, so a little more than the server's. Bytes are what
passes the wire when nothing is kept: the page, and the files it names, gzipped as they are sent; a chart's library apart.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
from sqlalchemy import text

from bench.pages import keep
from bench.servers import machine
from imprimatur import Client
from service.ledger import repository
from service.local import EmbeddedStack
from service.platform.settings import Settings
from service.upkeep.installation import owner_transaction
from tests.conftest import SMALL_SCHEMA, small_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.orm import Session

DATASETS, RELEASES = 100, 50
MOST_MS, MOST_KB = 200, 300
ORDER = {"method": "marginals", "epsilon": 0.01, "pairs": "none"}


def copy(session: Session, table: str, old: str, **changed: object) -> None:
    """A row once more, but for these columns."""
    columns = text(
        "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public' AND table_name = :table"
    )
    same = ", ".join(set(session.scalars(columns, {"table": table})) - set(changed))
    named, values = ", ".join(changed), ", ".join(f":{name}" for name in changed)
    session.execute(
        text(f"INSERT INTO {table} ({named}, {same}) SELECT {values}, {same} FROM {table} WHERE id = :old"),
        {**changed, "old": old},
    )


def fill(stack: EmbeddedStack, client: Client, folder: Path, *, datasets: int, releases: int) -> tuple[str, str]:
    """One dataset with one release, and copies of both; their ids."""
    dataset = str(client.create_dataset(small_table(folder / "t.csv"), SMALL_SCHEMA, epsilon=20.0, name="visits")["id"])
    release = str(client.create_release(dataset, ORDER)["id"])
    client.wait(release)
    settings = Settings(**{k.removeprefix("IMPRIMATUR_").lower(): v for k, v in stack.environment().items()})
    with owner_transaction(settings) as session:
        session.execute(text("SET LOCAL session_replication_role = replica"))  # past the triggers: nothing is charged
        for number in range(1, datasets):
            new = uuid.uuid4()
            copy(session, "datasets", dataset, id=new, name=f"visits {number}")
            repository.open_account(session, new)
        for _ in range(1, releases):
            copy(session, "releases", release, id=uuid.uuid4(), idempotency_key=None)
    return dataset, release


def bytes_of(http: httpx.Client, reply: httpx.Response) -> tuple[int, int]:
    """The page with the files it names; and the library of charts, where it names that."""
    page, charts = len(reply.content), 0
    for address in set(re.findall(r'(?:src|href)="(/assets/[^"]+)"', reply.text)):
        with http.stream("GET", address) as asset:
            size = sum(map(len, asset.iter_raw()))
        charts, page = (charts + size, page) if "chart" in address else (charts, page + size)
    return page, charts


def measured(http: httpx.Client, name: str, ask: Callable[[], httpx.Response], runs: int) -> list[Any]:
    reply = ask().raise_for_status()
    took = []
    for _ in range(runs):
        began = time.perf_counter()
        ask()
        took.append(1e3 * (time.perf_counter() - began))
    page, charts = bytes_of(http, reply)
    worst = sorted(took)[int(0.95 * (len(took) - 1))]
    assert page <= 1_000 * MOST_KB, f"{name}: {page:,} bytes"
    return [name, statistics.median(took), min(took), worst, len(reply.content), page, charts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--quick", action="store_true", help="few datasets, two runs")
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    datasets, releases, runs = (3, 2, 2) if options.quick else (DATASETS, RELEASES, options.runs)
    with tempfile.TemporaryDirectory(prefix="imprimatur-page-") as name, EmbeddedStack(Path(name) / "data", 0) as stack:
        with Client(stack.url, stack.admin_key) as client:
            dataset, release = fill(stack, client, Path(name), datasets=datasets, releases=releases)
        with httpx.Client(base_url=stack.url, timeout=60.0) as http:
            assert http.post("/sign-in", data={"key": stack.admin_key}).status_code == 303
            found = re.search(r'name="csrf-token" content="(\w+)"', http.get("/").text)
            assert found is not None
            order = {"epsilon": "0.5", "method": "marginals", "csrf_token": found[1]}
            part = {"HX-Request": "true"}
            here, there = f"/datasets/{dataset}", f"/releases/{release}"
            asked: dict[str, Callable[[], httpx.Response]] = {
                f"{min(datasets, 50)} of {datasets} datasets": lambda: http.get("/"),
                f"a dataset with {releases} releases": lambda: http.get(here),
                "order": lambda: http.get(f"{here}/order"),
                "its price, again": lambda: http.post(f"{here}/order", data=order, headers=part),
                "release": lambda: http.get(there),
                "rows": lambda: http.get(f"{there}/rows"),
                "columns and pairs": lambda: http.get(f"{there}/charts"),
                "certificate": lambda: http.get(f"{there}/certificate"),
                "ledger": lambda: http.get(f"{here}/ledger"),
                "audit log": lambda: http.get("/admin/audit"),
            }
            lines = [measured(http, title, ask, runs) for title, ask in asked.items()]
    out = [
        f"{machine()}; {runs} requests each, one after the other. Goals: < {MOST_MS} ms for the datasets, at most {MOST_KB} kB before charts.",
        "",
        "| page | median, ms | least – 95 % | page itself, kB | with its files, kB | charts besides, kB |",
        "|---|---|---|---|---|---|",
        *(
            f"| {title} | {median:.0f} | {least:.0f} – {worst:.0f} | {html / 1e3:.1f} | {page / 1e3:.0f} | {charts / 1e3:.0f} |"
            for title, median, least, worst, html, page, charts in lines
        ),
    ]
    print("\n".join(out))
    if options.write:
        keep("page", "\n".join(out) + "\n")


if __name__ == "__main__":
    main()
