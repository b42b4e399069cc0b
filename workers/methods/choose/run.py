"""The run of `method: choose`: one of its two forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.methods.choose.by_parts import ByParts
from workers.methods.choose.by_repeating import ByRepeating

if TYPE_CHECKING:
    import torch

    from service.methods.choose.order import ChooseOrder
    from workers.checkpoints import Checkpoint
    from workers.generators.released import TableRelease
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


class Run:
    """`measure` takes the first event; everything that belongs to it, and what follows, is in `finish`."""

    def __init__(
        self, order: ChooseOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        self.plan = plan
        form = ByParts if order.form == "parts" else ByRepeating
        self.trying: ByParts | ByRepeating = form(order, plan, source, randomness, device)

    def measure(self) -> None:
        self.trying.measure()

    def checkpoint(self) -> Checkpoint:
        return self.trying.checkpoint()

    def restore(self, checkpoint: Checkpoint) -> None:
        self.trying.restore(checkpoint)

    def finish(self, hooks: Hooks) -> TableRelease:
        return self.trying.finish(hooks)
