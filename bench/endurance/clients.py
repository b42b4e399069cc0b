"""The clients of the endurance bench, in a process of their own: `python -m bench.endurance.clients` with a plan on stdin.

Plan, as JSON: {"host", "port", "key", "requests", "seconds", "clients", "keepers", "datasets", "release"}. Every second a
line with the requests answered so far; the last line is the record of all that was promised. A request that was not
answered, or answered with 503, is sent again where it changes something: with the same idempotency key, as a client must.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import uvloop

from bench.load.clients import SCHEMA, error, multipart, table
from bench.load.http import Connection

Plan = dict[str, Any]
MIX = {"budget": 42, "release": 42, "listing": 4, "cancelled": 3, "quote": 1, "sample": 1, "error": 3, "repeat": 1}
"""Of a hundred requests of a mixed client; `cancelled` is an order and its cancel."""
TRAINED = {
    "method": "idpgan",
    "steps": 4,
    "networks": {"generator_hidden": [8], "critic_hidden": [8], "noise_dimension": 4},
}
BUDGET = 5.0
AGAIN_SECONDS = 0.2
HANGS_SECONDS = 60.0
ENDED = ("published", "failed", "voided")


@dataclass
class Record:
    """What was answered, and what was promised by it."""

    statuses: dict[str, Counter[int]] = field(default_factory=dict)
    orders: dict[str, list[str]] = field(default_factory=dict)
    """By idempotency key: the release of every 202 that it got; all of them must be one."""
    cancelled: list[str] = field(default_factory=list)
    uploads: list[str] = field(default_factory=list)
    erased: list[str] = field(default_factory=list)
    waits: Counter[int] = field(default_factory=Counter)
    """Answers by how long they took, in steps of 10 ms."""

    @property
    def answered(self) -> int:
        return sum(count for each in self.statuses.values() for status, count in each.items() if status)

    def progress(self) -> dict[str, Any]:
        return {"answered": self.answered, "orders": len(self.orders), "uploads": len(self.uploads)}


class Caller:
    """One client: a connection, and what it knows."""

    def __init__(self, plan: Plan, record: Record) -> None:
        self.plan, self.record = plan, record
        self.http = Connection(plan["host"], plan["port"], plan["key"])
        self.release = plan["release"]
        self.mine: tuple[str, str, bytes] | None = None

    async def ask(self, kind: str, *request: Any, **options: Any) -> tuple[int, dict[str, Any]]:
        """Send it once; status 0 when it was not answered."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(HANGS_SECONDS):
                status, body = await self.http.request(*request, **options)
        except TimeoutError:
            self.http.close()
            status, body = 0, b""
        self.record.statuses.setdefault(kind, Counter())[status] += 1
        self.record.waits[int(100 * (time.monotonic() - began))] += status != 0
        if status in {0, 503}:
            await asyncio.sleep(AGAIN_SECONDS)
        return status, json.loads(body) if body[:1] == b"{" and kind != "sample" else {}

    async def insist(self, kind: str, *request: Any, **options: Any) -> tuple[int, dict[str, Any]]:
        """Send it until it is answered."""
        while True:
            status, body = await self.ask(kind, *request, **options)
            if status not in {0, 503}:
                return status, body

    async def order(self, kind: str, dataset: str, epsilon: float) -> str | None:
        """The id of the accepted release."""
        key, body = str(uuid.uuid4()), json.dumps({**TRAINED, "epsilon": epsilon}).encode()
        return await self.order_as(kind, key, dataset, body)

    async def order_as(self, kind: str, key: str, dataset: str, body: bytes) -> str | None:
        path, extra = f"/v1/datasets/{dataset}/releases", f"Idempotency-Key: {key}\r\n"
        status, reply = await self.insist(kind, "POST", path, body, extra=extra)
        if status != 202:
            return None
        self.record.orders.setdefault(key, []).append(reply["id"])
        self.mine = (key, dataset, body)
        return str(reply["id"])

    async def upload(self, rows: int = 300) -> str | None:
        """A dataset. Sent again after no answer, it may be refused: the rows are there already."""
        fields = {"schema": json.dumps(SCHEMA), "budget": json.dumps({"epsilon": BUDGET}), "name": "endurance"}
        body, content_type = multipart(fields, table(rows))
        status, reply = await self.ask("upload", "POST", "/v1/datasets", body, content_type)
        if status != 201:
            return None
        self.record.uploads.append(reply["id"])
        return str(reply["id"])

    async def mixed(self, kind: str) -> None:
        """One request of a mixed client, or two."""
        dataset = random.choice(self.plan["datasets"])
        if kind == "cancelled":
            # Half of them want most of one budget: several at once do not fit.
            dataset, epsilon = random.choice([(dataset, 0.01), (self.plan["datasets"][-1], 0.8 * BUDGET)])
            release = await self.order("order", dataset, epsilon)
            if release is not None:
                self.release = release
                status, _ = await self.insist("cancel", "POST", f"/v1/releases/{release}/cancel")
                if status == 200:
                    self.record.cancelled.append(release)
        elif kind == "repeat":
            if self.mine is not None:
                await self.order_as("repeat", *self.mine)
        elif kind == "error":
            status = await error(self.http, {"dataset": dataset})
            self.record.statuses.setdefault(kind, Counter())[status] += 1
            await asyncio.sleep(0.0 if status else AGAIN_SECONDS)
        elif kind == "quote":
            body = json.dumps({**TRAINED, "epsilon": 0.5}).encode()
            await self.ask(kind, "POST", f"/v1/datasets/{dataset}/quotes", body)
        else:
            await self.ask(kind, "GET", self.path_of(kind, dataset))

    def path_of(self, kind: str, dataset: str) -> str:
        return {
            "budget": f"/v1/datasets/{dataset}/budget",
            "release": f"/v1/releases/{self.release}",
            "listing": random.choice(["/v1/releases?limit=20", "/v1/datasets?limit=20"]),
            "sample": f"/v1/releases/{self.plan['release']}/sample?rows=500",
        }[kind]

    async def mix(self, over: asyncio.Event) -> None:
        while not over.is_set():
            (kind,) = random.choices(list(MIX), list(MIX.values()))
            await self.mixed(kind)

    async def keep(self, over: asyncio.Event) -> None:
        """Order, follow it to its end, and order the next: until the budget is spent, then of another dataset."""
        dataset = None
        while not over.is_set():
            if dataset is None:
                dataset = await self.upload()
                await asyncio.sleep(1.0)
                continue
            release = await self.order("kept order", dataset, 0.4 * BUDGET)
            if release is None:
                dataset = None
            while release is not None and not over.is_set():
                _, reply = await self.ask("follow", "GET", f"/v1/releases/{release}")
                if reply.get("state") in ENDED:
                    break
                await asyncio.sleep(0.5)

    async def come_and_go(self, over: asyncio.Event) -> None:
        """Upload and erase."""
        while not over.is_set():
            dataset = await self.upload()
            await asyncio.sleep(3.0)
            if dataset is not None:
                status, _ = await self.insist("erase", "DELETE", f"/v1/datasets/{dataset}")
                if status in {204, 404, 410}:  # it may have been erased by a request that was not answered
                    self.record.erased.append(dataset)


async def run(plan: Plan) -> None:
    record, over = Record(), asyncio.Event()
    until = time.monotonic() + plan["seconds"]

    async def watch() -> None:
        while record.answered < plan["requests"] and time.monotonic() < until:
            print(json.dumps(record.progress()), flush=True)
            await asyncio.sleep(1.0)
        over.set()

    jobs = [Caller(plan, record).mix(over) for _ in range(plan["clients"])]
    jobs += [Caller(plan, record).keep(over) for _ in range(plan["keepers"])]
    await asyncio.gather(watch(), Caller(plan, record).come_and_go(over), *jobs)
    print(json.dumps(vars(record)), flush=True)


if __name__ == "__main__":
    uvloop.run(run(json.load(sys.stdin)))
