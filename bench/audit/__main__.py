"""Attack every mechanism and set what could be proven beside what is claimed.

    python -m bench.audit [--quick]

Writes bench/results/audit-<date>.{json,md}, and workers/audit_summary.json, which certificates repeat. Everything runs on
test seeds: the result is repeatable, and nothing made here could be published. Exit status 1 if a bound exceeds its claim, or the plain Gaussian step comes not within 20 %.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from bench.audit import attacks
from bench.audit.attacks import DELTA, Finding
from bench.audit.summary import write_summary

RESULTS = Path(__file__).parents[1] / "results"
NEAR_ENOUGH = 0.8


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.audit")
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials, writes nothing")
    share = 0.1 if parser.parse_args().quick else 1.0
    torch.set_num_threads(1)
    started = time.monotonic()

    def trials(full: int) -> int:
        return int(full * share)

    attempts: list[Callable[[], Finding]] = [
        lambda: attacks.plain_gaussian(trials(20_000)),
        lambda: attacks.sampled_steps(trials(2_500)),
        *(
            lambda allocation=allocation: attacks.groups_and_allocation(trials(6_000), allocation)
            for allocation in ("least_noise", "equal_share", "flat")
        ),
        lambda: attacks.histogram(trials(6_000)),
        lambda: attacks.label_counts(trials(10_000), rows_per_unit=1),
        lambda: attacks.label_counts(trials(10_000), rows_per_unit=4),
        lambda: attacks.short_run(trials(1_500)),
        lambda: attacks.record_canary(trials(6_000)),
        lambda: attacks.one_run(4_000, sampled=False),
        lambda: attacks.one_run(4_000, sampled=True),
        lambda: attacks.acts_one_batch(trials(5_000), 1.0),
        lambda: attacks.acts_one_batch(trials(5_000), 4.0),
        lambda: attacks.acts_ten_weights(trials(5_000)),
        lambda: attacks.acts_epochs(max(25, trials(100))),
    ]
    found: list[Finding] = []
    for attempt in attempts:
        found.append(attempt())
        print(row(found[-1]), flush=True)
    broken = [finding for finding in found if finding.name.startswith("ACTS")]
    ours = [finding for finding in found if not finding.name.startswith("ACTS")]
    seconds = time.monotonic() - started
    if share == 1.0:
        write(ours, broken, seconds)
    print(f"{seconds:.0f} s")
    held = all(finding.epsilon_lower <= finding.epsilon_claimed for finding in ours)
    return 0 if held and ours[0].ratio >= NEAR_ENOUGH and all(f.ratio > 1.0 for f in broken) else 1


def row(finding: Finding) -> str:
    direct = "" if finding.epsilon_direct is None else f"{finding.epsilon_direct:.2f}"
    return (
        f"| {finding.name} | {finding.trials} | {finding.epsilon_claimed:.2f} | {finding.epsilon_lower:.2f} "
        f"| {finding.ratio:.2f} | {direct} |"
    )


def write(ours: list[Finding], broken: list[Finding], seconds: float) -> None:
    head = "| what | trials | ε claimed | ε lower bound | ratio | direct bound |\n|---|---:|---:|---:|---:|---:|"
    date = dt.datetime.now(dt.UTC).date().isoformat()
    machine = f"Python {platform.python_version()}, torch {torch.__version__.split('+')[0]}, one thread"
    page = f"""# Audit of {date}

`python -m bench.audit`: {seconds:.0f} s on {machine}; δ = {DELTA:g}, 95 % confidence. How to read it: docs/audits.md.

## Ours: no bound may exceed its claim

{head}
{chr(10).join(map(row, ours))}

## The paper's own ACTS: every bound exceeds its claim

{head}
{chr(10).join(map(row, broken))}
"""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"audit-{date}.md").write_text(page, encoding="utf-8")
    document = {
        "date": date,
        "machine": machine,
        "delta": DELTA,
        "seconds": round(seconds, 1),
        "ours": [{**asdict(finding), "ratio": finding.ratio} for finding in ours],
        "paper_acts": [{**asdict(finding), "ratio": finding.ratio} for finding in broken],
    }
    (RESULTS / f"audit-{date}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", "utf-8")
    write_summary(document)


if __name__ == "__main__":
    sys.exit(main())
