"""One attempt at a release, whatever its method: a device, threads, the run, and what earlier attempts left."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import torch

from service.base.errors import InvalidOrder
from workers.hooks import UNATTENDED, Hooks
from workers.methods.interface import run_class

if TYPE_CHECKING:
    from service.methods.knobs import Order
    from workers.generators.released import Released
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


def make_release(
    order: Order, plan: Plan, source: Source, randomness: SecureRandom, hooks: Hooks = UNATTENDED
) -> Released:
    """Make what the order asks for by the events of `plan`, from a checkpoint if there is one."""
    device = choose_device(order.device)
    torch.set_num_threads(training_threads())
    run = run_class(order)(order, plan, source, randomness, device)
    hooks.measure_or_restore(run)
    return run.finish(hooks)


def choose_device(wanted: str) -> torch.device:
    """auto: the GPU where there is one."""
    available = torch.cuda.is_available()
    if wanted == "cuda" and not available:
        raise InvalidOrder("this worker has no GPU; order device auto or cpu", where="device")
    return torch.device("cuda" if available and wanted != "cpu" else "cpu")


def training_threads() -> int:
    """One core is left to the rest of the machine, and beyond eight the small products of these networks gain nothing.

    Threads that wait for a core they must share spin: two on two busy cores were twelve times slower than one.
    """
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min(8, cores - 1))
