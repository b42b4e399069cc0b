"""How long the parts of a training take on this machine: from a run that is thrown away, before one that has to end in time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from bench.paper.runs import Sizes, begin
from workers.methods.idpgan.free_start import begin_from_free_records
from workers.methods.idpgan.mixture_samples import SampledImageIdpgan

if TYPE_CHECKING:
    from bench.image_data import Digits
    from workers.encoding.images import EncodedImages

PROBED = 9
"""Steps that say how long one takes, after one that says nothing."""


class Pace(NamedTuple):
    """Seconds of what comes first, of a free step (0 where there is none), and of a critic step with its part of a generator step."""

    measures: float
    free: float
    step: float


def pace_of(knobs: dict[str, Any], data: Digits, sizes: Sizes, seed: int) -> Pace:
    """Of a run of this order that is thrown away."""
    probe = begin(knobs, 1.0, data, replace(sizes, steps=2 * PROBED), seed, {})
    measures, free = seconds_of(probe.measure, probe.device), 0.0
    if isinstance(probe, SampledImageIdpgan):
        samples: list[EncodedImages] = []
        measures += seconds_of(lambda: samples.append(probe.samples()), probe.device)
        begin_from_free_records(probe, samples[0], 1, lambda _share: None)
        steps = partial(begin_from_free_records, probe, samples[0], PROBED, lambda _share: None)
        free = seconds_of(steps, probe.device) / PROBED
    critic, generator = (usual_seconds(take, probe.device) for take in (probe.critic_step, probe.generator_step))
    return Pace(measures, free, critic + generator / sizes.critic_steps)


def usual_seconds(take: Callable[[], object], device: torch.device) -> float:
    """Of most steps. A GPU records a graph for each size of a draw that it has not seen, so the first ones take many times as long."""
    take()
    return statistics.median(seconds_of(take, device) for _ in range(PROBED))


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Until the device has done it."""
    finish(device)
    began = time.monotonic()
    work()
    finish(device)
    return time.monotonic() - began


def finish(device: torch.device) -> None:
    """Wait for what a GPU was told to do."""
    if device.type == "cuda":
        torch.cuda.synchronize()
