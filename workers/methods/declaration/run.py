"""The run of `method: declaration`: each end of a range and each list of categories is bought once; what comes out is public."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workers.checkpoints import Checkpoint, position_of, resume
from workers.generators.released import AnswersRelease
from workers.methods.declaration.buying import Buying

if TYPE_CHECKING:
    import torch

    from service.methods.declaration.order import DeclarationOrder
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

FORMAT = 1


class Run:
    """All of it is bought in `measure`, and kept before anything of it is shown: another attempt publishes the same."""

    def __init__(
        self, order: DeclarationOrder, plan: Plan, source: Source, randomness: SecureRandom, _device: torch.device
    ) -> None:
        self.order, self.plan, self.randomness = order, plan, randomness
        self.rows = source.values(tuple(one.column for one in order.purchases or ()))
        self.bought: list[dict[str, Any]] = []
        self.is_private = randomness.is_private

    def measure(self) -> None:
        buying = Buying(self.plan, self.rows, self.randomness)
        self.bought = [buying.buy(one) for one in self.order.purchases or ()]

    def checkpoint(self) -> Checkpoint:
        return Checkpoint({}, {**position_of(self), "bought": self.bought})

    def restore(self, checkpoint: Checkpoint) -> None:
        resume(self, checkpoint.values)
        self.bought = checkpoint.values["bought"]

    def finish(self, hooks: Hooks) -> AnswersRelease:
        hooks.on_progress(self.order.progress_steps)
        return AnswersRelease(
            answers={"format": FORMAT, "bought": self.bought},
            declares={one["column"]: {**one["constraints"], "events": one["events"]} for one in self.bought},
            is_private=self.is_private,
            engine="none: bounds and categories",
        )
