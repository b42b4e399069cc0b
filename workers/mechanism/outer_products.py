"""Exact per-unit gradients of a LeakyReLU perceptron critic as outer products, never stored in full.

The formulas, in the order of the code (SPEED note, layers a_l = W_l h_{l-1} + b_l, h_l = φ(a_l), m_l = φ'(a_l)):
  u_L = ±1, u_l = m_l ⊙ W_{l+1}ᵀ u_{l+1}     backward at G(z), x (with sign -) and x̂
  g = W_1ᵀ u_1(x̂),  r = 2λ(‖g‖ - 1)/‖g‖·g   the penalty's pull on the input gradient
  q_0 = r, q_l = m_l(x̂) ⊙ W_l q_{l-1}        tangent pass at x̂
  ∂W_l = u_l(Gz) h_{l-1}(Gz)ᵀ + u_l(x) h_{l-1}(x)ᵀ + u_l(x̂) q_{l-1}ᵀ,   ∂b_l = u_l(Gz) + u_l(x)
A unit of several rows is the sum of its rows' products, of rank 3R. `gradients.vmap_gradients` is the oracle.

Everything lies in three places (G(z), x, x̂), row by row, in buffers that are used again at every step; q takes the
place of h(x̂) as soon as its slope has been read. Rows are padded to whole blocks of `BLOCK_ROWS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.mechanism import (
    FLOAT32_CANCELLATION,
    LARGEST_CANCELLATION,
    LARGEST_NORM,
    CriticBatch,
    CriticLoss,
    Perceptron,
)
from workers.numerics.block_sums import BLOCK_ROWS, sum_in_blocks
from workers.numerics.workspace import Workspace

GRAM_ROWS = 128
"""Rows whose factors the processor holds in float64 at once; more would fall out of a core's cache."""


