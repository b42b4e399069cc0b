"""SIGKILL at every transition of an order: 28 points, 10 runs each, on the real service.

    python -m bench.faults [--runs 10] [--only TEXT] [--lanes 2] [--lease-seconds 20] [--quick]

Every run arms one point, orders a small release, and asks afterwards: published, charged once and before that, the chain
whole; and after each point: nothing in storage that no row names. Half the runs kill one process, half its whole process
group, as when a machine dies. Writes bench/results/faults.md; exit status 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import re
import statistics
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from bench.faults.points import POINTS, Point
from bench.faults.stack import BUDGET, ORDER, BrokenPromise, FaultyStack
from bench.pages import keep

LEASE_SECONDS = 20.0
"""A third of the default: what a new worker and a new training process import must fit into one here."""
RUNS_A_DATASET = int(BUDGET / ORDER["epsilon"])


@dataclass
class Outcome:
    """What one point did."""

    seconds: list[float] = field(default_factory=list)
    attempts: int = 0
    swept: int = 0
    broken: list[str] = field(default_factory=list)


def run_point(stack: FaultyStack, point: Point, runs: int) -> Outcome:
    """Kill `runs` orders at one point; how long each took from the kill to its end, and what went wrong."""
    outcome = Outcome()
    for number in range(runs):
        if number % RUNS_A_DATASET == 0:
            dataset = stack.new_dataset()
        stack.wait_until_idle()  # else the last order's worker may run into the point meant for the next one
        stack.arm(point.name, point.scopes[number % len(point.scopes)])
        try:
            release_id = stack.order(dataset)
            ended = stack.wait(release_id)
            fired = stack.wait_until_fired()
            outcome.seconds.append(max(0.0, ended.updated_at.timestamp() - fired))
            outcome.attempts = max(outcome.attempts, ended.attempts)
            stack.wait_until_ready()
            stack.check_published(dataset, release_id)
        except BrokenPromise as error:
            outcome.broken.append(f"{point.name} #{number + 1}: {error}")
    try:
        outcome.swept = stack.check_storage()
    except BrokenPromise as error:
        outcome.broken.append(f"{point.name}: {error}")
    return outcome


def run_all(points: list[Point], runs: int, lanes: int, lease_seconds: float = LEASE_SECONDS) -> dict[str, Outcome]:
    """Every point on one of `lanes` services; waiting for leases leaves the processor to the other lane."""
    waiting: SimpleQueue[Point] = SimpleQueue()
    for point in points:
        waiting.put(point)
    outcomes: dict[str, Outcome] = {}
    starting = threading.Lock()

    def lane(folder: Path) -> None:
        with ExitStack() as exits:
            with starting:  # migrations are not made for threads
                stack = exits.enter_context(FaultyStack(folder, lease_seconds=lease_seconds))
            while True:
                try:
                    point = waiting.get_nowait()
                except Empty:
                    return
                try:
                    outcomes[point.name] = run_point(stack, point, runs)
                except Exception as error:  # noqa: BLE001 - said, counted, and the lane goes on
                    outcomes[point.name] = Outcome(broken=[f"{point.name}: {error!r}"])
                outcome = outcomes[point.name]
                worst = max(outcome.seconds, default=float("nan"))
                print(
                    f"{point.name}: {len(outcome.seconds)} runs, worst {worst:.1f} s, {outcome.broken or 'kept'}",
                    flush=True,
                )

    with tempfile.TemporaryDirectory(prefix="imprimatur-faults-") as home:
        Path(home).chmod(0o755)
        threads = [threading.Thread(target=lane, args=(Path(home) / str(number),)) for number in range(lanes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return outcomes


def table(points: list[Point], outcomes: dict[str, Outcome], runs: int, minutes: float, lease_seconds: float) -> str:
    """The result, as a page."""
    late = sum(seconds > 2 * lease_seconds for outcome in outcomes.values() for seconds in outcome.seconds)
    total = sum(len(outcome.seconds) for outcome in outcomes.values())
    lines = [
        f"`python -m bench.faults`: {len(points)} points × {runs} runs in {minutes:.0f} min; 2 cores, 24 GiB. Leases of {lease_seconds:.0f} s",
        f"(60 s by default), a release of {ORDER['steps']} steps with three checkpoints. Seconds are from the kill to the end of the release:",
        "a fresh training process alone takes about four of them (imports), and a lease must lapse first where the worker died too.",
        "",
        (
            f"{total} killed, {total - sum(len(o.broken) for o in outcomes.values())} published, charged once, verified; "
            f"{late} later than two leases after the kill."
        ),
        "",
        "| killed when | process | median s | worst s | attempts | orphans swept | broken promises |",
        "|---|---|---|---|---|---|---|",
    ]
    for point in points:
        outcome = outcomes[point.name]
        median, worst = (f"{f(outcome.seconds):.1f}" if outcome.seconds else "-" for f in (statistics.median, max))
        lines.append(
            f"| {point.moment} (`{point.name}`) | {point.process} | {median} | {worst} | {outcome.attempts} "
            f"| {outcome.swept} | {'; '.join(outcome.broken) or 'none'} |"
        )
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.faults")
    parser.add_argument("--runs", type=int, default=10, help="kills at every point")
    parser.add_argument("--only", default="", help="points whose name matches this expression; writes nothing")
    parser.add_argument("--lanes", type=int, default=2, help="services side by side")
    parser.add_argument("--lease-seconds", type=float, default=LEASE_SECONDS, help="60 is the service's default")
    parser.add_argument("--quick", action="store_true", help="two runs a point; writes nothing")
    arguments = parser.parse_args()
    points = [point for point in POINTS if re.search(arguments.only, point.name)]
    runs = 2 if arguments.quick else arguments.runs
    started = time.monotonic()
    outcomes = run_all(points, runs, min(arguments.lanes, len(points)), arguments.lease_seconds)
    page = table(points, outcomes, runs, (time.monotonic() - started) / 60, arguments.lease_seconds)
    print(page)
    if not arguments.only and not arguments.quick:
        keep("faults", page)
    return 1 if any(outcome.broken for outcome in outcomes.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
