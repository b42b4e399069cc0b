"""How soon a cancelled job is gone, by method and by the phase in which it was cancelled: its process, and its release's end.

    python -m bench.cancels [--only METHOD] [--repeats 1]

A service of its own in a temporary folder; tables and images are made up. A phase that is over before it can be cancelled says nothing.
Prints a table.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from imprimatur import ApiError, Client
from service.local import EmbeddedStack

CHEAP = {"thresholds": {"kind": "fixed"}, "noise_decay": {"kind": "constant"}}
TABLE_ORDERS: dict[str, dict[str, Any]] = {
    "marginals": {"method": "marginals", "pairs": "all"},
    "idpgan": {"method": "idpgan", "steps": 20_000, "warm_start": {"kind": "none"}, **CHEAP},
    "idpgan, tables first": {"method": "idpgan", "steps": 20_000, **CHEAP},
    "dpgan": {"method": "dpgan", "steps": 20_000},
    "ganobfuscator": {"method": "ganobfuscator", "steps": 20_000},
}
IMAGE_ORDERS: dict[str, dict[str, Any]] = {
    "mixture": {"method": "mixture"},
    "idpgan, images": {"method": "idpgan", "steps": 20_000, "warm_start": {"kind": "none"}, **CHEAP},
    "idpgan, convolutions": {"method": "idpgan", "steps": 5_000, "image_networks": {"layers": "convolutions"}, **CHEAP},
    "dpacgan": {"method": "dpacgan", "steps": 20_000},
}
PHASES = ("charging", "reading", "warming up", "training", "bundling")
SOON_SECONDS = 0.02
GIVEN_UP_SECONDS = 120.0
COLUMNS, ROWS, IMAGES, SIDE = 12, 50_000, 10_000, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=1)
    asked = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="imprimatur-cancels-") as folder:
        Path(folder).chmod(0o755)
        with EmbeddedStack(Path(folder) / "data", 0) as stack, Client(stack.url, stack.admin_key) as client:
            table, images = _table(client, Path(folder)), _images(client, Path(folder))
            for orders, dataset in ((TABLE_ORDERS, table), (IMAGE_ORDERS, images)):
                for name, order in orders.items():
                    if asked.only in name:
                        rows += [_row(stack, client, dataset, name, order, phase, asked.repeats) for phase in PHASES]
    found = [row for row in rows if row is not None]
    longest = max(gone for _, gone, _ in found)
    lines = "\n".join(line for line, _, _ in found)
    page = f"""\
`python -m bench.cancels`; {os.cpu_count()} processors, {platform.machine()}, load {os.getloadavg()[0]:.1f}; a table of {ROWS:,} × {COLUMNS}, {IMAGES:,} images of {SIDE} × {SIDE}. Seconds from the answer to the cancel until
the process was gone, and until the release had ended; the longest of {asked.repeats}. Over all, a process was gone after {longest:.1f} s at most.

| method | cancelled while | process gone, s | release ended, s | it ended |
|---|---|---:|---:|---|
{lines}
"""
    print(page)


def _row(
    stack: EmbeddedStack, client: Client, dataset: str, name: str, order: dict[str, Any], phase: str, repeats: int
) -> tuple[str, float, float] | None:
    tried = [_cancelled(stack, client, dataset, order, phase) for _ in range(repeats)]
    found = [each for each in tried if each is not None]
    if not found:
        return None
    gone, ended = max(each[0] for each in found), max(each[1] for each in found)
    print(f"{name}, {phase}: {gone:.1f} s, {ended:.1f} s, {found[-1][2]}", flush=True)
    return f"| {name} | {phase} | {gone:.1f} | {ended:.1f} | {found[-1][2]} |", gone, ended


def _cancelled(
    stack: EmbeddedStack, client: Client, dataset: str, order: dict[str, Any], phase: str
) -> tuple[float, float, str] | None:
    """Seconds until the process is gone and until the release has ended, and how; None where the phase was missed."""
    made = client.create_release(dataset, {"epsilon": 0.5, **order})["id"]
    given_up = time.monotonic() + GIVEN_UP_SECONDS
    while (now := client.release(made))["progress"]["phase"] != phase:
        if now["state"] in {"published", "failed"} or time.monotonic() > given_up:
            break
        time.sleep(SOON_SECONDS)
    missed = now["progress"]["phase"] != phase
    if not missed:
        time.sleep(random.uniform(0.0, 1.0) if phase != "bundling" else 0.0)
    try:
        client.cancel(made)
    except ApiError:  # it has ended
        return None
    began = time.monotonic()
    gone = ended = None
    while gone is None or ended is None:
        if gone is None and not _runs(stack, made):
            gone = time.monotonic() - began
        now = client.release(made)
        if ended is None and now["state"] in {"published", "failed", "voided"}:
            ended = time.monotonic() - began
        if time.monotonic() - began > GIVEN_UP_SECONDS:
            raise RuntimeError(f"{order}: not ended {GIVEN_UP_SECONDS:.0f} s after its cancel in {phase}")
        time.sleep(SOON_SECONDS)
    return None if missed else (gone, ended, now["failure"] or now["state"])


def _runs(stack: EmbeddedStack, release_id: str) -> bool:
    """Whether a process computes for it, one that only settles included."""
    for name, pid in stack.pids.items():
        if name.startswith("worker"):
            for child in psutil.Process(pid).children():
                try:
                    if release_id in child.cmdline():
                        return True
                except psutil.Error:
                    continue
    return False


def _table(client: Client, folder: Path) -> str:
    rng = np.random.default_rng()
    fields = [
        {"name": f"c{place}", "type": "integer", "constraints": {"minimum": 0, "maximum": 999, "required": True}}
        for place in range(COLUMNS)
    ]
    path = folder / "table.csv"
    lines = (",".join(map(str, row)) for row in rng.integers(0, 1_000, (ROWS, COLUMNS)).tolist())
    path.write_text("\n".join([",".join(str(field["name"]) for field in fields), *lines]) + "\n", encoding="utf-8")
    return client.create_dataset(path, {"fields": fields}, epsilon=20.0, name="table")["id"]


def _images(client: Client, folder: Path) -> str:
    rng = np.random.default_rng()
    path = folder / "images.npz"
    pixels = rng.integers(0, 256, (IMAGES, SIDE, SIDE), dtype=np.uint8)
    np.savez(path, images=pixels, labels=np.arange(IMAGES) % 10)
    schema = {"type": "image", "height": SIDE, "width": SIDE, "channels": 1, "classes": 10}
    return client.create_dataset(path, schema, epsilon=20.0, name="images")["id"]


if __name__ == "__main__":
    main()
