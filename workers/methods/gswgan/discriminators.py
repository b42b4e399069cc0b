"""Many small WGAN-GP critics side by side, each trained on its own part, without noise: none of them may leave the process."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.networks.table import LEAKY_SLOPE
from workers.numerics.adam import EPS
from workers.numerics.slopes import squared_distance_from_one


class Discriminators:
    """LeakyReLU perceptrons of one shape; critic k is slice k of every tensor, and reads no other slice."""

    def __init__(
        self, count: int, record: int, hidden: Sequence[int], *, learning_rate: float, betas: tuple[float, float]
    ) -> None:
        self.count, self.learning_rate, self.betas = count, learning_rate, betas
        self.tensors: list[Tensor] = []
        for before, after in pairwise((record, *hidden, 1)):
            bound = 1.0 / math.sqrt(before)
            self.tensors.append(torch.empty(count, before, after).uniform_(-bound, bound))
            self.tensors.append(torch.zeros(count, 1, after))
        self._means = [torch.zeros_like(tensor) for tensor in self.tensors]
        self._squares = [torch.zeros_like(tensor) for tensor in self.tensors]
        self._steps = torch.zeros(count)

    def step(self, which: Tensor, real: Tensor, fake: Tensor, present: Tensor, *, gradient_penalty: float) -> None:
        """One step of these critics. real, fake (C, B, W) records, present (C, B): which real ones there are."""
        tensors = [tensor[which].requires_grad_() for tensor in self.tensors]
        mix = torch.rand(*present.shape, 1)
        between = (mix * real + (1.0 - mix) * fake).requires_grad_()
        (slope,) = torch.autograd.grad(_scores(tensors, between).sum(), between, create_graph=True)
        penalties = gradient_penalty * squared_distance_from_one(slope)
        losses = _scores(tensors, fake) - _scores(tensors, real) + penalties
        # A sum over critics: each one's gradient is that of its own loss.
        loss = (losses * present).sum() / present.shape[1]
        self._adam(which, torch.autograd.grad(loss, tensors))

    def slope(self, which: int, records: Tensor) -> Tensor:
        """(B, W): the gradient of minus the sum of a critic's scores by the records (B, W)."""
        records = records.detach().requires_grad_()
        tensors = [tensor[which : which + 1] for tensor in self.tensors]
        (slope,) = torch.autograd.grad(-_scores(tensors, records.unsqueeze(0)).sum(), records)
        return slope

    @torch.no_grad()
    def _adam(self, which: Tensor, gradients: Sequence[Tensor]) -> None:
        first, second = self.betas
        self._steps[which] += 1.0
        steps = self._steps[which].view(-1, 1, 1)
        for tensor, mean, square, gradient in zip(self.tensors, self._means, self._squares, gradients, strict=True):
            finite = gradient.nan_to_num(0.0, 0.0, 0.0)
            mean[which] = first * mean[which] + (1.0 - first) * finite
            square[which] = second * square[which] + (1.0 - second) * finite.square()
            scale = (square[which] / (1.0 - second**steps)).sqrt() + EPS
            tensor[which] -= self.learning_rate * (mean[which] / (1.0 - first**steps)) / scale


def _scores(tensors: Sequence[Tensor], records: Tensor) -> Tensor:
    """(C, B) of records (C, B, W)."""
    state = records
    layers = list(zip(tensors[::2], tensors[1::2], strict=True))
    for weight, bias in layers[:-1]:
        state = F.leaky_relu(torch.baddbmm(bias, state, weight), LEAKY_SLOPE)
    weight, bias = layers[-1]
    return torch.baddbmm(bias, state, weight).squeeze(2)