@dataclass(frozen=True)
class OuterProduct:
    """Per unit, the matrix Σ_k left_k right_kᵀ; rank is `kinds` for every row of a unit."""

    left: Tensor  # (kinds, P, out), P = padded units · rows_per_unit
    right: Tensor  # (kinds, P, in)
    units: int
    rows_per_unit: int
    workspace: Workspace
    found: dict[str, Tensor] = field(default_factory=dict)
    """norms and cancelling (U,), for good: they are those of the rows before any was cleared."""

    @property
    def norms(self) -> Tensor:
        """(U,) float64 upper bound on the Frobenius norm; NaN beyond LARGEST_NORM."""
        _find_norms([self])
        return self.found["norms"]

    @property
    def cancelling(self) -> Tensor:
        """(U,) bool: the terms are longer than float32 sums allow."""
        _find_norms([self])
        return self.found["cancelling"]

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ_i weight_i Σ_k left_ik right_ikᵀ."""
        bad = self.norms.isnan()
        return self.sum_of(weights.masked_fill(bad, 0.0), bad, self.cancelling)

    def sum_of(self, weights: Tensor, bad: Tensor, cancelling: Tensor | None) -> Tensor:
        """The same where the bad units (U,) are known and have weight 0; what cancels is added up in float64.

        One product a block, over the stacked, rescaled rows. A GPU adds up everything in float64.
        """
        on_cpu = self.left.device.type == "cpu"
        apart = None if cancelling is None else cancelling.nonzero().squeeze(1)
        kept = weights if apart is None else weights.index_fill(0, apart, 0.0)
        scale = _by_row(kept, self.left.shape[1], self.rows_per_unit).unsqueeze(1)
        _clear_rows((self.left, self.right), bad, self.rows_per_unit)
        dtype = self.left.dtype if on_cpu else torch.float64
        scaled = self.workspace.take("scaled", tuple(self.left.shape), like=self.left, dtype=dtype)
        torch.mul(self.left, scale.to(dtype), out=scaled)
        total = sum_in_blocks(_flat(scaled), _flat(self.right), self.workspace)
        if apart is not None and len(apart):
            left, right = (self._grid(part)[:, apart].double() for part in (self.left, self.right))
            left *= weights[apart].view(-1, 1, 1)
            total += left.flatten(0, 2).T @ right.flatten(0, 2)
        return total

    def measure(self) -> Tensor:
        """(3, U) float64 from Gram matrices: the squared norm, Σ_k ‖left_k‖‖right_k‖, and the longest factor, squared."""
        left, right = self._gram(self.left), self._gram(self.right)
        lengths_left, lengths_right = _diagonal(left), _diagonal(right)  # (U, rank), squared
        products = (lengths_left * lengths_right).sqrt_().sum(dim=1)
        longest = torch.maximum(lengths_left, lengths_right).amax(dim=1)  # maximum and amax keep NaN
        return torch.stack(((left * right).sum(dim=(1, 2)), products, longest))

    @property
    def rank(self) -> int:
        return len(self.left) * self.rows_per_unit

    def _gram(self, factors: Tensor) -> Tensor:
        """(U, rank, rank) products of a unit's factors with one another, on the CPU some units at a time for the cache's sake."""
        grid = self._grid(factors).transpose(0, 1)  # (U, kinds, rows_per_unit, d)
        units, kinds, rows, size = grid.shape
        rank, some = kinds * rows, max(1, GRAM_ROWS // rows if factors.device.type == "cpu" else units)
        by_unit = self.workspace.take("gram", (min(some, units), rank, size), like=factors, dtype=torch.float64)
        grams = by_unit.new_empty(units, rank, rank)
        for start in range(0, units, some):
            part = by_unit[: min(some, units - start)]
            part.view(-1, kinds, rows, size).copy_(grid[start : start + some])
            torch.bmm(part, part.mT, out=grams[start : start + some])
        return grams

    def _grid(self, factors: Tensor) -> Tensor:
        """(kinds, U, rows_per_unit, d), without the padding."""
        kinds, _, size = factors.shape
        return factors.view(kinds, -1, self.rows_per_unit, size)[:, : self.units]


def _find_norms(products: Sequence[OuterProduct]) -> None:
    """Find the norms of all products that have none yet, together: upper bounds, and which units' terms cancel.

    From Gram matrices in float64. They cancel where the products do: the bound adds float64's own error. And what
    cancels still rounds: where the products are far longer than their sum, they set the norm (`LARGEST_CANCELLATION`).
    """
    products = [product for product in products if not product.found]
    if not products:
        return
    squared, largest, longest = torch.stack([product.measure() for product in products], dim=1)  # (L, U)
    terms = [p.left.shape[2] + p.right.shape[2] + p.rank**2 + 16 for p in products]
    eps = torch.finfo(torch.float64).eps
    error = torch.stack([own.square().mul_(count * eps) for own, count in zip(largest, terms, strict=True)])
    squared.clamp_(min=0.0)
    norms = torch.maximum((squared + error).sqrt_(), largest / LARGEST_CANCELLATION)
    # A product of moderate length may hide a factor that overflows, or that underflows once it is scaled.
    norms.masked_fill_(~(longest <= LARGEST_NORM**2), torch.nan)
    for product, own, cancelling in zip(products, norms, largest > FLOAT32_CANCELLATION * norms, strict=True):
        product.found.update(norms=own, cancelling=cancelling)


@dataclass(frozen=True)
class VectorGradient:
    """Per unit, a gradient small enough to hold: biases and the one-row last layer."""

    vector: Tensor  # (padded units, d)
    shape: torch.Size
    units: int

    @cached_property
    def norms(self) -> Tensor:
        """(U,) float64 upper bound, its own rounding added; NaN beyond LARGEST_NORM."""
        norms: Tensor = torch.linalg.vector_norm(self._held, dim=1)
        norms = norms * (1.0 + (self.vector.shape[1] + 8) * torch.finfo(torch.float64).eps)
        return norms.masked_fill_(~(norms <= LARGEST_NORM), torch.nan)

    @cached_property
    def _held(self) -> Tensor:
        """(U, d) float64."""
        return self.vector[: self.units].double()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ_i weight_i vector_i in float64."""
        bad = self.norms.isnan()
        return self.sum_of(weights.masked_fill(bad, 0.0), bad)

    def sum_of(self, weights: Tensor, bad: Tensor) -> Tensor:
        """The same, where the bad units (U,) are known and have weight 0: 0·inf would leave NaN."""
        if bad.device.type != "cpu" or bool(bad.any()):
            self._held.masked_fill_(bad.unsqueeze(1), 0.0)
        return torch.mv(self._held.T, weights).view(self.shape)


@dataclass(frozen=True)
class OuterProductGradients:
    """Gradients of U units, one part per critic tensor. They live in a workspace: use them before the next ones."""

    parts: tuple[OuterProduct | VectorGradient, ...]
    usable: Tensor  # (U,) bool: some row is present, and those have finite activations at x, G(z) and x̂

    @cached_property
    def tensor_norms(self) -> Tensor:
        _find_norms(self._products)
        return torch.stack([part.norms for part in self.parts], dim=1)

    @cached_property
    def contributes(self) -> Tensor:
        # A comparison with NaN is False.
        return self.usable & (self.tensor_norms <= LARGEST_NORM).all(dim=1)

    @property
    def _products(self) -> list[OuterProduct]:
        return [part for part in self.parts if isinstance(part, OuterProduct)]

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        kept = torch.where(self.contributes, weights.T, 0.0)  # (M, U)
        bad = self.tensor_norms.isnan()  # (U, M)
        on_cpu = bad.device.type == "cpu"  # a GPU adds up in float64 whatever cancels, and nothing waits for its answer
        some_cancel = on_cpu and bool(torch.stack([part.cancelling for part in self._products]).any())  # rarely
        sums = []
        for m, part in enumerate(self.parts):
            if isinstance(part, VectorGradient):
                sums.append(part.sum_of(kept[m], bad[:, m]))
            else:
                sums.append(part.sum_of(kept[m], bad[:, m], part.cancelling if some_cancel else None))
        return tuple(sums)


