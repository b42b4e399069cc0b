"""Each candidate on a part of the units, errors on one more part, then the chosen one on all units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.methods.choose.price import ERRORS, TRIALS, WINNER
from service.privacy.events import ExponentialEvent, OneOfEvent, ParallelEvent
from workers.mechanism.errors import error_losses
from workers.mechanism.exponential import choose
from workers.methods.choose.parts import SEED_BITS, Part
from workers.methods.choose.trying import Trying, under
from workers.plan import Plan

if TYPE_CHECKING:
    from torch import Tensor

    from workers.generators.released import TableRelease
    from workers.hooks import Hooks
    from workers.sources import Source


class ByParts(Trying):
    """`seed` says which unit is in which part; a checkpoint keeps it, so that no unit is ever in two."""

    seed = 0
    winner: int | None = None
    classifiers: tuple[Tensor, ...] = ()

    def measure(self) -> None:
        self.plan.take(ParallelEvent, TRIALS)
        self.seed = self.randomness.bits(SEED_BITS)

    def own_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        # Classifiers learned from synthetic rows; their errors on private ones are never kept.
        tensors = {f"classifier.{place}": weights for place, weights in enumerate(self.classifiers)}
        return tensors, {"seed": str(self.seed), "tried": len(self.classifiers), "winner": self.winner}

    def take_up(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        found = under("classifier", tensors)
        self.classifiers = tuple(found[str(place)] for place in range(values["tried"]))
        self.seed, self.winner = int(values["seed"]), values["winner"]

    def part(self, part: int) -> Source:
        """One part for each candidate, and the last for errors."""
        return Part(self.source, self.seed, len(self.order.candidates) + 1, part)

    def test_source(self) -> Source:
        return self.part(len(self.order.candidates))

    def finish(self, hooks: Hooks) -> TableRelease:
        trials = self.plan.taken_before(ParallelEvent, TRIALS).parts
        for place, candidate in enumerate(self.order.trials or ()):
            if place < len(self.classifiers):
                continue
            _, made = self.tried(candidate, trials[place], self.part(place), self.quiet(hooks, keeps=True))
            self.classifiers = (*self.classifiers, self.classifier_of(made, hooks))
            self.inner = None
            hooks.keep(self)
            hooks.on_progress(place + 1)
        if self.winner is None:
            self.winner = self._chosen(Plan(trials[-1]))
            self.plan.take(OneOfEvent, WINNER)
            hooks.keep(self)
        lists = self.plan.taken_before(OneOfEvent, WINNER).lists
        candidate = self.order.candidates[self.winner]
        _, made = self.tried(candidate, lists[self.winner], self.source, self.quiet(hooks, keeps=True))
        hooks.on_progress(self.order.progress_steps)
        return self.published(made, self.winner)

    def _chosen(self, plan: Plan) -> int:
        event = plan.take(ExponentialEvent, ERRORS)
        losses = error_losses(self.errors(self.classifiers), rows=self.test_units)
        return choose(losses, epsilon=event.epsilon, randomness=self.randomness)
