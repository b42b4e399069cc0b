"""A full disk under each part in turn: nothing lost, nothing charged twice, and everything goes on when there is room again.

    python -m bench.disks [--seconds 30] [--only PART] [--write]

The folders of Postgres, the object store, uploads and logs are file systems of their own, in memory (Linux, root, in a mount
namespace of the process). One after the other is filled to its last byte while releases are trained, tables uploaded, orders
placed and samples read; then the room comes back, and everything is counted as by `bench.endurance`. `--write` records it in
bench/results/endurance.md. Exit status 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from bench.endurance.checks import Verdict, judge
from bench.faults.stack import ORDER, BrokenPromise, FaultyStack
from bench.load.clients import SCHEMA, table
from bench.pages import keep
from bench.servers import machine

NAMESPACE = "IMPRIMATUR_DISKS_NAMESPACE"
SIZES = {"postgres": "400m", "objects": "64m", "scratch": "64m", "logs": "16m"}
"""Of the file systems; what is full when a bench begins must not be."""
LEASE_SECONDS = 6.0
BUDGET = 8.0
MOST_ORDERS = 3
"""While one disk is full: each is trained, after it at the latest."""
CLIENT_TIMEOUT_SECONDS = 30.0
ENDED = ("published", "failed", "voided")


@dataclass
class Seen:
    """The answers while one disk was full, and what was promised by them."""

    statuses: Counter[str] = field(default_factory=Counter)
    orders: dict[str, list[str]] = field(default_factory=dict)
    uploads: list[str] = field(default_factory=list)
    recovery_seconds: float = 0.0


class Disks:
    """A service whose parts have disks of their own."""

    def __init__(self, folder: Path) -> None:
        self.places = {name: folder / "data" / name for name in SIZES} | {"scratch": folder / "scratch"}
        for name, place in self.places.items():
            place.mkdir(parents=True, mode=0o700)
            subprocess.run(("mount", "-t", "tmpfs", "-o", f"size={SIZES[name]},mode=0700", "tmpfs", place), check=True)
        self.places["postgres"].chmod(0o755)
        self.stack = FaultyStack(folder, lease_seconds=LEASE_SECONDS, durable=True, scratch_dir=self.places["scratch"])

    def fill(self, name: str) -> Path:
        """Take every byte that is left, and keep taking what is freed."""
        ballast = self.places[name] / f"ballast-{uuid.uuid4()}"
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12, 1):
                with suppress(OSError):
                    while True:
                        file.write(bytes(size))
        return ballast


class Clients:
    """What is asked of the service while a disk is full."""

    def __init__(self, stack: FaultyStack, folder: Path) -> None:
        self.stack, self.folder = stack, folder
        self.http = httpx.Client(
            base_url=stack.url,
            headers={"Authorization": f"Bearer {stack.admin_key}"},
            timeout=CLIENT_TIMEOUT_SECONDS,
        )

    def ask(self, seen: Seen, kind: str, method: str, path: str, **request: Any) -> httpx.Response | None:
        try:
            reply = self.http.request(method, path, **request)
        except httpx.TransportError:
            seen.statuses[f"{kind} 0"] += 1
            return None
        seen.statuses[f"{kind} {reply.status_code}"] += 1
        return reply

    def upload(self, seen: Seen) -> str | None:
        form = {"schema": json.dumps(SCHEMA), "budget": json.dumps({"epsilon": BUDGET}), "name": "disks"}
        reply = self.ask(seen, "upload", "POST", "/v1/datasets", data=form, files={"file": ("t.csv", table(300))})
        if reply is None or reply.status_code != 201:
            return None
        seen.uploads.append(reply.json()["id"])
        return str(reply.json()["id"])

    def order(self, seen: Seen, dataset: str, epsilon: float = 0.1) -> str | None:
        key = str(uuid.uuid4())
        order = {**ORDER, "condition_on": None, "epsilon": epsilon}
        path, headers = f"/v1/datasets/{dataset}/releases", {"Idempotency-Key": key}
        reply = self.ask(seen, "order", "POST", path, json=order, headers=headers)
        if reply is None or reply.status_code != 202:
            return None
        seen.orders.setdefault(key, []).append(reply.json()["id"])
        return str(reply.json()["id"])


def full(disks: Disks, clients: Clients, part: str, dataset: str, published: str, seconds: float) -> Seen:
    """Fill one disk for a while, with a release that is being trained; then wait until all has ended."""
    seen = Seen()
    clients.order(seen, dataset)  # is under way when the disk is full
    time.sleep(1.0)
    deadline = time.monotonic() + seconds
    ballasts = []
    while time.monotonic() < deadline:
        with suppress(OSError):
            ballasts.append(disks.fill(part))
        clients.ask(seen, "budget", "GET", f"/v1/datasets/{dataset}/budget")
        if len(seen.orders) < MOST_ORDERS:
            clients.order(seen, dataset)
        clients.upload(seen)
        clients.ask(seen, "sample", "GET", f"/v1/releases/{published}/sample?rows=500")
        time.sleep(0.5)
    for ballast in ballasts:
        ballast.unlink(missing_ok=True)
    began = time.monotonic()
    disks.stack.wait_until_ready()
    for ids in seen.orders.values():
        disks.stack.wait(ids[0], until=ENDED, seconds=180.0)
    disks.stack.wait_until_idle()
    seen.recovery_seconds = time.monotonic() - began
    return seen


def wrong_in(stack: FaultyStack, part: str, seen: Seen) -> list[str]:
    """An answer that blames a full disk on the caller, or on nothing, and releases that a full disk cost their price."""
    bad = [each for each in seen.statuses if int(each.split()[1]) >= 500 and not each.endswith(" 503")]
    wrong = [f"{part}: answers {each} × {seen.statuses[each]}" for each in bad]
    if part == "logs" and any(each.endswith((" 0", " 503")) for each in seen.statuses):
        wrong.append(f"logs: full, and the service stopped: {dict(seen.statuses)}")
    for ids in seen.orders.values():
        release = stack.release(ids[0])
        if release.state != "published":
            wrong.append(f"{part}: release {ids[0]} ended {release.state}: {release.failure}")
    return wrong


def run(folder: Path, parts: list[str], seconds: float) -> tuple[dict[str, Seen], Verdict]:
    disks, found, wrong = Disks(folder), {}, []
    with disks.stack as stack:
        clients, before = Clients(stack, folder), Seen()
        dataset = clients.upload(before)
        published = None if dataset is None else clients.order(before, dataset)
        if dataset is None or published is None or stack.wait(published).state != "published":
            raise BrokenPromise(f"the first release was not published: {before.statuses}")
        for part in parts:
            fresh = clients.upload(before)
            if fresh is None:
                raise BrokenPromise(f"no upload before {part} was full: {before.statuses}")
            found[part] = full(disks, clients, part, fresh, published, seconds)
            wrong += wrong_in(stack, part, found[part])
            print(part, dict(found[part].statuses), f"{found[part].recovery_seconds:.0f} s", wrong, flush=True)
        record = {
            "orders": {key: ids for seen in (before, *found.values()) for key, ids in seen.orders.items()},
            "uploads": [each for seen in (before, *found.values()) for each in seen.uploads],
            "erased": [],
        }
        verdict = judge(stack, record)
    verdict.broken = wrong + verdict.broken
    return found, verdict


def page(found: dict[str, Seen], verdict: Verdict, seconds: float) -> str:
    return "\n".join(
        [
            f"{machine()}; other work ran on the same machine. `python -m bench.disks`: each disk full for {seconds:g} s.",
            "",
            f"Broken promises: {'; '.join(verdict.broken) or 'none'}.",
            ", ".join(f"{name}: {count:,}" for name, count in verdict.counts.items()) + ".",
            "",
            "| full disk | answers (0: none) | s until all orders had ended |",
            "|---|---|---|",
            *(
                f"| {part} | {', '.join(f'{name}: {n}' for name, n in sorted(seen.statuses.items()))} | {seen.recovery_seconds:.0f} |"
                for part, seen in found.items()
            ),
        ]
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--only", choices=sorted(SIZES), help="one part")
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    if NAMESPACE not in os.environ:
        # What is mounted is seen by this process and its children alone, and is gone with them.
        command = ("unshare", "--mount", sys.executable, "-m", "bench.disks", *sys.argv[1:])
        return subprocess.run(command, env={**os.environ, NAMESPACE: "yes"}, check=False).returncode
    parts = [options.only] if options.only else list(SIZES)
    with tempfile.TemporaryDirectory(prefix="imprimatur-disks-") as name:
        Path(name).chmod(0o755)
        found, verdict = run(Path(name), parts, options.seconds)
        for place in SIZES:
            where = Path(name) / ("scratch" if place == "scratch" else f"data/{place}")
            subprocess.run(("umount", "--lazy", where), check=False)
    text = page(found, verdict, options.seconds)
    print(text)
    if options.write:
        keep("endurance", text, "a full disk under each part")
    return 1 if verdict.broken else 0


if __name__ == "__main__":
    sys.exit(main())
