"""Memory of the API under hostile requests: the whole service on this machine, and a tenant that sends what costs most.

    python -m bench.memory [--requests 10000] [--minutes 60] [--write]

Quotes and orders of random, large and invalid knobs, nearly all of them distinct; schemas of a thousand fields, and quotes that seek
an ε for them; questions that are priced; listings of the largest pages; pages of a session, with lists, ledger and order form;
samples of every format, size and condition; streams of events; words that are no methods. Eight clients send as fast as they are
answered. Once a second the resident memory of the API process is read, and that of its children, which read
uploads and compute dear prices. Exits with 1 where both together end above 400 MiB, or where a reply was a server error.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil

from bench.load.clients import SCHEMA, table
from bench.pages import keep
from bench.servers import machine
from imprimatur import Client
from service.local import EmbeddedStack

GOAL_MIB = 400.0
CLIENTS = 8
WIDE = 1_000
SECONDS_A_REQUEST = 120.0
KINDS = {"quote": 30, "order": 15, "list": 10, "sample": 15, "odd": 10, "want": 8, "ask": 4, "page": 8}
"""Requests and their weights."""


def wide_schema(number: int) -> dict[str, Any]:
    """A thousand fields; every number another declaration."""
    return {
        "fields": [
            {"name": f"c{number}_{place}", "type": "integer", "constraints": {"minimum": 0, "maximum": 1_000 + place}}
            for place in range(WIDE)
        ]
    }


def wide_table() -> str:
    rng = random.Random()
    return "\n".join(",".join(str(rng.randint(0, 1_000)) for _ in range(WIDE)) for _ in range(30))


def knobs(rng: random.Random) -> dict[str, Any]:
    """An order that takes as much pricing as may be, or none at all."""
    steps = int(10 ** rng.uniform(0, 6))
    order: dict[str, Any] = {
        "method": rng.choice(["idpgan", "idpgan", "dpgan", "ganobfuscator", "marginals", "auto"]),
        "epsilon": 10 ** rng.uniform(-4, 1),
    }
    if rng.random() < 0.1:
        order = {"method": "idpgan", "share": rng.choice(["rest", 0.5, 1e-6])}
    if order["method"] in {"idpgan", "dpgan", "ganobfuscator"}:
        order |= {"steps": steps, "sampling_probability": min(1.0, 10 ** rng.uniform(-5, 0.1))}
    if order["method"] == "idpgan":
        order["noise_decay"] = rng.choice(
            [
                {"kind": "polynomial", "end_ratio": 10 ** rng.uniform(-3, 0), "power": rng.uniform(0.1, 5)},
                {"kind": "exponential", "rate": 10 ** rng.uniform(-3, 0)},
                {"kind": "constant"},
            ]
        )
        order["thresholds"] = {
            "kind": "adaptive",
            "every_steps": rng.choice([1, 2, 3, 50, 9_999]),
            "noise_ratio": 10 ** rng.uniform(-3, 2),
        }
        order["networks"] = {"generator_hidden": [rng.randint(1, 4_096) for _ in range(8)]}
    if order["method"] == "marginals":
        order["numeric_bins"] = rng.randint(2, 256)
    if rng.random() < 0.1:
        order[rng.choice(["epsilon", "steps", "nonsense", "condition_on"])] = rng.choice(
            ["x" * 5_000, -1, None, [], 1e400]
        )
    return order


def wanted(rng: random.Random) -> dict[str, Any]:
    """A quote that leaves ε open, of a table of a thousand fields: a search over forecasts, each time another one."""
    order: dict[str, Any] = {"method": "marginals", "numeric_bins": rng.randint(2, 256)}
    if rng.random() < 0.5:
        order["pairs"] = rng.choice(["all", "chosen", "none"])
    want = rng.choice(
        [
            {"group": rng.randint(1, 1_000), "within": rng.uniform(0.01, 0.9), "columns": rng.choice([1, 2])},
            {"one_way_tv": rng.uniform(1e-3, 0.9)},
            {"two_way_tv": rng.uniform(1e-3, 0.9)},
        ]
    )
    return {**order, "want": want}


def questions(rng: random.Random) -> dict[str, Any]:
    """Up to a hundred questions, to be priced alone; `epsilon` may be too large."""
    colour = rng.choice(["red", "red", "green", "blue", "grey"])  # the last is none
    asked = [
        {"kind": "count", "where": f"size>={rng.randint(0, 1_000)}&colour={colour}"}
        for _ in range(int(10 ** rng.uniform(0, 2)))
    ]
    return {"questions": asked, "epsilon": 10 ** rng.uniform(-4, 1), "dry_run": True}


class Hostile:
    """One client after another asks; each by itself."""

    def __init__(self, url: str, keys: list[str], datasets: list[str], release: str) -> None:
        self.url, self.keys, self.datasets, self.release = url, keys, datasets, release
        self.wide = datasets[1:]
        self.replies: Counter[str] = Counter()
        self.left, self.deadline = 0, 0.0
        self.lock = threading.Lock()

    def run(self, requests: int, seconds: float) -> None:
        self.left, self.deadline = requests, time.monotonic() + seconds
        threads = [threading.Thread(target=self._client, args=(number,)) for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _client(self, number: int) -> None:
        rng = random.Random(number)
        headers = {"Authorization": f"Bearer {self.keys[number % len(self.keys)]}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=SECONDS_A_REQUEST) as http:
            http.post("/sign-in", data={"key": self.keys[number % len(self.keys)]})  # the cookie stays with this client
            while True:
                with self.lock:
                    if not self.left or time.monotonic() > self.deadline:
                        return
                    self.left -= 1
                kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
                try:
                    status = str(getattr(self, f"_{kind}")(http, rng))
                except httpx.HTTPError as error:
                    status = type(error).__name__
                with self.lock:
                    self.replies[f"{kind} {status}"] += 1

    def _quote(self, http: httpx.Client, rng: random.Random) -> int:
        path = f"/v1/datasets/{rng.choice(self.datasets)}/quotes"
        body = json.dumps(knobs(rng))
        # A type with parameters goes past the quick routes.
        kind = rng.choice(["application/json", "application/json; charset=utf-8"])
        return http.post(path, content=body, headers={"Content-Type": kind}).status_code

    def _want(self, http: httpx.Client, rng: random.Random) -> int:
        return http.post(f"/v1/datasets/{rng.choice(self.wide)}/quotes", json=wanted(rng)).status_code

    def _ask(self, http: httpx.Client, rng: random.Random) -> int:
        return http.post(f"/v1/datasets/{self.datasets[0]}/queries", json=questions(rng)).status_code

    def _page(self, http: httpx.Client, rng: random.Random) -> int:
        dataset = rng.choice(self.datasets)
        path = rng.choice(["", "/ledger", "/order", "/order/knobs?method=idpgan", None])
        return http.get("/datasets" if path is None else f"/datasets/{dataset}{path}").status_code

    def _order(self, http: httpx.Client, rng: random.Random) -> int:
        order = {**knobs(rng), "epsilon": 1e-4 * rng.uniform(1, 2)}
        order.pop("share", None)
        path = f"/v1/datasets/{rng.choice(self.datasets)}/releases"
        reply = http.post(path, content=json.dumps(order), headers={"Content-Type": "application/json"})
        if reply.status_code == httpx.codes.ACCEPTED:
            http.post(f"/v1/releases/{reply.json()['id']}/cancel")
        return reply.status_code

    def _list(self, http: httpx.Client, rng: random.Random) -> int:
        dataset = rng.choice(self.datasets)
        path = rng.choice(
            [
                "releases",
                "datasets",
                "keys",
                "audit",
                f"datasets/{dataset}/ledger",
                f"ledger/proof?dataset_id={dataset}",
            ]
        )
        return http.get(f"/v1/{path}{'&' if '?' in path else '?'}limit=1000").status_code

    def _sample(self, http: httpx.Client, rng: random.Random) -> int:
        query: dict[str, Any] = {"rows": int(10 ** rng.uniform(0, 5)), "seed": rng.randrange(2**62)}
        query["format"] = rng.choice(["csv", "jsonl", "parquet", "arrow", "png", "npz"])
        if rng.random() < 0.5:
            query["where"] = rng.choice(["colour:red", f"colour:{uuid.uuid4()}", "size:5", "nonsense"])
        with http.stream("GET", f"/v1/releases/{self.release}/sample", params=query) as reply:
            for _ in reply.iter_bytes():
                if rng.random() < 0.02:
                    break
            return reply.status_code

    def _odd(self, http: httpx.Client, rng: random.Random) -> int:
        what = rng.randrange(4)
        if what == 0:
            return http.request(uuid.uuid4().hex[:8].upper(), "/v1/datasets").status_code
        if what == 1:
            return http.get(f"/v1/{uuid.uuid4()}/{'x' * rng.randrange(5_000)}").status_code
        if what == 2:
            return http.get("/v1/datasets", headers={"Authorization": f"Bearer {uuid.uuid4()}"}).status_code
        with http.stream("GET", f"/v1/releases/{self.release}/events") as reply:
            for _ in reply.iter_lines():
                break
            return reply.status_code


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=600.0, help="end after so long, whatever is left")
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    memory: list[tuple[int, float, float]] = []
    with tempfile.TemporaryDirectory(prefix="imprimatur-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with EmbeddedStack(folder / "data", 0, on_part=print) as stack:
            hostile = prepared(stack, folder)
            api = psutil.Process(stack.pids["api"])
            over = threading.Event()
            watching = threading.Thread(target=_watch, args=(api, memory, hostile, over))
            first = resident(api)
            watching.start()
            began = time.monotonic()
            hostile.run(options.requests, 60.0 * options.minutes)
            seconds = time.monotonic() - began
            time.sleep(5.0)
            last = resident(api)
            over.set()
            watching.join()
    faults = sum(
        n for reply, n in hostile.replies.items() if not reply.split()[1].isdigit() or reply.split()[1] >= "500"
    )
    busy = hostile.replies  # 503 of a busy service counts as a fault, too
    sent = hostile.replies.total()
    marks = [lowest_near(memory, round(sent * part)) for part in (0.1, 0.25, 0.5, 0.75)]
    text = (
        f"{machine()}; {sent:,} requests of {CLIENTS} clients in {seconds:.0f} s. Resident memory of the API and its "
        f"children: {first:.0f} MiB before, {last:.0f} MiB after the last reply (goal < {GOAL_MIB:.0f}). On the way the API alone: "
        f"{', '.join(f'{mib:.0f} after {number:,}' for number, mib in marks)} (the least of a minute around, between two prices). The "
        f"most in any second, with prices being computed and samples drawn: {max(own for _, own, _ in memory):.0f} MiB, and "
        f"{max(children for _, _, children in memory):.0f} in its children. {faults} server errors or broken connections.\n\n"
        "| request | status | replies |\n|---|---|---|\n"
        + "\n".join(f"| {reply.split()[0]} | {reply.split()[1]} | {n:,} |" for reply, n in sorted(busy.items()))
    )
    print(text)
    if options.write:
        keep("memory", text)
    return 1 if faults or last > GOAL_MIB else 0


def prepared(stack: EmbeddedStack, folder: Path) -> Hostile:
    """A published release, wide and narrow datasets, keys of each scope."""
    with Client(stack.url, stack.admin_key, timeout=SECONDS_A_REQUEST) as client:
        narrow = folder / "narrow.csv"
        narrow.write_bytes(table(2_000))
        dataset = client.create_dataset(narrow, SCHEMA, epsilon=10.0, name="narrow")["id"]
        release = client.create_release(dataset, {"method": "marginals", "epsilon": 1.0})["id"]
        state = client.wait(release, timeout=600.0)["state"]
        if state != "published":
            raise RuntimeError(f"the release that samples are drawn from is {state}")
        datasets = [dataset]
        for number in range(5):
            schema, path = wide_schema(number), folder / f"wide{number}.csv"
            path.write_text(
                ",".join(f["name"] for f in schema["fields"]) + "\n" + wide_table() + "\n", encoding="utf-8"
            )
            datasets.append(client.create_dataset(path, schema, epsilon=10.0**-number, name=f"wide {number}")["id"])
        keys = [client.create_key(f"key {number}", "owner")["key"] for number in range(4)]
    return Hostile(stack.url, keys, datasets, release)


def resident(process: psutil.Process) -> float:
    """MiB of the process and its children."""
    total = process.memory_info().rss
    with suppress(psutil.NoSuchProcess):  # a child that ends just now
        for each in process.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                total += each.memory_info().rss
    return total / 2**20


def lowest_near(memory: list[tuple[int, float, float]], number: int) -> tuple[int, float]:
    """The least that the API held within half a minute of that request, and the request."""
    place = next((place for place, (sent, *_) in enumerate(memory) if sent >= number), len(memory) - 1)
    return number, min(own for _, own, _ in memory[max(0, place - 30) : place + 31])


def _watch(
    process: psutil.Process, memory: list[tuple[int, float, float]], hostile: Hostile, over: threading.Event
) -> None:
    while not over.wait(1.0):
        own = process.memory_info().rss / 2**20
        memory.append((hostile.replies.total(), own, max(0.0, resident(process) - own)))
        if not len(memory) % 60:
            number, least = lowest_near(memory, hostile.replies.total())
            print(f"{number:,} requests: {least:.0f} MiB without children", flush=True)


if __name__ == "__main__":
    sys.exit(main())
