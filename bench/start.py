"""How soon things are ready: the API process and its memory, the client's import, a price cold and warm.

    python -m bench.start [--runs 7] [--write]

Each run is a process of its own, kinds interleaved. A start is measured from the process's birth to its first answer on
/healthz; memory then, and again when the background has imported what prices need.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil

from bench.pages import keep
from bench.servers import machine
from service.local.servers import free_port

CLIENT = "import time; began = time.perf_counter(); import imprimatur.client; print(time.perf_counter() - began)"
PRICE = """
import time
from service.privacy.filters import open_budget
from service.methods.catalogue import parse_order
from service.methods.pricing import price_order
from service.privacy.accounting import renyi_divergence
budget, began = open_budget(10.0, 1e-6), time.perf_counter()
price_order(parse_order({"method": "idpgan", "epsilon": 1.0, "sampling_probability": 0.00512}), budget)
first = time.perf_counter() - began
order = parse_order({"method": "idpgan", "epsilon": 2.0, "steps": 300, "sampling_probability": 0.00512})
began = time.perf_counter()
price_order(order, budget)
new = time.perf_counter() - began
price = price_order(order, budget)
began = time.perf_counter()
renyi_divergence(price.events, budget.renyi_order)
renyi = time.perf_counter() - began
began = time.perf_counter()
price_order(order, budget)
again = time.perf_counter() - began
began = time.perf_counter()
price_order(parse_order({"method": "marginals", "epsilon": 2.0, "pairs": "all"}), budget)
marginals = time.perf_counter() - began
began = time.perf_counter()
price_order(parse_order({"method": "idpgan", "epsilon": 2.0, "sampling_probability": 0.00512}), budget)
print(first, new, renyi, again, marginals, time.perf_counter() - began)
"""
GOALS = {
    "API answers, s": "< 1.5",
    "API's memory at its first answer, MiB": "< 200",
    "API's memory with all a price needs, MiB": "< 200",
    "import imprimatur.client, s": "< 0.3",
    "first price of a process, imports included, ms": "",
    "price of an order not seen before (IDPGAN, 300 steps), ms": "",
    "… of which the ledger cost (Rényi), ms": "< 50",
    "price of an order seen before, ms": "< 50",
    "price of an order of marginals not seen before, ms": "",
    "price of 3,000 steps of IDPGAN not seen before, ms": "",
}
SETTLED_SECONDS = 8.0


def start_api(folder: Path) -> list[float]:
    """[seconds to the first answer, MiB then, MiB once the background is done]"""
    port = free_port()
    secret = folder / "secret.key"
    secret.write_bytes(os.urandom(32))
    environment = {
        **os.environ,
        "IMPRIMATUR_DATABASE_URL": "postgresql+psycopg://nobody@/none?host=/nowhere",
        "IMPRIMATUR_REDIS_URL": "redis://127.0.0.1:1/0",
        "IMPRIMATUR_STORAGE_URL": folder.as_uri(),
        "IMPRIMATUR_SECRET_KEY_FILE": str(secret),
    }
    command = [
        *(sys.executable, "-m", "uvicorn", "service.http.app:create_app", "--factory", "--port", str(port)),
        *("--http", "service.http.protocol:ImpatientProtocol", "--no-proxy-headers", "--no-server-header"),
        *("--no-access-log", "--log-level", "error"),
    ]
    began = time.monotonic()
    with subprocess.Popen(command, env=environment) as process:
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=5).close()
                break
            except OSError:
                assert process.poll() is None
                time.sleep(0.01)
        took, memory = time.monotonic() - began, psutil.Process(process.pid).memory_info().rss / 2**20
        time.sleep(SETTLED_SECONDS)
        settled = psutil.Process(process.pid).memory_info().rss / 2**20
        process.terminate()
    return [took, memory, settled]


def run(code: str) -> list[float]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [float(word) for word in done.stdout.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="one run")
    parser.add_argument("--write", action="store_true", help="record the result in bench/results")
    options = parser.parse_args()
    found: list[list[float]] = []
    with tempfile.TemporaryDirectory() as name:
        for _ in range(1 if options.quick else options.runs):
            prices = [1e3 * seconds for seconds in run(PRICE)]
            found.append([*start_api(Path(name)), *run(CLIENT), *prices])
    lines = [
        f"{machine()}; {len(found)} runs, each in a process of its own.",
        "",
        "| | median | least – most | goal |",
        "|---|---|---|---|",
    ]
    for (name, goal), values in zip(GOALS.items(), zip(*found, strict=True), strict=True):
        lines.append(f"| {name} | {statistics.median(values):.2f} | {min(values):.2f} – {max(values):.2f} | {goal} |")
    text = "\n".join(lines) + "\n"
    print(text)
    if options.write:
        keep("start", text)


if __name__ == "__main__":
    main()