def outer_product_gradients(
    critic: Perceptron, batch: CriticBatch, loss: CriticLoss, workspace: Workspace | None = None
) -> OuterProductGradients:
    """Gradient of every unit's loss, the sum of its rows' losses, with the gradient penalty inside.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of R rows, those of a unit side by side; gives M tensors in the order W_1, b_1, …, W_L.
    Source:      Gulrajani et al. 2017, eq. 3; Gram norms: Goodfellow 2015; docs/privacy.md, One private step.
    Edge cases:  no rows -> no units' gradients; r = 0 where g = 0; null rows add nothing to their unit.
    """
    space = workspace or Workspace()
    weights, biases = critic.weights, critic.biases
    layers = [Layer(weight, bias, critic.slope, space) for weight, bias in zip(weights, biases, strict=False)]
    grid = UnitGrid.of(batch)
    rows = grid.rows

    # Forward. The first layer is affine, so a_1(x̂) = e·a_1(x) + (1 - e)·a_1(Gz) needs no third product.
    inputs = [grid.place(batch, space)]  # G(z), x, and later r (3, P, d_0)
    for place, layer in enumerate(layers):
        state = space.take(f"h{place + 1}", (3, rows, len(layer.weight)), like=layer.weight)
        if place == 0:
            layer.affine(inputs[0][:2], out=state[:2])
            torch.lerp(state[0], state[1], grid.mix, out=state[2])
            F.leaky_relu_(state, critic.slope)
        else:
            layer.forward(inputs[-1], out=state)
        inputs.append(state)
    # q will take the place of h(x̂), and a slope hides an overflow. One in an earlier layer has reached the last.
    finite = inputs[-1][2].sum(dim=1).isfinite()

    # Backward: u_l = m_l ⊙ W_{l+1}ᵀ u_{l+1}, from u_L = 1 at G(z) and x̂, -1 at x. The sign of h is that of a.
    signs = weights[-1].new_ones(3, 1, 1)
    signs[1] = -1.0
    last = space.take(f"u{len(layers)}", tuple(inputs[-1].shape), like=weights[-1])
    deltas = [_times_slope((signs * weights[-1]).expand_as(last), inputs[-1], critic.slope, out=last)]
    for place in range(len(layers) - 1, 0, -1):
        delta = space.take(f"u{place}", tuple(inputs[place].shape), like=last)
        deltas.insert(0, layers[place].back(deltas[0], inputs[place], out=delta))

    # Penalty: r, then the tangents q_0 … q_{L-1}, in the place of h(x̂).
    pull = layers[0].back(deltas[0][2], None, out=inputs[0][2])  # g (P, d_0)
    length = torch.linalg.vector_norm(pull, dim=1, keepdim=True)
    # 2λ(‖g‖ - 1)/‖g‖, and g·0 where g = 0; NaN stays.
    pull.mul_((length - 1.0).div_(length.masked_fill_(length == 0, torch.inf)).mul_(2.0 * loss.gradient_penalty))
    for place, layer in enumerate(layers):
        layer.push(inputs[place][2], inputs[place + 1][2])

    usable = grid.usable(finite)
    grid.clear_null_rows(inputs, deltas)
    first = 0 if loss.paired else 1  # separate: D(G(z)) is outside the private sum
    parts: list[OuterProduct | VectorGradient] = []
    for place, delta in enumerate(deltas):
        parts.append(OuterProduct(delta[first:], inputs[place][first:], grid.units, grid.rows_per_unit, space))
        parts.append(grid.add(delta[first:2], biases[place].shape, f"b{place}", space))
    parts.append(grid.add(inputs[-1][first:], weights[-1].shape, "last", space, minus=1 - first))
    return OuterProductGradients(tuple(parts), usable)


@dataclass(frozen=True)
class Layer:
    """A hidden layer's products of rows (..., d)."""

    weight: Tensor
    bias: Tensor
    slope: float
    workspace: Workspace

    def affine(self, rows: Tensor, *, out: Tensor) -> None:
        """W h + b."""
        torch.addmm(self.bias, _flat(rows), self.weight.T, out=_flat(out))

    def forward(self, rows: Tensor, *, out: Tensor) -> None:
        """φ(W h + b)."""
        self.affine(rows, out=out)
        F.leaky_relu_(out, self.slope)

    def back(self, deltas: Tensor, state: Tensor | None, *, out: Tensor) -> Tensor:
        """φ' ⊙ Wᵀ u, with φ' at the layer's inputs h = φ(a); without them just the product."""
        torch.mm(_flat(deltas), self.weight, out=_flat(out))
        return out if state is None else _times_slope(out, state, self.slope, out=out)

    def push(self, tangents: Tensor, state: Tensor) -> None:
        """φ' ⊙ W q, in the place of the layer's results h = φ(a)."""
        pushed = self.workspace.take("Wq", tuple(state.shape), like=state)
        _times_slope(torch.mm(tangents, self.weight.T, out=pushed), state, self.slope, out=state)


