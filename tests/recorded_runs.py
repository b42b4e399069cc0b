"""Runs that write down every event, die where they are told to, and keep their checkpoints."""

from __future__ import annotations

from service.privacy.events import Events
from tests.memory import Memory
from workers.checkpoints import Checkpoint
from workers.plan import Plan, StepNoise


class Killed(BaseException):
    """Nothing in the code can catch it, as with a real SIGKILL."""


class RecordedPlan(Plan):
    """Writes down every event that is run, by its place on the list (from 1) and its noise; dies before as many as it is told."""

    def __init__(self, events: Events, die_before: int | None = None) -> None:
        super().__init__(events)
        self.run, self.die_before = list[tuple[int, float]](), die_before

    def _note(self, noise: float) -> None:
        if len(self.run) == self.die_before:
            raise Killed
        self.run.append((self.position, noise))

    def take_gaussian(self, purpose: str) -> float:
        noise = super().take_gaussian(purpose)
        self._note(noise)
        return noise

    def take_sampled_step(self, *, sampling_probability: float, histogram: bool) -> StepNoise:
        noise = super().take_sampled_step(sampling_probability=sampling_probability, histogram=histogram)
        self._note(noise.gradient_noise_multiplier)
        return noise


class Kept(Memory):
    """With how far the run had come."""

    @property
    def position(self) -> int:
        """Events that ran before the last checkpoint."""
        saved = self.get()
        return 0 if saved is None else int(Checkpoint.from_bytes(saved).values["position"])
