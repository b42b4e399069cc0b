"""The run of `method: noisy_mean`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from service.methods.noisy_mean import HISTOGRAM, NoisyMeanOrder

from workers.checkpoints import Checkpoint, position_of, resume
from workers.generators.released import AnswersRelease
from workers.mechanism.label_counts import label_counts
from workers.mechanism.noise import release_counts

if TYPE_CHECKING:
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


class Run:
    """One noisy histogram; the mean is post-processing."""

    def __init__(
        self, order: NoisyMeanOrder, plan: Plan, source: Source, randomness: SecureRandom, _device: torch.device
    ) -> None:
        self.order, self.plan, self.randomness = order, plan, randomness
        self.table, self.domain = source.table(numeric_bins=order.numeric_bins)
        ranges = [place for place, column in enumerate(self.domain.columns) if column.kind == "grid"]
        self.place = ranges[0] if order.column is None else self.domain.index(order.column)
        self.noisy = torch.zeros(0)
        self.is_private = randomness.is_private

    def measure(self) -> None:
        noise_multiplier = self.plan.take_gaussian(HISTOGRAM)
        counts = label_counts(
            self.table.codes[:, self.place],
            categories=self.domain.widths[self.place],
            unit_starts=self.table.unit_starts,
            max_rows_per_unit=self.table.max_rows_per_unit,
        )
        (self.noisy,) = release_counts(
            counts,
            noise_stds=[noise_multiplier * counts.sensitivities[0]],
            noise_multiplier=noise_multiplier,
            randomness=self.randomness,
        )

    def checkpoint(self) -> Checkpoint:
        return Checkpoint({"noisy": self.noisy}, position_of(self))

    def restore(self, checkpoint: Checkpoint) -> None:
        resume(self, checkpoint.values)
        self.noisy = checkpoint.tensors["noisy"]

    def finish(self, hooks: Hooks) -> AnswersRelease:
        column = self.domain.columns[self.place]
        edges = np.asarray(column.edges, dtype=np.float64)
        counts = np.clip(self.noisy.double().numpy()[: len(edges) - 1], 0.0, None)  # the last may be "missing"
        mean = float(counts @ ((edges[1:] + edges[:-1]) / 2.0) / max(1.0, counts.sum()))
        hooks.on_progress(self.order.progress_steps)
        return AnswersRelease(
            answers={"column": column.name, "mean": mean}, is_private=self.is_private, engine="none: noisy counts"
        )
