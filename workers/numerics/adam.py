"""Adam (Kingma and Ba 2015, algorithm 1) by torch's fused kernels, without what `torch.optim.Adam` brings along.

That class imports torch's compiler when it is made, two to three seconds and 70 MiB of every training, and runs hooks around each
step. Nothing here is compiled by torch and nothing hooks a step.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim.adam import adam

EPS = 1e-8


class Adam:
    """Moves tensors against their `grad`, which every one of them has at a step; `learning_rate` may change between steps."""

    def __init__(self, tensors: Iterable[Tensor], *, learning_rate: float, betas: tuple[float, float]) -> None:
        self.tensors = list(tensors)
        self.learning_rate, self.betas = learning_rate, betas
        self.state = {
            "step": [torch.zeros((), device=tensor.device) for tensor in self.tensors],
            "exp_avg": [torch.zeros_like(tensor) for tensor in self.tensors],
            "exp_avg_sq": [torch.zeros_like(tensor) for tensor in self.tensors],
        }

    def zero_grad(self) -> None:
        for tensor in self.tensors:
            tensor.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """One step. ValueError: a tensor has no gradient."""
        gradients = [tensor.grad for tensor in self.tensors if tensor.grad is not None]
        if len(gradients) < len(self.tensors):
            raise ValueError("Adam: a tensor has no gradient")
        adam(
            self.tensors,
            gradients,
            self.state["exp_avg"],
            self.state["exp_avg_sq"],
            [],
            self.state["step"],
            fused=True,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self.learning_rate,
            weight_decay=0.0,
            eps=EPS,
            maximize=False,
        )
