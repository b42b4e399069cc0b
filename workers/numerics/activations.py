"""Activations of critics with their derivatives, both read off the activation's own value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor


class Activation(Protocol):
    """φ, and φ' and φ'' as functions of h = φ(a)."""

    @property
    def is_smooth(self) -> bool:
        """False where φ'' is zero."""

    def value(self, inputs: Tensor) -> Tensor: ...

    def slope(self, values: Tensor) -> Tensor: ...

    def curvature(self, values: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class LeakyRelu:
    """max(a, slope·a)."""

    below_zero: float
    is_smooth: bool = False

    def value(self, inputs: Tensor) -> Tensor:
        return F.leaky_relu(inputs, self.below_zero)

    def slope(self, values: Tensor) -> Tensor:
        """The sign of h is that of a."""
        return torch.where(values > 0.0, values.new_ones(()), values.new_full((), self.below_zero))

    def curvature(self, values: Tensor) -> Tensor:
        return torch.zeros_like(values)


@dataclass(frozen=True)
class TemperedSigmoid:
    """s/(1 + exp(-T·a)) - o (Papernot et al. 2021, eq. 2); (2, 2, 1) is tanh. With y = h + o: φ' = T·y(s - y)/s, φ'' = T·φ'(s - 2y)/s."""

    scale: float
    inverse_temperature: float
    offset: float
    is_smooth: bool = True

    def value(self, inputs: Tensor) -> Tensor:
        return self.scale * torch.sigmoid(self.inverse_temperature * inputs) - self.offset

    def slope(self, values: Tensor) -> Tensor:
        step = values + self.offset
        return self.inverse_temperature / self.scale * step * (self.scale - step)

    def curvature(self, values: Tensor) -> Tensor:
        step = values + self.offset
        return self.inverse_temperature / self.scale * self.slope(values) * (self.scale - 2.0 * step)
