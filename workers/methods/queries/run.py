"""The run of `method: queries`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workers.checkpoints import Checkpoint, position_of, resume
from workers.generators.released import AnswersRelease
from workers.methods.queries.answering import Answering
from workers.methods.queries.rows import PrivateRows

if TYPE_CHECKING:
    import torch

    from service.methods.queries.order import QueriesOrder
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source

FORMAT = 1


class Run:
    """All questions are answered in `measure`; nothing follows."""

    def __init__(
        self, order: QueriesOrder, plan: Plan, source: Source, randomness: SecureRandom, _device: torch.device
    ) -> None:
        self.order, self.plan, self.randomness = order, plan, randomness
        names = dict.fromkeys(name for question in order.questions for name in question.columns_read)
        self.rows = PrivateRows(source.values(tuple(names)))
        self.answers: list[dict[str, Any]] = []
        self.is_private = randomness.is_private

    def measure(self) -> None:
        answering = Answering(self.plan, self.rows, self.randomness)
        self.answers = [answering.answer(question) for question in self.order.questions]

    def checkpoint(self) -> Checkpoint:
        return Checkpoint({}, {**position_of(self), "answers": self.answers})

    def restore(self, checkpoint: Checkpoint) -> None:
        resume(self, checkpoint.values)
        self.answers = checkpoint.values["answers"]

    def finish(self, hooks: Hooks) -> AnswersRelease:
        hooks.on_progress(self.order.progress_steps)
        return AnswersRelease(
            answers={"format": FORMAT, "answers": self.answers}, is_private=self.is_private, engine="none: answers"
        )
