"""All teachers side by side: one perceptron each, trained on the rows of its own part of the units. Nothing here may leave the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.methods.choose.parts import units_of_part
from workers.networks.table import LEAKY_SLOPE
from workers.numerics.adam import Adam

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from workers.mechanism.secure_random import SecureRandom

BETAS = (0.5, 0.9)


def parts_of(units: int, *, teachers: int, seed: int) -> list[NDArray[np.int64]]:
    """The units of every teacher: of one size, no unit in two of them, by coins that read no row."""
    return [units_of_part(units, seed=seed, parts=teachers, part=part) for part in range(teachers)]


class Teachers:
    """Weights (teachers, …). What one teacher computes is a function of its own rows, public records and coins, to the last bit."""

    def __init__(
        self,
        teachers: int,
        width: int,
        *,
        hidden: int,
        learning_rate: float,
        relative: bool,
        randomness: SecureRandom,
        device: torch.device,
    ) -> None:
        def drawn(*shape: int, by: int) -> Tensor:
            normals = randomness.normals(teachers, *shape, dtype=torch.float32, device=device)
            weights: Tensor = normals * by**-0.5
            return weights.requires_grad_()

        self.first, self.bias = drawn(width, hidden, by=width), drawn(1, hidden, by=width)
        self.last = drawn(hidden, 1, by=hidden)
        self.relative = relative
        self.tensors = [self.first, self.bias, self.last]
        self.adam = Adam(self.tensors, learning_rate=learning_rate, betas=BETAS)

    def scores(self, records: Tensor) -> Tensor:
        """Logits (teachers, R) of records (R, width) that all of them see, or (teachers, R, width) of each."""
        state = F.leaky_relu(records @ self.first + self.bias, LEAKY_SLOPE)
        return (state @ self.last).squeeze(-1)

    def step(self, real: Tensor, present: Tensor, fake: Tensor) -> None:
        """Towards telling real records (teachers, R, width) from synthetic ones (F, width); those that are not present say nothing."""
        of_real = (F.softplus(-self.scores(real)) * present).sum() / max(1, real.shape[1])
        of_fake = F.softplus(self.scores(fake)).sum() / max(1, len(fake))
        # The sum over teachers: none is in the gradient of another.
        gradients = torch.autograd.grad(of_real + of_fake, self.tensors)
        for tensor, gradient in zip(self.tensors, gradients, strict=True):
            tensor.grad = gradient
        self.adam.step()

    @torch.no_grad()
    def votes(self, records: Tensor) -> Tensor:
        """Which records (R, width) each votes for: (teachers, R) bool. A score that is not a number is no vote.

        relative: those above the median of its own scores, never of others', so that a unit still moves one teacher's votes alone.
        """
        scores = self.scores(records)
        return scores > (scores.median(dim=1, keepdim=True)[0] if self.relative else 0.0)
