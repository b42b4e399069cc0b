"""The clients of the load bench, in a process of their own: `python -m bench.load.clients` with a plan as JSON on stdin.

Plan: {"host", "port", "seconds", "clients": [{"kind", "key", "dataset", "release", "order", "count"}]}.
Result, as JSON on stdout: for every kind its replies by status, its rate, and its waits in milliseconds.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from bench.load.http import Connection
from bench.servers import percentile

SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 1000, "required": True}},
        {"name": "weight", "type": "number", "constraints": {"minimum": 0.0, "maximum": 10.0}},
    ]
}
Spec = dict[str, Any]


def table(rows: int) -> bytes:
    """Rows that were never uploaded before."""
    rng = random.Random()
    lines = [
        f"{rng.choice(['red', 'green', 'blue'])},{rng.randint(0, 1000)},{rng.random() * 10:.6f}" for _ in range(rows)
    ]
    return ("colour,size,weight\n" + "\n".join(lines) + "\n").encode()


def multipart(fields: dict[str, str], file: bytes) -> tuple[bytes, str]:
    boundary = uuid.uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    ]
    last = f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="t.csv"\r\n\r\n'
    return "".join(parts).encode() + last.encode() + file + f"\r\n--{boundary}--\r\n".encode(), (
        f"multipart/form-data; boundary={boundary}"
    )


async def order(http: Connection, spec: Spec) -> int:
    body = json.dumps(spec["order"]).encode()
    path, key = f"/v1/datasets/{spec['dataset']}/releases", f"Idempotency-Key: {uuid.uuid4()}\r\n"
    return (await http.request("POST", path, body, extra=key))[0]


async def quote(http: Connection, spec: Spec) -> int:
    path = f"/v1/datasets/{spec['dataset']}/quotes"
    return (await http.request("POST", path, json.dumps(spec["order"]).encode()))[0]


async def budget(http: Connection, spec: Spec) -> int:
    return (await http.request("GET", f"/v1/datasets/{spec['dataset']}/budget"))[0]


async def sample(http: Connection, spec: Spec) -> int:
    return (await http.request("GET", f"/v1/releases/{spec['release']}/sample?rows=2000"))[0]


async def upload(http: Connection, spec: Spec) -> int:
    fields = {"schema": json.dumps(SCHEMA), "budget": json.dumps({"epsilon": 5.0}), "name": "load"}
    body, content_type = multipart(fields, table(spec.get("rows", 2_000)))
    return (await http.request("POST", "/v1/datasets", body, content_type))[0]


async def error(http: Connection, spec: Spec) -> int:
    """Everything that is refused: a dataset that does not exist, no JSON, an order that is none, a path that is none."""
    path = random.choice(
        [
            f"/v1/datasets/{uuid.uuid4()}/releases",
            f"/v1/datasets/{spec['dataset']}/releases",
            "/v1/datasets/42/quotes",
            "/v1/nothing",
        ]
    )
    body = random.choice([b"{", b"[]", b'{"method": "none"}', b'{"method": "idpgan", "epsilon": -1}'])
    return (await http.request("POST", path, body))[0]


KINDS: dict[str, Callable[[Connection, Spec], Awaitable[int]]] = {
    each.__name__: each for each in (order, quote, budget, sample, upload, error)
}


async def client(plan: Spec, spec: Spec, until: float, statuses: Counter[int], waits: list[float]) -> None:
    """One client: the next request when the last is answered, after a pause where the plan says so."""
    http = Connection(plan["host"], plan["port"], spec["key"])
    while time.monotonic() < until:
        began = time.perf_counter()
        statuses[await KINDS[spec["kind"]](http, spec)] += 1
        waits.append(time.perf_counter() - began)
        if pause := spec.get("pause_seconds", 0.0):
            await asyncio.sleep(pause * random.random() * 2)
    http.close()


async def run(plan: Spec) -> dict[str, Any]:
    began = time.monotonic()
    until, jobs, found = began + plan["seconds"], [], {}
    for spec in plan["clients"]:
        statuses, waits = found.setdefault(spec["kind"], (Counter(), []))
        jobs += [client(plan, spec, until, statuses, waits) for _ in range(spec["count"])]
    await asyncio.gather(*jobs)
    lasted = time.monotonic() - began
    return {
        kind: {
            "statuses": dict(statuses),
            "per_second": len(waits) / lasted,
            "p50_ms": 1e3 * percentile(waits, 0.5),
            "p99_ms": 1e3 * percentile(waits, 0.99),
            "longest_ms": 1e3 * max(waits),
        }
        for kind, (statuses, waits) in found.items()
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(run(json.load(sys.stdin)))))
