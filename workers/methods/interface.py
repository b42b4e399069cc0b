"""What the worker asks of a method, and where it finds it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

from service.methods.catalogue import method_of
from workers.hooks import Measuring

if TYPE_CHECKING:
    import torch

    from service.methods.knobs import Order
    from workers.generators.released import Released
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


class Run(Measuring, Protocol):
    """One attempt at one release, after its charge. Each private release takes its event from the plan before it reads a row."""

    def __init__(
        self, order: Any, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None: ...

    def finish(self, hooks: Hooks) -> Released:
        """Whatever follows: private steps, or a fit that reads no row. Tells `hooks` its progress, and stops if they say so."""


def run_class(order: Order) -> type[Run]:
    """The class of an order's method. Found before anything is charged: a method without one must cost nothing."""
    module, name = method_of(order).run.split(":")
    return cast("type[Run]", getattr(import_module(module), name))
