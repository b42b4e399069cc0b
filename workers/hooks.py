"""What a run tells and asks its caller: its progress, its checkpoints, whether to stop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol

from service.base.errors import ImprimaturError, Unavailable
from workers.checkpoints import Checkpoint, CheckpointStore
from workers.plan import Plan

CHECKPOINT_EVERY_STEPS = 100

logger = logging.getLogger(__name__)


class TrainingStopped(ImprimaturError):
    """The caller asked the run to end before its last step. Values: steps_done, all of them charged."""

    code: ClassVar[str] = "training_stopped"


class Measuring(Protocol):
    """What measures something and can go on from a checkpoint: every run of a method."""

    plan: Plan

    def measure(self) -> None:
        """All private releases before the first step; kept by a checkpoint before anything of them is shown."""

    def checkpoint(self) -> Checkpoint:
        """Everything that another attempt needs to go on; all of it noisy or public."""

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from there, instead of `measure`."""


@dataclass(frozen=True)
class Hooks:
    """How a run reports, keeps checkpoints and is stopped. By default nothing listens, nothing is kept, and nothing stops it."""

    on_progress: Callable[[int], None] = lambda _step: None
    on_warm_up: Callable[[float], None] = lambda _share: None
    """How much is done, from 0 to 1, of what comes between measurements and private steps."""
    should_stop: Callable[[], bool] = lambda: False
    checkpoints: CheckpointStore | None = None
    checkpoint_every_steps: int = CHECKPOINT_EVERY_STEPS

    def go_on(self, step: int) -> None:
        """Between two steps that read no row: raises TrainingStopped or reports."""
        self.stop_if_asked(step)
        self.on_progress(step)

    def go_on_warming_up(self, share: float, steps_done: int) -> None:
        """As `go_on`, before the first private step of a run that begins near its measurements."""
        self.stop_if_asked(steps_done)
        self.on_warm_up(share)

    def steps_of(self, run: Measuring) -> Iterator[None]:
        """One for each private step that is left on its plan, with a checkpoint now and then; a run that is stopped loses no step."""
        plan = run.plan
        while plan.steps_done < plan.steps:
            self.stop_if_asked(plan.steps_done, keep=run)
            yield
            done = plan.steps_done
            if done % self.checkpoint_every_steps == 0 and done < plan.steps:
                self.keep(run)
            self.on_progress(done)

    def stop_if_asked(self, steps_done: int, *, keep: Measuring | None = None) -> None:
        """Raises TrainingStopped where the caller wants the run to end, after a checkpoint of `keep`."""
        if not self.should_stop():
            return
        if keep is not None:
            self.keep(keep)
        raise TrainingStopped("the run was stopped before its last step", steps_done=steps_done)

    def measure_or_restore(self, method: Measuring) -> None:
        """Measure what comes before the first step, and keep it at once so that no crash makes it charged again; or take what an earlier run left."""
        saved = None if self.checkpoints is None else self.checkpoints.get()
        if saved is not None:
            method.restore(Checkpoint.from_bytes(saved))
            logger.info("goes on after step %d", method.plan.steps_done)
            return
        # Not before it is known how far an earlier attempt came: what ran is settled by where this one stands.
        self.stop_if_asked(method.plan.steps_done)
        method.measure()
        if method.plan.position and self.checkpoints is not None:
            # Before anything of it is shown: what was seen may not run again. Where this raises `Unavailable`, nothing was seen.
            self.checkpoints.put(method.checkpoint().to_bytes())

    def keep(self, method: Measuring) -> None:
        """A checkpoint of it, where there is a store; where that does not answer, the next one will do."""
        if self.checkpoints is None:
            return
        try:
            self.checkpoints.put(method.checkpoint().to_bytes())
        except Unavailable as error:
            logger.warning("no checkpoint written: %s", error.code)


UNATTENDED = Hooks()