@dataclass(frozen=True)
class UnitGrid:
    """Which rows are whose: unit u has its rows at places u·rows_per_unit, u·rows_per_unit + 1, … of a grid.

    The grid is padded with null units to a multiple of BLOCK_ROWS.
    """

    units: int
    rows_per_unit: int
    padded_units: int
    mix: Tensor  # (P, 1)
    present: Tensor  # (P,) bool

    @classmethod
    def of(cls, batch: CriticBatch) -> UnitGrid:
        padded_units = -(-batch.units // BLOCK_ROWS) * BLOCK_ROWS
        rows, count = padded_units * batch.rows_per_unit, len(batch.present)
        mix, present = batch.mix.new_zeros(rows, 1), batch.present.new_zeros(rows)
        mix[:count], present[:count] = batch.mix, batch.present
        return cls(batch.units, batch.rows_per_unit, padded_units, mix, present)

    @property
    def rows(self) -> int:
        return self.padded_units * self.rows_per_unit

    def place(self, batch: CriticBatch, space: Workspace) -> Tensor:
        """(3, P, d): G(z) and x of every row at its place, zeros elsewhere; the third part is still empty."""
        placed = space.take("h0", (3, self.rows, batch.real.shape[1]), like=batch.real)
        for part, records in enumerate((batch.fake, batch.real)):
            placed[part, : len(records)] = records
            placed[part, len(records) :] = 0.0
        return placed

    def usable(self, finite: Tensor) -> Tensor:
        """(U,) bool from (P,) bool: some row is present, and every present one is finite."""
        shape = (self.padded_units, self.rows_per_unit)
        present, finite = self.present.view(shape)[: self.units], finite.view(shape)[: self.units]
        return present.any(dim=1) & (finite | ~present).all(dim=1)

    def clear_null_rows(self, *factors: Sequence[Tensor]) -> None:
        """A null row of a unit that has others adds nothing; a unit without any is dropped as a whole, later."""
        if self.rows_per_unit > 1:
            absent = ~self.present.unsqueeze(1)  # (P, 1)
            for part in (part for parts in factors for part in parts):
                part.masked_fill_(absent, 0.0)

    def add(
        self, terms: Tensor, shape: torch.Size, name: str, space: Workspace, *, minus: int | None = None
    ) -> VectorGradient:
        """Sum over the terms (kinds, P, d) of every unit, one kind perhaps with a minus sign. Overwrites that kind."""
        kinds, _, size = terms.shape
        vector = space.take(name, (self.padded_units, size), like=terms)
        if minus is not None:
            terms[minus].neg_()
        torch.sum(terms.view(kinds, self.padded_units, self.rows_per_unit, size), dim=(0, 2), out=vector)
        return VectorGradient(vector, shape, self.units)


def _times_slope(gradient: Tensor, state: Tensor, slope: float, *, out: Tensor) -> Tensor:
    """φ'(a) ⊙ gradient, where φ'(a) is read off the sign of h = φ(a)."""
    torch.ops.aten.leaky_relu_backward.grad_input(gradient, state, slope, True, grad_input=out)
    return out


def _flat(rows: Tensor) -> Tensor:
    return rows.flatten(0, -2)


def _by_row(weights: Tensor, rows: int, rows_per_unit: int) -> Tensor:
    """The weight of every row's unit on the padded grid, (rows,); padding has none."""
    padded = F.pad(weights, (0, rows // rows_per_unit - len(weights)))
    return padded if rows_per_unit == 1 else padded.repeat_interleave(rows_per_unit)


def _clear_rows(factors: Sequence[Tensor], bad: Tensor, rows_per_unit: int) -> None:
    """Zeros for the padding and the rows (kinds, P, d) of bad units: 0·inf would leave NaN."""
    units = len(bad)
    some = bad.device.type != "cpu" or bool(bad.any())
    for factor in factors:
        if units * rows_per_unit < factor.shape[1]:
            factor[:, units * rows_per_unit :] = 0.0
        if some:
            grid = factor.view(len(factor), -1, rows_per_unit, factor.shape[2])[:, :units]
            grid.masked_fill_(bad.view(units, 1, 1), 0.0)


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=-2, dim2=-1)
