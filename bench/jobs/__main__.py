"""How long small real trainings take and what they hold, beside what was estimated of them; and the rates that fit best.

    python -m bench.jobs [--device cpu|cuda] [--only TEXT] [--json FILE]

On the CPU every job is a process of its own: its processor time, with one thread, and the most memory that it held. Writes
bench/results/jobs.md and prints the rates for `service/methods/work.py`. On a GPU all run in this process, one after the other, by the
clock, without a ZIP and with noise of a made-up size, which takes as long: that needs neither a database, nor a service, nor a price,
and about two minutes. It prints one compact JSON document and writes no page.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls

from bench.jobs.grid import JOBS, Job, without_prices
from bench.pages import keep
from service.methods.work import CPU, KINDS, Machine, Work
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.training import make_release

POLL_SECONDS = 0.1
ROUNDS, TOO_LITTLE_WEIGHS = 20, 3.0
Measured = dict[str, Any]
"""name, work, seconds, bytes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", default="", help="jobs whose name contains this; writes no page")
    parser.add_argument("--json", type=Path, help="also write what was measured to this file")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    without_prices()
    if asked.one is not None:
        print(json.dumps(_run(_named(asked.one), "cpu")))
        return 0
    jobs = [job for job in JOBS if asked.only in job.name and (job.on_cuda_too or asked.device == "cpu")]
    measured = [_alone(job) for job in jobs] if asked.device == "cpu" else _on_cuda(jobs)
    machine = fitted(measured) if len(measured) > len(KINDS) else None
    if asked.json is not None:
        asked.json.write_text(json.dumps(measured), encoding="utf-8")
    if asked.device == "cuda":
        print(
            json.dumps(
                {"device": torch.cuda.get_device_name(), "torch": torch.__version__, **_compact(machine, measured)}
            )
        )
        return 0
    print(json.dumps(_compact(machine, measured)["rates"]))
    page = _page(measured)
    print(page)
    if not asked.only:
        keep("jobs", page)
    return 0


def _named(name: str) -> Job:
    return next(job for job in JOBS if job.name == name)


def _run(job: Job, device: str) -> Measured:
    """Make it and write its ZIP, in this process."""
    order = job.resolved(device)
    plan, source = Plan(job.events(order)), job.source()
    on_gpu = device == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter(), time.process_time()
    made = make_release(order, plan, source, SecureRandom())
    if on_gpu:
        torch.cuda.synchronize()
    else:
        made.bundle(schema=job.declared(), certificate={}, order=order.model_dump(mode="json"))
    clock, processor = time.perf_counter() - began[0], time.process_time() - began[1]
    held = torch.cuda.max_memory_allocated() if on_gpu else 0
    return {"name": job.name, "work": asdict(job.work(order)), "seconds": clock if on_gpu else processor, "bytes": held}


def _alone(job: Job) -> Measured:
    """In a process of its own, whose memory is looked at all the time as a worker does."""
    from workers.child import memory_of_tree

    command = [sys.executable, "-m", "bench.jobs", "--one", job.name]
    most = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        while child.poll() is None:
            most = max(most, memory_of_tree(child.pid))
            time.sleep(POLL_SECONDS)
        output = child.stdout.read() if child.stdout is not None else ""
    if child.returncode != 0:
        raise RuntimeError(f"{job.name}: ended with status {child.returncode}")
    found: Measured = json.loads(output.splitlines()[-1]) | {"bytes": most}
    print(f"{found['seconds']:7.1f} s {most / 1e6:7.0f} MB  {job.name}", file=sys.stderr, flush=True)
    return found


def _on_cuda(jobs: Sequence[Job]) -> list[Measured]:
    if not torch.cuda.is_available():
        raise SystemExit("no GPU here that torch can use")
    _run(_named("idpgan, table"), "cuda")  # what loads once
    found = []
    for job in jobs:
        found.append(_run(job, "cuda"))
        print(
            f"{found[-1]['seconds']:7.2f} s {found[-1]['bytes'] / 1e6:7.0f} MB  {job.name}", file=sys.stderr, flush=True
        )
    return found


def fitted(measured: Sequence[Measured]) -> Machine:
    """Seconds of each kind, none below 0, of least squared relative error; and the start. Too little weighs more than too much."""
    seconds = np.array([each["seconds"] for each in measured])
    amounts = np.array([[each["work"][kind] for kind in KINDS] + [1.0] for each in measured])
    scales = np.maximum(amounts.max(axis=0), 1e-300)
    relative, weights = amounts / scales / seconds[:, None], np.ones(len(seconds))
    for _ in range(ROUNDS):
        rates, _ = nnls(relative * weights[:, None], weights)
        weights = np.where(relative @ rates < 1.0, TOO_LITTLE_WEIGHS, 1.0)
    *kinds, start = (rates / scales).tolist()
    return Machine(Work(**dict(zip(KINDS, kinds, strict=True))), start, CPU.start_bytes)


def _compact(machine: Machine | None, measured: Sequence[Measured]) -> dict[str, Any]:
    if machine is None:
        return {"rates": None, "jobs": []}
    rates = {kind: float(f"{getattr(machine.seconds, kind):.3g}") for kind in KINDS}
    rates["start_seconds"] = float(f"{machine.start_seconds:.3g}")
    jobs = [
        [each["name"], round(each["seconds"], 2), round(machine.seconds_of(Work(**each["work"])), 2), each["bytes"]]
        for each in measured
    ]
    return {"rates": rates, "jobs": jobs}


def _page(measured: Sequence[Measured]) -> str:
    """As the rates in the code have it, not as those just fitted."""
    rows, seconds, memory = [], [], []
    for each in measured:
        work = Work(**each["work"])
        estimated = CPU.seconds_of(work), CPU.memory_of(work)
        ratio = estimated[0] / (each["seconds"] + CPU.start_seconds), estimated[1] / each["bytes"]
        seconds.append(ratio[0])
        memory.append(ratio[1])
        rows.append(
            f"| {each['name']} | {each['seconds'] + CPU.start_seconds:.1f} | {estimated[0]:.1f} | {ratio[0]:.2f} "
            f"| {each['bytes'] / 1e6:,.0f} | {estimated[1] / 1e6:,.0f} | {ratio[1]:.2f} |"
        )
    table = "\n".join(rows)
    return f"""\
`python -m bench.jobs`, {platform.machine()}, one thread of {os.cpu_count()} processors; processor time of training and ZIP, {CPU.start_seconds:g} s
added to both for what comes before. Estimated over measured: seconds {min(seconds):.2f} to {max(seconds):.2f} (geometric mean {geometric_mean(seconds):.2f}), memory
{min(memory):.2f} to {max(memory):.2f} ({geometric_mean(memory):.2f}).

| job | measured s | estimated s | ratio | measured MB | estimated MB | ratio |
|---|---:|---:|---:|---:|---:|---:|
{table}
"""


if __name__ == "__main__":
    sys.exit(main())
