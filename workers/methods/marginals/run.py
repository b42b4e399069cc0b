"""The run of `method: marginals`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workers.generators.released import TableRelease
from workers.methods.marginals.method import Marginals

if TYPE_CHECKING:
    import torch

    from service.methods.marginals.order import MarginalsOrder
    from workers.checkpoints import Checkpoint
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


class Run:
    """Measure once; then fit, which reads no row."""

    def __init__(
        self, order: MarginalsOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        table, domain = source.table(numeric_bins=order.numeric_bins, with_places=order.counts_values)
        self.plan = plan
        self.marginals = Marginals(order, plan, table, domain, randomness, device)

    def measure(self) -> None:
        self.marginals.measure()

    def checkpoint(self) -> Checkpoint:
        return self.marginals.checkpoint()

    def restore(self, checkpoint: Checkpoint) -> None:
        self.marginals.restore(checkpoint)

    def finish(self, hooks: Hooks) -> TableRelease:
        marginals = self.marginals
        generator = marginals.fit(hooks.go_on)
        return TableRelease(
            generator=generator,
            domain=marginals.domain_of_rows,
            noise_dimension=generator.noise_dimension,
            condition_index=marginals.condition_index,
            condition_frequencies=marginals.condition_frequencies,
            engine="none: noisy counts",
            device=marginals.device.type,
            is_private=marginals.is_private,
            rows_per_unit=marginals.rows_per_unit,
        )
