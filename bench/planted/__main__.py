"""Plant every bug of bench/planted/bugs.py, one at a time, in a temporary copy of the tree, and expect red.

    python -m bench.planted [--only TEXT] [--after N] [--workers N]

First everything must be green without a bug. Writes bench/results/planted.md; exit status 1 if a bug got through.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from bench.pages import keep
from bench.planted.bugs import BUGS
from bench.planted.harness import HEALTHY_SECONDS, ROOT, Bug, Outcome, copy_tree, imports_from, run_tests, try_bug


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.planted")
    parser.add_argument("--only", default="", help="bugs whose name contains this; writes nothing")
    parser.add_argument("--after", type=int, default=0, help="leaves out the first N, tried before; writes nothing")
    parser.add_argument("--workers", type=int, default=2, help="copies of the tree, each tried in turn")
    arguments = parser.parse_args()
    bugs = [bug for bug in BUGS[arguments.after :] if arguments.only in bug.name]
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="imprimatur-planted-") as folder:
        trees = _copies(Path(folder), arguments.workers)
        healthy = run_tests(
            trees[0], sorted({test for bug in bugs for test in bug.tests}), timeout_seconds=HEALTHY_SECONDS
        )
        if healthy.caught_by is not None or " passed" not in healthy.output:
            print(healthy.output, file=sys.stderr)
            return 1
        outcomes = _try_all(trees, bugs)
    seconds = time.monotonic() - started
    missed = [bug.name for bug, outcome in zip(bugs, outcomes, strict=True) if outcome.caught_by is None]
    print(f"{len(bugs) - len(missed)} of {len(bugs)} caught, {seconds:.0f} s")
    if not arguments.only and not arguments.after:
        _write(bugs, outcomes, seconds)
    return 1 if missed else 0


def _copies(folder: Path, count: int) -> list[Path]:
    trees = []
    for number in range(count):
        (folder / str(number)).mkdir()
        tree = copy_tree(folder / str(number))
        if str(ROOT) in imports_from(tree):
            raise RuntimeError("the copy imports the checkout; nothing planted there would be tested")
        trees.append(tree)
    return trees


def _try_all(trees: list[Path], bugs: list[Bug]) -> list[Outcome]:
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def attempt(bug: Bug) -> Outcome:
        tree = free.get()
        try:
            outcome = try_bug(tree, bug)
        finally:
            free.put(tree)
        verdict = outcome.caught_by or "NOT CAUGHT\n" + outcome.output[-3_000:]
        print(f"{outcome.seconds:5.1f} s  {bug.name}: {verdict}", flush=True)
        return outcome

    with ThreadPoolExecutor(len(trees)) as pool:
        return list(pool.map(attempt, bugs))


def _write(bugs: list[Bug], outcomes: list[Outcome], seconds: float) -> None:
    rows = [
        f"| {bug.name} | {', '.join(sorted({f'`{Path(file).name}`' for file, _, _ in bug.edits}))} "
        f"| {f'`{outcome.caught_by}`' if outcome.caught_by else '**not caught**'} | {outcome.seconds:.0f} |"
        for bug, outcome in zip(bugs, outcomes, strict=True)
    ]
    caught = sum(outcome.caught_by is not None for outcome in outcomes)
    page = f"""\
`python -m bench.planted`: {caught} of {len(bugs)} caught in {seconds:.0f} s. Each was planted alone in a copy of the tree; named is the
first test that failed. Without a bug all of these tests pass.

| bug | planted in | caught by | seconds |
|---|---|---|---:|
{chr(10).join(rows)}
"""
    keep("planted", page)


if __name__ == "__main__":
    sys.exit(main())
