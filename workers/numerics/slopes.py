"""How steep a Wasserstein critic is, which is pulled to 1 (Gulrajani et al. 2017). Of steps that touch no private row, or release nothing of them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

SMALLEST_SQUARED_SLOPE = 1e-12
"""Keeps the gradient of ‖∇D‖ finite where ∇D is zero."""


def squared_distance_from_one(slopes: Tensor) -> Tensor:
    """(‖∇D‖ - 1)² of slopes (…, W)."""
    lengths = (slopes.square().sum(dim=-1) + SMALLEST_SQUARED_SLOPE).sqrt()
    return (lengths - 1.0).square()


def critic_loss(critic: nn.Module, high: Tensor, low: Tensor, *, gradient_penalty: float) -> Tensor:
    """Of a WGAN-GP critic between records to score high and others to score low, at places between that torch's generator draws."""
    mix = torch.rand(len(high), 1, device=high.device)
    between = (mix * high + (1.0 - mix) * low).requires_grad_()
    (slopes,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    penalty = gradient_penalty * squared_distance_from_one(slopes).mean()
    loss: Tensor = critic(low).mean() - critic(high).mean() + penalty
    return loss
