"""Random candidates on all units, a random number of times; the run with the fewest noisy errors is published.

How many runs counted, which candidates lost and all scores stay in the checkpoint, which is in the store of those who run the service, and are
logged nowhere. Runs go on, and are thrown away, until `padded_runs` were made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.methods.choose.price import REPEATED, SCORE, TRIAL
from service.methods.choose.runs import gamma_of
from service.privacy.events import OneOfEvent, PureEvent, RepeatAndSelectEvent
from workers.checkpoints import Checkpoint
from workers.mechanism.errors import error_count
from workers.mechanism.geometric import release_integers
from workers.methods.choose.trying import Trying, under
from workers.methods.interface import run_class
from workers.numerics.exact_choice import below
from workers.numerics.exact_runs import number_of_runs
from workers.plan import Plan

if TYPE_CHECKING:
    from torch import Tensor

    from service.privacy.events import Events
    from workers.generators.released import TableRelease
    from workers.hooks import Hooks
    from workers.sources import Source


@dataclass(frozen=True)
class Best:
    """The best of the runs so far: its noisy errors, its candidate, and the checkpoint that it has left."""

    errors: int
    candidate: int
    left: Checkpoint


class ByRepeating(Trying):
    """`runs` is K; `done` counts the runs that were made."""

    runs = 0
    done = 0
    best: Best | None = None

    def measure(self) -> None:
        event = self.plan.take(RepeatAndSelectEvent, REPEATED)
        self.runs = number_of_runs(gamma_of(event.mean, event.shape or 0.0), event.shape or 0.0, self.randomness.bits)

    def own_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        values: dict[str, Any] = {"runs": self.runs, "done": self.done, "best": None}
        if self.best is None:
            return {}, values
        saved = self.best.left
        values["best"] = {"errors": self.best.errors, "candidate": self.best.candidate, "left": saved.values}
        return {f"best.{name}": tensor for name, tensor in saved.tensors.items()}, values

    def take_up(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        self.runs, self.done, best = values["runs"], values["done"], values["best"]
        if best is not None:
            self.best = Best(best["errors"], best["candidate"], Checkpoint(under("best", tensors), best["left"]))

    def test_source(self) -> Source:
        return self.source

    def finish(self, hooks: Hooks) -> TableRelease:
        base = self.plan.taken_before(RepeatAndSelectEvent, REPEATED).base
        for number in range(self.done, max(self.runs, self.order.padded_runs or 1)):
            hooks.stop_if_asked(self.plan.steps_done)
            found = self._run(Plan(base), hooks)
            # Which of two equal ones is first, chance decided.
            if number < self.runs and (self.best is None or found.errors < self.best.errors):
                self.best = found
            self.done = number + 1
            hooks.keep(self)
        made, place = self._best_again(base, hooks)
        hooks.on_progress(self.order.progress_steps)
        return self.published(made, place)

    def _run(self, plan: Plan, hooks: Hooks) -> Best:
        place = below(len(self.order.candidates), self.randomness.bits)
        events = plan.take(OneOfEvent, TRIAL).lists[place]
        run, made = self.tried(self.order.candidates[place], events, self.source, self.quiet(hooks, keeps=False))
        score = plan.take(PureEvent, SCORE)
        (wrong,) = self.errors([self.classifier_of(made, hooks)])
        count = error_count(wrong, rows=self.test_units)
        (errors,) = release_integers(count, epsilon=score.epsilon, randomness=self.randomness).tolist()
        return Best(errors, place, run.checkpoint())

    def _best_again(self, base: Events, hooks: Hooks) -> tuple[TableRelease, int]:
        """What the best run has left, finished: a fit begins again, which reads no row; private steps do not."""
        if self.best is None:
            raise RuntimeError("a selection has at least one run")
        place = self.best.candidate
        candidate, events = self.order.candidates[place], Plan(base).take(OneOfEvent, TRIAL).lists[place]
        run = run_class(candidate)(candidate, Plan(events), self.source, self.randomness, self.device)
        run.restore(self.best.left)
        made: Any = run.finish(self.quiet(hooks, keeps=False))
        return made, place
