"""RMSProp and gradient descent beside torch's own."""

from __future__ import annotations

import pytest
import torch

from workers.numerics.optimizers import OF_KIND, Kind

THEIRS = {
    "adam": lambda tensors: torch.optim.Adam(tensors, lr=0.01, betas=(0.5, 0.9)),
    "rmsprop": lambda tensors: torch.optim.RMSprop(tensors, lr=0.01, alpha=0.9),
    "sgd": lambda tensors: torch.optim.SGD(tensors, lr=0.01),
}


@pytest.mark.parametrize("kind", ["adam", "rmsprop", "sgd"])
def test_steps_are_those_of_torch(kind: Kind) -> None:
    torch.manual_seed(1)
    start = [torch.randn(4, 3), torch.randn(3)]
    ours, theirs = ([tensor.clone().requires_grad_() for tensor in start] for _ in range(2))
    optimizers = OF_KIND[kind](ours, learning_rate=0.01, betas=(0.5, 0.9)), THEIRS[kind](theirs)
    for _ in range(5):
        for one, other in zip(ours, theirs, strict=True):
            one.grad = torch.randn(one.shape)
            other.grad = one.grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)
    ours[0].grad = None
    with pytest.raises(ValueError, match="no gradient"):
        optimizers[0].step()
