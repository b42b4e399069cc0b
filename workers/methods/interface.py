"""What the worker asks of a method, and where it finds it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from service.methods.catalogue import method_of

if TYPE_CHECKING:
    import torch

    from service.methods.knobs import Order
    from workers.checkpoints import Checkpoint
    from workers.generators.released import Released
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


class Run(Protocol):
    """One attempt at one release, after its charge. Each private release takes its event from the plan before it reads a row."""

    plan: Plan

    def __init__(
        self, order: Any, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None: ...

    def measure(self) -> None:
        """All private releases before the first step; kept by a checkpoint before anything of them is shown."""

    def checkpoint(self) -> Checkpoint:
        """Everything that another attempt needs to go on; all of it noisy or public."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from there, instead of `measure`."""

    def finish(self, hooks: Hooks) -> Released:
        """Whatever follows: private steps, or a fit that reads no row. Tells `hooks` its progress, and stops if they say so."""


def run_class(order: Order) -> type[Run]:
    """The class of an order's method. Found before anything is charged: a method without one must cost nothing."""
    module, name = method_of(order).run.split(":")
    return cast("type[Run]", getattr(import_module(module), name))
