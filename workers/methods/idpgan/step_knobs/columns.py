"""The first layer's columns in groups by the relevance of their inputs: heterogeneous noise (Phan et al. 2017 and 2019, corrected).

Relevance is public: of generated records, or bought. It says which columns are clipped together, and how their noise is shared out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from workers.methods.idpgan.step_knobs.maps import GradientMap

if TYPE_CHECKING:
    from service.methods.idpgan.private_step import InputImportance

LEAST_RELEVANCE = 0.05
"""Of a group, as a part of the mean: noise on no input is free."""


class Columns(GradientMap):
    """W_1 as one block for each group of its columns, then the other tensors."""

    name = "importance"

    def __init__(self, tensors: Sequence[Tensor], knob: InputImportance) -> None:
        super().__init__(tensors)
        self.knob = knob
        self.inputs = self.sizes[0][1]
        self.relevance = torch.ones(self.inputs, device=self.device)
        self.groups: tuple[Tensor, ...] = ()
        self._regroup()

    def is_due(self, step: int) -> bool:
        """Whether the relevance of generated records is to be looked at before this step."""
        return self.knob.relevance == "generated" and step % self.knob.every_steps == 0

    def take(self, relevance: Tensor) -> None:
        """Public relevance (W,) of a record's cells, of which the first layer sees the first."""
        found = relevance[: self.inputs].to(torch.float32)
        if bool(found.isfinite().all()) and float(found.sum()) > 0.0:
            self.relevance = found / found.mean()
            self._regroup()

    @property
    def shapes(self) -> list[torch.Size]:
        first = [torch.Size((self.sizes[0][0], len(group))) for group in self.groups]
        return [*first, *self.sizes[1:]]

    @property
    def kinds(self) -> list[int]:
        return [*range(len(self.groups)), *[len(self.groups)] * (len(self.sizes) - 1)]

    @property
    def is_bias(self) -> list[bool]:
        return [*[False] * len(self.groups), *super().is_bias[1:]]

    @property
    def importance(self) -> tuple[float, ...]:
        means = [max(LEAST_RELEVANCE, float(self.relevance[group].mean())) for group in self.groups]
        return (*means, *[1.0] * (len(self.sizes) - 1))

    def forward(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        return [*(gradients[0].index_select(2, group) for group in self.groups), *gradients[1:]]

    def back(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        first = blocks[0].new_zeros(self.sizes[0])
        for block, group in zip(blocks, self.groups, strict=False):
            first.index_copy_(1, group, block)
        return [first, *blocks[len(self.groups) :]]

    def tensors(self) -> dict[str, Tensor]:
        return {"step_map.relevance": self.relevance}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        self.relevance = tensors["step_map.relevance"].to(self.device)
        self._regroup()

    def _regroup(self) -> None:
        """Equally many columns a group, the most relevant first."""
        order = torch.argsort(self.relevance, descending=True, stable=True)
        self.groups = torch.tensor_split(order, min(self.knob.groups, self.inputs))


def relevance_of(critic: nn.Module, records: Tensor) -> Tensor:
    """(R, W): |x ⊙ ∂D/∂x| of every record, which is layer-wise relevance propagation in a network of rectifiers without biases."""
    seen = records.detach().requires_grad_()
    (slope,) = torch.autograd.grad(critic(seen).sum(), seen)
    return (slope * seen).detach().abs()
