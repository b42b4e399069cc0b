"""What an order is estimated to take, and the installation's limits for it. From the order, declarations and settings alone."""

from __future__ import annotations

from typing import Any

from service.base.errors import TooMuchWork
from service.base.messages import Figure, Listed, Message
from service.methods.catalogue import method_of
from service.methods.facts import Facts
from service.methods.knobs import Order
from service.methods.work import Estimate
from service.platform.settings import Settings

SECONDS_MARGIN, MEMORY_MARGIN = 3.0, 1.5
"""An attempt is ended at the limits. An estimate may be a third of the one and two thirds of the other at most, so that no job that was
taken comes near them, whatever its rows are (docs/privacy.md, Limits); bench/results/jobs.md says how far estimates are off."""

KNOBS = (
    "steps",
    "sampling_probability",
    "networks",
    "image_networks",
    "components",
    "pair_cells",
    "numeric_bins",
    "cells",
    "rank",
)
"""What makes a job smaller, where the method has it."""


def estimate_of(order: Order, facts: Facts, settings: Settings) -> Estimate:
    """The estimated work of a resolved order, on this installation's workers."""
    return Estimate.of(method_of(order).estimate(order, facts), speed=settings.job_cpu_speed)


def refuse_too_much(order: Order, estimate: Estimate, settings: Settings) -> None:
    """Raises `TooMuchWork`; before anything is reserved, so it costs nothing."""
    most_seconds = settings.job_seconds_limit / SECONDS_MARGIN
    most_bytes = settings.job_memory_bytes_limit / MEMORY_MARGIN
    on_a_gpu = estimate.seconds_on_a_gpu if order.device == "cuda" else None
    seconds = estimate.seconds_on_a_cpu if on_a_gpu is None else on_a_gpu
    found = []
    if seconds > most_seconds:
        found.append(
            Message(
                "about %(found)s s, and jobs may be estimated at %(most)s s",
                found=Figure(f"{seconds:,.0f}"),
                most=Figure(f"{most_seconds:,.0f}"),
            )
        )
    if estimate.memory_bytes > most_bytes:
        found.append(
            Message(
                "about %(found)s GB, and jobs may be estimated at %(most)s GB",
                found=Figure(f"{estimate.memory_bytes / 1e9:,.1f}"),
                most=Figure(f"{most_bytes / 1e9:,.1f}"),
            )
        )
    if not found:
        return
    knobs = [name for name in KNOBS if name in type(order).model_fields]
    smaller = Message("; smaller values of %(knobs)s make it less", knobs=", ".join(knobs)) if knobs else ""
    limits: dict[str, Any] = {"seconds": most_seconds, "memory_bytes": int(most_bytes)}
    raise TooMuchWork(
        Message("this order would take %(found)s%(smaller)s", found=Listed("; ", found), smaller=smaller),
        estimate=estimate.as_json,
        limits=limits,
        knobs=knobs,
    )
