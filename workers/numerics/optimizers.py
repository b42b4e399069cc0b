"""Optimisers of trained generators beside Adam, with its interface: RMSProp (DPGAN) and gradient descent (PPGAN)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import torch
from torch import Tensor

from workers.numerics.adam import EPS, Adam

Kind = Literal["adam", "rmsprop", "sgd"]


class RmsProp(Adam):
    """Tieleman and Hinton 2012: a step of learning_rate·g/√v, v the moving mean of g² with decay betas[1]."""

    def __init__(self, tensors: Iterable[Tensor], *, learning_rate: float, betas: tuple[float, float]) -> None:
        super().__init__(tensors, learning_rate=learning_rate, betas=betas)
        self.state = {"exp_avg_sq": self.state["exp_avg_sq"]}

    @torch.no_grad()
    def step(self) -> None:
        for tensor, square in zip(self.tensors, self.state["exp_avg_sq"], strict=True):
            gradient = _gradient_of(tensor)
            square.mul_(self.betas[1]).addcmul_(gradient, gradient, value=1.0 - self.betas[1])
            tensor.addcdiv_(gradient, square.sqrt().add_(EPS), value=-self.learning_rate)


class GradientDescent(Adam):
    """A step of learning_rate·g; both betas say nothing."""

    def __init__(self, tensors: Iterable[Tensor], *, learning_rate: float, betas: tuple[float, float]) -> None:
        super().__init__(tensors, learning_rate=learning_rate, betas=betas)
        self.state = {}

    @torch.no_grad()
    def step(self) -> None:
        for tensor in self.tensors:
            tensor.add_(_gradient_of(tensor), alpha=-self.learning_rate)


OF_KIND: dict[Kind, type[Adam]] = {"adam": Adam, "rmsprop": RmsProp, "sgd": GradientDescent}


def _gradient_of(tensor: Tensor) -> Tensor:
    if tensor.grad is None:
        raise ValueError("optimiser: a tensor has no gradient")
    return tensor.grad
