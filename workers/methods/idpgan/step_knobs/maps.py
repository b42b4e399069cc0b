"""Public linear maps of gradients: what is clipped and released instead of them, and the way back.

A map is fixed before a step's rows are read, from public coins and from what earlier steps released. It never sees a private gradient
but to map it. So the clip norms of its blocks are their sensitivities, whatever the map does, and a step costs what it cost without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from service.methods.idpgan.private_step import ReleasedScale, SparseUpdates

LEAST_UNIT = 1e-12
"""Of a scale, whatever is ordered: a number that float32 takes for 0 would be divided by."""

SEED = 0
"""Public: another attempt at a release draws the same masks and bases."""


class GradientMap:
    """The map that changes nothing; others override what they need."""

    name: ClassVar[str] = "plain"

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.sizes = [tensor.shape for tensor in tensors]
        self.device = tensors[0].device

    @property
    def shapes(self) -> list[torch.Size]:
        """The shapes of the blocks that are clipped and released."""
        return self.sizes

    @property
    def kinds(self) -> list[int]:
        """A number for every block; blocks of different kinds are never clipped together."""
        return [0] * len(self.shapes)

    @property
    def is_bias(self) -> list[bool]:
        """For every block, whether it is of a bias."""
        return [len(size) == 1 for size in self.sizes]

    @property
    def importance(self) -> tuple[float, ...] | None:
        """For every block, how much a squared unit of its noise weighs; None: all alike."""
        return None

    def prepare(self, step: int, tensors: Sequence[Tensor]) -> None:
        """Called before a step, for new coins or a new basis. `tensors` are the critic's, which are public."""

    def forward(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """Gradients of units (U, *size) -> blocks (U, *shape); of each unit by itself."""
        return list(gradients)

    def back(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        """Released blocks -> what is applied, of the tensors' sizes."""
        return list(blocks)

    def learn(self, applied: Sequence[Tensor]) -> None:
        """Called after a step with the released gradients, which are public."""

    def kept(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        """The part of public gradients that the map leaves."""
        blocks = self.forward([gradient.unsqueeze(0) for gradient in gradients])
        return self.back([block.squeeze(0) for block in blocks])

    def tensors(self) -> dict[str, Tensor]:
        """State for a checkpoint; all of it released or public."""
        return {}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """What `tensors` gave."""


def coins(step: int, place: int) -> np.random.Generator:
    """Public coins of a step and a tensor."""
    return np.random.default_rng((SEED, step, place))


class Part(GradientMap):
    """A share of each tensor's coordinates; the others are neither clipped nor released, and stay as they are."""

    def __init__(self, tensors: Sequence[Tensor], share: float) -> None:
        super().__init__(tensors)
        self.counts = [max(1, math.ceil(share * size.numel())) for size in self.sizes]
        self.places: list[Tensor] = []

    @property
    def shapes(self) -> list[torch.Size]:
        return [torch.Size((count,)) for count in self.counts]

    def forward(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        return [g.flatten(1).index_select(1, places) for g, places in zip(gradients, self.places, strict=True)]

    def back(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        return [
            block.new_zeros(size.numel()).index_copy_(0, places, block).view(size)
            for block, places, size in zip(blocks, self.places, self.sizes, strict=True)
        ]

    def largest(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Places of the largest coordinates of these tensors, in order."""
        return [
            torch.topk(tensor.detach().abs().flatten(), count).indices.sort()[0]
            for tensor, count in zip(tensors, self.counts, strict=True)
        ]


class Masked(Part):
    """A mask from weights that were trained on public rows (lottery tickets: Frankle, Carbin 2019; DPLTH: Gondara et al. 2020)."""

    name = "mask"

    def find(self, trained: Sequence[Tensor]) -> None:
        """`trained` is public. Before it nothing can be clipped."""
        self.places = self.largest(trained)

    @torch.no_grad()
    def prune(self, tensors: Sequence[Tensor]) -> None:
        """Set what the mask leaves out to zero."""
        for tensor, places in zip(tensors, self.places, strict=True):
            kept = tensor.flatten()[places]
            tensor.zero_().view(-1).index_copy_(0, places, kept)

    def tensors(self) -> dict[str, Tensor]:
        return {f"public_mask.{place}": places for place, places in enumerate(self.places)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        names = [f"public_mask.{place}" for place in range(len(self.sizes))]
        self.places = [tensors[name].to(self.device) for name in names if name in tensors]


class Sparse(Part):
    """DP-SSGD (Zhu et al. 2021): by public coins or by the size of public weights."""

    name = "sparse"

    def __init__(self, tensors: Sequence[Tensor], knob: SparseUpdates) -> None:
        super().__init__(tensors, knob.share)
        self.knob = knob
        self.prepare(0, tensors)

    def prepare(self, step: int, tensors: Sequence[Tensor]) -> None:
        if self.knob.chosen_by == "weights":
            self.places = self.largest(tensors)
        elif self.knob.chosen_by == "coins_of_the_step" or not self.places:
            of_step = step if self.knob.chosen_by == "coins_of_the_step" else 0
            self.places = [
                torch.from_numpy(np.sort(coins(of_step, place).permutation(size.numel())[:count])).to(self.device)
                for place, (size, count) in enumerate(zip(self.sizes, self.counts, strict=True))
            ]


class Scaled(GradientMap):
    """M⁻¹g is clipped and released, and multiplied back: AdaDP (Xu et al. 2020) with M from released gradients alone."""

    name = "scale"

    def __init__(self, tensors: Sequence[Tensor], knob: ReleasedScale) -> None:
        super().__init__(tensors)
        self.knob = knob
        self.squares = [torch.zeros_like(tensor) for tensor in tensors]
        """Moving means of squared released gradients; zeros before the first."""

    @property
    def units(self) -> list[Tensor]:
        """M of every coordinate: the root of its mean square, as a part of the tensor's."""
        return [self._unit(squares) for squares in self.squares]

    def forward(self, gradients: Sequence[Tensor]) -> list[Tensor]:
        return [gradient / unit for gradient, unit in zip(gradients, self.units, strict=True)]

    def back(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        return [block * unit for block, unit in zip(blocks, self.units, strict=True)]

    def learn(self, applied: Sequence[Tensor]) -> None:
        for squares, gradient in zip(self.squares, applied, strict=True):
            squares.lerp_(gradient.square(), 1.0 - self.knob.decay)

    def tensors(self) -> dict[str, Tensor]:
        return {f"step_map.{place}": squares for place, squares in enumerate(self.squares)}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        for place, squares in enumerate(self.squares):
            squares.copy_(tensors[f"step_map.{place}"])

    def _unit(self, squares: Tensor) -> Tensor:
        mean = squares.mean()
        relative = torch.where(mean > 0.0, squares / torch.where(mean > 0.0, mean, 1.0), 1.0)
        return relative.nan_to_num(1.0, 1.0, 1.0).sqrt().clamp(min=max(LEAST_UNIT, self.knob.smallest))
