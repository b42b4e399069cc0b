"""Two hundred samples read at full speed at once: all whole, memory of the API bounded.

    python -m bench.samples [--readers 200] [--rows 20000] [--write]

One release of a small table; every reader asks for its rows as CSV and counts what comes. `--write` records it in
bench/results/endurance.md. Exit status 1 if a sample was not whole.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.endurance.clients import TRAINED
from bench.load.clients import SCHEMA, table
from bench.load.http import Connection
from bench.pages import keep
from bench.servers import machine
from imprimatur import Client
from service.local import EmbeddedStack


@dataclass
class Found:
    """What came."""

    answers: Counter[str]
    seconds: float
    before_mib: float
    most_mib: float
    rows: int

    @property
    def whole(self) -> bool:
        return set(self.answers) == {"whole"}


async def read(port: int, key: str, release: str, rows: int, readers: int) -> Counter[str]:
    answers: Counter[str] = Counter()

    async def one() -> None:
        http = Connection("127.0.0.1", port, key)
        status, body = await http.request("GET", f"/v1/releases/{release}/sample?rows={rows}&format=csv")
        http.close()
        lines = body.count(b"\n")
        answers["whole" if status == 200 and lines == rows + 1 else f"{status}, {lines} lines"] += 1

    await asyncio.gather(*(one() for _ in range(readers)))
    return answers


def measure(folder: Path, readers: int, rows: int) -> Found:
    with EmbeddedStack(folder / "data", 0) as stack:
        path = folder / "table.csv"
        path.write_bytes(table(300))
        with Client(stack.url, stack.admin_key, timeout=120.0) as client:
            dataset = client.create_dataset(path, SCHEMA, epsilon=5.0, name="samples")["id"]
            release = client.create_release(dataset, {**TRAINED, "epsilon": 1.0})["id"]
            client.wait(release, timeout=300.0)
            with client.sample(release, rows=1_000) as pieces:
                sum(1 for _ in pieces)
        api, over = psutil.Process(stack.pids["api"]), threading.Event()
        memory = [api.memory_info().rss / 2**20]

        def watch() -> None:
            while not over.wait(0.1):
                with suppress(psutil.NoSuchProcess):
                    memory.append(api.memory_info().rss / 2**20)

        watching = threading.Thread(target=watch)
        watching.start()
        began = time.monotonic()
        answers = asyncio.run(read(stack.port, stack.admin_key, release, rows, readers))
        seconds = time.monotonic() - began
        over.set()
        watching.join()
        return Found(answers, seconds, memory[0], max(memory), rows * answers["whole"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=200)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="imprimatur-samples-") as name:
        Path(name).chmod(0o755)
        found = measure(Path(name), options.readers, options.rows)
    text = (
        f"{machine()}; other work ran on the same machine. `python -m bench.samples`: {options.readers} readers at once, "
        f"{options.rows:,} rows each as CSV: {', '.join(f'{count} {what}' for what, count in found.answers.items())}, in "
        f"{found.seconds:.0f} s, {found.rows / found.seconds:,.0f} rows/s together. Memory of the API: {found.before_mib:.0f} MiB "
        f"before, {found.most_mib:.0f} MiB at most."
    )
    print(text)
    if options.write:
        keep("endurance", text, "samples at once")
    return 0 if found.whole else 1


if __name__ == "__main__":
    sys.exit(main())
