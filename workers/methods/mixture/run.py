"""The run of `method: mixture`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.generators.released import ImageRelease
from workers.methods.mixture.measuring import ImageMixture

if TYPE_CHECKING:
    import torch

    from service.methods.mixture.order import MixtureOrder
    from workers.checkpoints import Checkpoint
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


class Run:
    """Measure once; then build, which reads no record."""

    def __init__(
        self, order: MixtureOrder, plan: Plan, source: Source, randomness: SecureRandom, _device: torch.device
    ) -> None:
        self.plan, self.order = plan, order
        self.mixture = ImageMixture(order, plan, source.images(), randomness)

    def measure(self) -> None:
        self.mixture.measure()

    def checkpoint(self) -> Checkpoint:
        return self.mixture.checkpoint()

    def restore(self, checkpoint: Checkpoint) -> None:
        self.mixture.restore(checkpoint)

    def finish(self, hooks: Hooks) -> ImageRelease:
        hooks.on_progress(self.order.progress_steps)
        mixture, generator = self.mixture, self.mixture.build()
        return ImageRelease(
            generator=generator,
            noise_dimension=generator.noise_dimension,
            component_labels=mixture.component_labels,
            component_frequencies=mixture.component_frequencies,
            one_a_run=True,
            engine="none: noisy moments",
            is_private=mixture.is_private,
            rows_per_unit=mixture.rows_per_unit,
        )
