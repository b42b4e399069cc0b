"""The loop around a method: resume, steps, checkpoints, progress, stop. It reads no row itself."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn

from service.base.errors import InvalidOrder
from service.methods.orders import IdpganOrder, MarginalsOrder, TableOrder
from workers.hooks import UNATTENDED, Hooks
from workers.methods.idpgan.image_start import StartedImageIdpgan
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.methods.marginals.method import Marginals
from workers.numerics.workspace import keep_freed_memory
from workers.plan import Plan

if TYPE_CHECKING:
    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.mechanism.secure_random import SecureRandom


@dataclass(frozen=True)
class TrainedGenerator:
    """What a release is made of. It may be published only if `is_private`."""

    generator: nn.Module
    """Averaged weights, in eval mode, on the CPU."""
    noise_dimension: int
    condition_index: int | None
    condition_frequencies: tuple[float, ...] | None
    engine: str
    device: str
    is_private: bool
    seconds: float
    domain: TableDomain | None = None
    """Of a table, the columns whose logits the generator gives."""
    rows_per_unit: float | None = None
    """Mean rows of a unit, where that was bought."""
    component_labels: tuple[int, ...] | None = None
    component_frequencies: tuple[float, ...] | None = None
    """Of images: the class of everything that the generator may be asked for, and how frequent it is."""


def train(
    order: TableOrder,
    plan: Plan,
    table: EncodedTable,
    domain: TableDomain,
    randomness: SecureRandom,
    hooks: Hooks = UNATTENDED,
) -> TrainedGenerator:
    """Make a generator by the events of `plan`, from a checkpoint if there is one."""
    if isinstance(order, MarginalsOrder):
        return _measure_and_fit(order, plan, table, domain, randomness, hooks)
    return _train_by_steps(
        order, plan, lambda device: TableIdpgan(order, plan, table, domain, randomness, device), randomness, hooks
    )


def train_images(
    order: IdpganOrder, plan: Plan, images: EncodedImages, randomness: SecureRandom, hooks: Hooks = UNATTENDED
) -> TrainedGenerator:
    """The same for images. The condition is the class; without bought frequencies all are of the only one."""
    if order.image_networks is None:
        raise InvalidOrder("image_networks must be resolved before training", where="image_networks")
    kind = ImageIdpgan if order.mixture_first is None else StartedImageIdpgan
    return _train_by_steps(order, plan, lambda device: kind(order, plan, images, randomness, device), randomness, hooks)


def _measure_and_fit(
    order: MarginalsOrder, plan: Plan, table: EncodedTable, domain: TableDomain, randomness: SecureRandom, hooks: Hooks
) -> TrainedGenerator:
    """Measure once; then fit, which reads no row."""
    started = time.monotonic()
    device = choose_device(order.device)
    torch.set_num_threads(training_threads())
    method = Marginals(order, plan, table, domain, randomness, device)
    hooks.measure_or_restore(method)

    generator = method.fit(hooks.go_on)
    return TrainedGenerator(
        generator=generator,
        noise_dimension=generator.noise_dimension,
        condition_index=method.condition_index,
        condition_frequencies=method.condition_frequencies,
        engine="none: noised counts",
        device=device.type,
        is_private=method.is_private,
        seconds=time.monotonic() - started,
        domain=method.domain_of_rows,
        rows_per_unit=method.rows_per_unit,
    )


def _train_by_steps(
    order: IdpganOrder,
    plan: Plan,
    begin: Callable[[torch.device], TableIdpgan | ImageIdpgan],
    randomness: SecureRandom,
    hooks: Hooks,
) -> TrainedGenerator:
    """Train a generator by the events of `plan`, from a checkpoint if there is one. begin: the run before its first step."""
    started = time.monotonic()
    device = choose_device(order.device)
    torch.set_num_threads(training_threads())
    keep_freed_memory()
    # Initial weights are public; seeding them from the secure stream keeps two releases from sharing them.
    torch.manual_seed(int(randomness.uniforms(1).item() * 2**53))
    method = begin(device)

    hooks.measure_or_restore(method)
    if isinstance(method, TableIdpgan):
        method.warm_up(lambda share: hooks.go_on_warming_up(share, plan.steps_done))
    while plan.steps_done < plan.steps:
        hooks.stop_if_asked(plan.steps_done, keep=method)  # whoever goes on loses nothing
        method.critic_step()
        step = plan.steps_done
        if method.generator_is_due():
            method.generator_step()
        if step % hooks.checkpoint_every_steps == 0 and step < plan.steps:
            hooks.keep(method)
        hooks.on_progress(step)

    return TrainedGenerator(
        generator=method.averaged_generator.cpu(),
        noise_dimension=method.noise_dimension if isinstance(method, ImageIdpgan) else order.networks.noise_dimension,
        condition_index=method.condition_index if isinstance(method, TableIdpgan) else None,
        condition_frequencies=method.condition_frequencies,
        engine=method.engine,
        device=device.type,
        is_private=method.is_private,
        seconds=time.monotonic() - started,
        domain=method.domain_of_rows if isinstance(method, TableIdpgan) else None,
        rows_per_unit=method.rows_per_unit,
        component_labels=method.component_labels if isinstance(method, ImageIdpgan) else None,
        component_frequencies=method.component_frequencies if isinstance(method, ImageIdpgan) else None,
    )


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
