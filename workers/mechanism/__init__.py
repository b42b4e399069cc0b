"""Privacy duties, one per module, each audited alone; none imports another (a lint checks it).

This page holds only the values that pass between them. What leaves a mechanism without noise is a `PrivateSum`: it
carries its own sensitivity, and `noise.release` is the only way out of it.
Adjacency everywhere: zero-out one unit (docs/privacy.md, Unit and adjacency).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

LARGEST_CANCELLATION = 64.0
"""The norms of the products a unit's gradient is added up from are at most this many times its `tensor_norms`.

What the terms of *other* units may leave behind by rounding is then bounded by their clip norms.
"""

FLOAT32_CANCELLATION = 8.0
"""The same for units that are added up in float32; those that cancel more (none in ordinary runs) go in float64."""

LARGEST_NORM = 1e15
"""A unit whose gradient is beyond this in any tensor counts as not finite: clipping it would leave rounding only."""


@dataclass(frozen=True, slots=True)
class PrivateSum:
    """A sum over private units, before noise, with its sensitivity.

    `groups` partitions the indices of `values`; zeroing out one unit moves the values of group k together by at most
    `sensitivities[k]` in L2.
    """

    values: tuple[Tensor, ...]
    groups: tuple[tuple[int, ...], ...]
    sensitivities: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class PrivateIntegers:
    """Whole numbers computed from private units, not yet noisy: zeroing out one unit moves them by `sensitivity` at most in L1, all together.

    `geometric.release_integers` is the way out.
    """

    values: NDArray[np.int64]
    sensitivity: int


@dataclass(frozen=True, slots=True)
class PrivateLosses:
    """How bad each of several public outputs is on private units, in whole numbers: the way out is `exponential.choose`.

    Zeroing out one unit moves a loss by `sensitivity` at most. is_monotone: it moves all of them up, or none.
    """

    values: NDArray[np.int64]
    sensitivity: int
    is_monotone: bool = False


@dataclass(frozen=True, slots=True)
class RowsOfUnits:
    """Whose rows are whose: unit i has the rows starts[i]:starts[i + 1], of which the first `most` are used. No starts: each row is a unit."""

    starts: NDArray[np.int64] | None = None
    most: int = 1

    def used(self, counted: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Those of these rows that count; rows beyond the most of their unit are left out here, whatever the reader promised."""
        if self.starts is None:
            return counted
        place_in_unit = np.arange(len(counted)) - np.repeat(self.starts[:-1], np.diff(self.starts))
        kept: NDArray[np.bool_] = counted & (place_in_unit < self.most)
        return kept


@dataclass(frozen=True, slots=True)
class DrawBounds:
    """How large a draw and its blocks can be; public, so that rounding can be bounded before a row is read."""

    most_units: int
    units_per_block: int
    rows_per_unit: int
    terms_per_row: int = 3
    """Products that a row adds to an entry of a sum."""
    block_rounding: float | None = None
    """How far a block's float32 products can push the sums of two neighbours apart, in clip norms; None: as those of
    `outer_products` do."""


@dataclass(frozen=True, slots=True)
class CriticBatch:
    """R rows, `rows_per_unit` of every unit side by side, ready for the critic's loss.

    One that is not `present` is a null record, and adds nothing to its unit.
    """

    real: Tensor  # (R, W) one-hot records
    fake: Tensor  # (R, W) G(z_i)
    mix: Tensor  # (R, 1) e_i ~ U[0, 1]
    present: Tensor  # (R,) bool
    rows_per_unit: int = 1

    @property
    def units(self) -> int:
        return len(self.present) // self.rows_per_unit


@dataclass(frozen=True, slots=True)
class CriticLoss:
    """ℓ_i = [D(G(z_i))] - D(x_i) + λ(‖∇D(x̂_i)‖ - 1)²; the bracket only when paired (docs/privacy.md, One private step)."""

    paired: bool
    gradient_penalty: float


@dataclass(frozen=True, slots=True)
class Perceptron:
    """A critic's tensors: weights W_1..W_L (W_L has one row), biases b_1..b_{L-1}, and LeakyReLU's slope."""

    weights: Sequence[Tensor]
    biases: Sequence[Tensor]
    slope: float


class PerUnitGradients(Protocol):
    """Gradients of a block of units with respect to M critic tensors, however they are held.

    A unit's part is a function of its own rows, coins and place alone, to the last bit: null units keep their place.
    """

    @property
    def tensor_norms(self) -> Tensor:
        """(U, M) float64: an upper bound on the norm that `weighted_sum` adds at weight 1.

        Tight to float64 rounding, except where the gradient's terms cancel by more than `LARGEST_CANCELLATION`.
        """

    @property
    def contributes(self) -> Tensor:
        """(U,) bool: False for null units and for units whose gradient is not finite."""

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        """Σ_i weights[i, m]·g_i,m for each tensor m, with weights (U, M); a unit that does not contribute adds 0.

        At most `DrawBounds.terms_per_row` products for every row in an entry; its rounding is `clipping.sum_rounding`.
        """


@runtime_checkable
class SelfClipping(Protocol):
    """What gradients may offer besides: to go over the rows once for norms and sum together."""

    def add_clipped(
        self, together: Tensor, *, group_of: Sequence[int], clip_norms: Sequence[float], smallest_factor: float
    ) -> None:
        """Add the `weighted_sum` whose weights are `clipping.clip_weights` to `together`, all tensors one after the other.

        Without the slack that `clip_weights` leaves for the float64 rounding of norm and factor: it is the caller's.
        Afterwards `tensor_norms` and `contributes` are known.
        """
