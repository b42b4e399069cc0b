"""Exact per-unit gradients of a LeakyReLU critic of images, a few units' at a time; a unit is one image.

The formulas are those of `outer_products`, with a sum over the places p of a layer's output (rows of im2col):
  ∂W_l = Σ_p u_l(Gz)_p h_{l-1}(Gz)_pᵀ + u_l(x)_p h_{l-1}(x)_pᵀ + u_l(x̂)_p q_{l-1,p}ᵀ,   ∂b_l = Σ_p u_l(Gz)_p + u_l(x)_p
so a layer's gradient has rank 3P for P places. Where that is small, norms come from Gram matrices and the weighted sum
from products over rescaled rows; where it is large, every unit's gradient is held until its weight is known.
`gradients.vmap_gradients` is the oracle.

Everything lies unit by unit and, within a unit, in three kinds (G(z), x, x̂); q takes the place of h(x̂).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.mechanism import LARGEST_CANCELLATION, LARGEST_NORM, CriticBatch, CriticLoss
from workers.numerics.block_sums import float32_gamma
from workers.numerics.kernels import kernels
from workers.numerics.workspace import Workspace

UNITS_AT_ONCE = 64
"""Most units of a block: a float32 product over their held gradients then rounds by at most 0.0005 clip norms."""

UNITS_AT_ONCE_ON_A_GPU = 512
"""There products are in float64, and many small blocks leave most of it idle."""

STACKED_CANCELLATION = 32.0
"""Rows of a few units are added up in float32 where their norms add up to at most this many times the sum's norm."""

STACKED_ROUNDING = 0.004
"""How many clip norms such a product may round by, in the worst case; this says how many units share one."""

HELD_MOST_BYTES = 96 * 2**20
HELD_MOST_BYTES_ON_A_GPU = 256 * 2**20
"""Memory for gradients that are held; a block has as few units as that takes."""

FLOAT64_COST = 3
"""A product in float64, its conversions included, beside one in float32."""

LONG = 4_096
"""Entries from which a gradient's norm is taken by itself."""


@dataclass(frozen=True, slots=True)
class ImageCriticTensors:
    """A critic's tensors and geometry. Records are (height, width, channels), flattened, then the one-hot label."""

    shape: tuple[int, int, int]
    kernels: Sequence[Tensor]  # (out, in, k, k)
    biases: Sequence[Tensor | None]  # the first is None where there are labels
    labels: Tensor | None  # (out_1, classes)
    output: Tensor  # (1, height_L · width_L · out_L)
    stride: int
    padding: int
    slope: float

    def sides(self) -> list[tuple[int, int]]:
        """Height and width of the input and of every layer's output."""
        sides = [self.shape[:2]]
        for kernel in self.kernels:
            height, width = ((side + 2 * self.padding - kernel.shape[2]) // self.stride + 1 for side in sides[-1])
            sides.append((height, width))
        return sides

    def is_stacked(self, layer: int) -> bool:
        """Whether Gram matrices of that layer's rows cost less than every unit's gradient."""
        height, width = self.sides()[layer + 1]
        kernel = self.kernels[layer]
        rank, left, right = 3 * height * width, len(kernel), kernel[0].numel()
        return FLOAT64_COST * rank * (left + right) < left * right

    def units_per_block(self) -> int:
        """Units whose gradients are held at once."""
        held = sum(kernel.numel() for layer, kernel in enumerate(self.kernels) if not self.is_stacked(layer))
        most_units, most_bytes = UNITS_AT_ONCE, HELD_MOST_BYTES
        if self.output.device.type != "cpu":
            most_units, most_bytes = UNITS_AT_ONCE_ON_A_GPU, HELD_MOST_BYTES_ON_A_GPU
        return max(4, min(most_units, most_bytes // (4 * max(1, held))))

    def terms_per_unit(self) -> int:
        """Products that a unit adds to an entry of any tensor's sum, at most."""
        stacked = [3 * math.prod(self.sides()[k + 1]) for k in range(len(self.kernels)) if self.is_stacked(k)]
        return max([3, *stacked])

    def block_rounding(self) -> float:
        """How far the float32 products of a block can push the sums of two neighbours apart, in clip norms.

        Held gradients: one product over at most UNITS_AT_ONCE units, each of norm at most 1. Stacked rows: those
        of a few units in one product (`_units_per_product`); products and blocks are added up in float64. On a GPU
        products are in float64, too, and round by far less.
        """
        held = 2.0 * float32_gamma(UNITS_AT_ONCE) * UNITS_AT_ONCE
        scaled = 4.0 * torch.finfo(torch.float32).eps * STACKED_CANCELLATION
        return max(held, max(_rounding(self.terms_per_unit(), 1), STACKED_ROUNDING) + scaled)


@dataclass(frozen=True)
class HeldGradient:
    """Per unit, a gradient in full."""

    rows: Tensor  # (U, d)
    shape: torch.Size
    workspace: Workspace

    @cached_property
    def norms(self) -> Tensor:
        """(U,) float64, NaN beyond LARGEST_NORM. On the CPU by loops or unit by unit, in a buffer that stays in the cache."""
        loops = kernels(self.rows.device, self.rows.dtype)
        if loops is not None:
            norms = loops.squared_lengths(self.rows.contiguous()).sqrt_()
        elif self.rows.device.type == "cpu" and self.rows.shape[1] >= LONG:
            one = self.workspace.take("one gradient", (self.rows.shape[1],), like=self.rows, dtype=torch.float64)
            squares = [torch.dot(one.copy_(row), one) for row in self.rows]
            norms = torch.stack(squares).sqrt_() if squares else self.rows.new_zeros(0, dtype=torch.float64)
        else:
            norms = torch.linalg.vector_norm(self.rows.double(), dim=1)
        return torch.where(norms <= LARGEST_NORM, norms, torch.nan)

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ_i weight_i row_i: one product in float32 on the CPU, in float64 elsewhere (`block_sums`)."""
        bad = self.norms.isnan()
        if bad.device.type != "cpu" or bad.any():
            self.rows.masked_fill_(bad.unsqueeze(1), 0.0)
        rows = self.rows if bad.device.type == "cpu" else self.rows.double()
        return (weights.to(rows.dtype) @ rows).reshape(self.shape)


@dataclass(frozen=True)
class StackedGradient:
    """Per unit, the matrix leftᵀ right of few rows: its products are never stored."""

    left: Tensor  # (U, rank, out)
    right: Tensor  # (U, rank, in)
    workspace: Workspace

    @property
    def norms(self) -> Tensor:
        """(U,) float64 upper bound on the Frobenius norm, from Gram matrices in float64; NaN beyond LARGEST_NORM.

        As in `outer_products`: float64's own error is added, and products far longer than their sum set the norm.
        """
        return self._norms_and_cancelling[0]

    @cached_property
    def _norms_and_cancelling(self) -> tuple[Tensor, Tensor]:
        squared, lengths = self._squared_norms_and_lengths()
        largest = (lengths[0] * lengths[1]).sqrt().sum(dim=1)  # (U,) Σ_k ‖left_k‖‖right_k‖
        terms = self.left.shape[2] + self.right.shape[2] + self.left.shape[1] ** 2 + 16
        error = terms * torch.finfo(torch.float64).eps * largest.square()
        norms = torch.maximum((squared.clamp(min=0.0) + error).sqrt(), largest / LARGEST_CANCELLATION)
        # A product of moderate length may hide a factor that overflows, or that underflows once it is scaled.
        norms = torch.where((lengths <= LARGEST_NORM**2).all(dim=2).all(dim=0), norms, torch.nan)
        return norms, largest > STACKED_CANCELLATION * norms

    def weighted_sum(self, weights: Tensor) -> Tensor:
        """Σ_i weight_i left_iᵀ right_i in float64; what cancels, and everything on a GPU, as products in float64."""
        norms, cancelling = self._norms_and_cancelling
        bad = norms.isnan()
        on_cpu = bad.device.type == "cpu"
        if not on_cpu or bad.any():
            for factor in (self.left, self.right):
                factor.masked_fill_(bad.view(-1, 1, 1), 0.0)
        total = norms.new_zeros(self.left.shape[2], self.right.shape[2])
        if self.left.dtype == torch.float64 or not on_cpu:
            scaled = self.left.double() * weights.view(-1, 1, 1)
            return total.addmm_(scaled.flatten(0, 1).T, self.right.double().flatten(0, 1))
        apart = cancelling.nonzero().squeeze(1)
        scale = weights.index_fill(0, apart, 0.0).to(self.left.dtype)
        together, loops = _units_per_product(self.left.shape[1]), kernels(self.left.device, self.left.dtype)
        if loops is not None:
            factors = self.left.contiguous(), self.right.contiguous()
            loops.add_products(*factors, scale, total, together=together, workspace=self.workspace)
        else:
            scaled = self.left * scale.view(-1, 1, 1)
            for some in (slice(start, start + together) for start in range(0, len(weights), together)):
                total += scaled[some].flatten(0, 1).T @ self.right[some].flatten(0, 1)
        for unit in apart.tolist():
            total.addmm_(self.left[unit].double().T * weights[unit], self.right[unit].double())
        return total

    def _squared_norms_and_lengths(self) -> tuple[Tensor, Tensor]:
        """(U,) float64 without what its rounding may add; and of the rows of both factors (2, U, rank), squared too."""
        loops = kernels(self.left.device, self.left.dtype)
        if loops is not None:
            return loops.gram_norms(self.left.contiguous(), self.right.contiguous(), self.workspace)
        left, right = self._gram(self.left), self._gram(self.right)  # (U, rank, rank)
        return (left * right).sum(dim=(1, 2)), torch.stack((_diagonal(left), _diagonal(right)))

    def _gram(self, factors: Tensor) -> Tensor:
        by_unit = self.workspace.take("gram", tuple(factors.shape), like=factors, dtype=torch.float64).copy_(factors)
        return by_unit @ by_unit.mT


@dataclass(frozen=True)
class PlacedKernel:
    """A convolution's sum, found with rows in the order (k, k, in), as a kernel (out, in, k, k)."""

    gradient: HeldGradient | StackedGradient
    shape: torch.Size

    @property
    def norms(self) -> Tensor:
        return self.gradient.norms

    def weighted_sum(self, weights: Tensor) -> Tensor:
        outputs, inputs, *sides = self.shape
        return self.gradient.weighted_sum(weights).view(outputs, *sides, inputs).permute(0, 3, 1, 2)


@dataclass(frozen=True)
class ConvolutionGradients:
    """Gradients of U units, one part per critic tensor. They live in a workspace: use them before the next ones."""

    parts: tuple[PlacedKernel | HeldGradient, ...]
    usable: Tensor  # (U,) bool: the row is present and has finite activations at x, G(z) and x̂

    @cached_property
    def tensor_norms(self) -> Tensor:
        return torch.stack([part.norms for part in self.parts], dim=1)

    @cached_property
    def contributes(self) -> Tensor:
        # A comparison with NaN is False.
        return self.usable & (self.tensor_norms <= LARGEST_NORM).all(dim=1)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, ...]:
        kept = torch.where(self.contributes.unsqueeze(1), weights, 0.0)
        return tuple(part.weighted_sum(kept[:, m]) for m, part in enumerate(self.parts))


@dataclass(frozen=True, slots=True)
class Passes:
    """What the passes through the critic leave: the factors of every unit's gradients."""

    deltas: list[Tensor]  # u_l (3U, C_l, H_l, W_l) of every layer
    columns: list[Tensor]  # im2col of h_{l-1}, and of q_{l-1} at x̂
    last: Tensor  # (U, 3, d): h_L, and q_L at x̂
    labels: Tensor  # (U, 3, classes)
    finite: Tensor  # (U,) bool: the activations at x̂ are, which no factor shows


@torch.no_grad()
def convolution_gradients(
    critic: ImageCriticTensors, batch: CriticBatch, loss: CriticLoss, workspace: Workspace | None = None
) -> ConvolutionGradients:
    """Gradient of every unit's loss with the gradient penalty inside, which is over the pixels and not the label.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of U rows of U units, at most `units_per_block`; gives M tensors in the order of the critic's
                 parameters: W_1, b_1 (without labels), W_2, b_2, …, the labels' matrix, the output.
    Source:      Gulrajani et al. 2017, eq. 3; Gram norms: Goodfellow 2015, Rochette et al. 2019; docs/privacy.md, One private step.
    Edge cases:  no rows -> no units' gradients; r = 0 where g = 0; several rows a unit -> ValueError.
    """
    if len(batch.real) != batch.units or batch.units > critic.units_per_block():
        raise ValueError(f"this engine takes at most {critic.units_per_block()} units of one row")
    space = workspace or Workspace()
    # On a GPU a convolution may add up in an order of its own each time: a unit's part must be the same bits again.
    with torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False):
        passes = image_passes(critic, batch, loss, space)
    first = 0 if loss.paired else 1  # separate: D(G(z)) is outside the private sum
    ends = slice(first, 2)
    deltas = [_by_kind(delta) for delta in passes.deltas]  # (U, 3, P, C)
    parts: list[PlacedKernel | HeldGradient] = []
    for layer, (kernel, bias) in enumerate(zip(critic.kernels, critic.biases, strict=True)):
        left = deltas[layer][:, first:].flatten(1, 2)
        right = _by_unit(passes.columns[layer], deltas[layer], first)
        product: HeldGradient | StackedGradient
        if critic.is_stacked(layer):
            product = StackedGradient(left, right, space)
        else:
            out = space.take(f"held {layer}", (batch.units, left.shape[2], right.shape[2]), like=left)
            torch.bmm(left.mT, right, out=out)
            product = HeldGradient(out.flatten(1), out.shape[1:], space)
        parts.append(PlacedKernel(product, kernel.shape))
        if bias is not None:
            parts.append(HeldGradient(deltas[layer][:, ends].sum(dim=(1, 2)), bias.shape, space))
    if critic.labels is not None:
        total = deltas[0][:, ends].sum(dim=2).mT @ passes.labels[:, ends]  # (U, C_1, classes)
        parts.append(HeldGradient(total.flatten(1), critic.labels.shape, space))
    last = passes.last
    total = last[:, 2] - last[:, 1]
    parts.append(HeldGradient(total.add_(last[:, 0]) if loss.paired else total, critic.output.shape, space))
    return ConvolutionGradients(tuple(parts), batch.present & passes.finite)


def image_passes(critic: ImageCriticTensors, batch: CriticBatch, loss: CriticLoss, space: Workspace) -> Passes:
    """Forward, backward to the input, and the tangents of the penalty forward again.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; these are the factors of gradients that are not clipped yet.
    Shapes:      batch of U rows of U units; see `Passes`.
    Source:      the formulas at the top of this module.
    Edge cases:  no rows -> no units' factors; r = 0 where g = 0.
    """
    units, sides, pixels = batch.units, critic.sides(), math.prod(critic.shape)
    kernels = [kernel.contiguous(memory_format=torch.channels_last) for kernel in critic.kernels]
    records = batch.real.new_empty(units, 3, batch.real.shape[1])
    records[:, 0], records[:, 1] = batch.fake, batch.real
    torch.lerp(batch.fake, batch.real, batch.mix, out=records[:, 2])
    labels = records[:, :, pixels:]

    # h_l (3U, C, H, W) in the memory order of (U, 3, H, W, C).
    state = records[:, :, :pixels].reshape(3 * units, *critic.shape).permute(0, 3, 1, 2)
    states, columns = [], []
    for layer, (kernel, bias) in enumerate(zip(kernels, critic.biases, strict=True)):
        columns.append(_columns(state, kernel, critic, space, f"columns {layer}"))
        state = F.conv2d(state, kernel, bias, critic.stride, critic.padding)
        if layer == 0 and critic.labels is not None:
            state += (labels @ critic.labels.T).view(3 * units, len(critic.labels), 1, 1)
        state = F.leaky_relu_(state, critic.slope).contiguous(memory_format=torch.channels_last)
        states.append(state)

    # u_l = m_l ⊙ W_{l+1}ᵀ u_{l+1}, from u_L = 1 at G(z) and x̂, -1 at x. The sign of h is that of a.
    signs = critic.output.new_ones(units, 3)
    signs[:, 1] = -1.0
    pulled = (critic.output.view(*sides[-1], -1) * signs.view(-1, 1, 1, 1)).permute(0, 3, 1, 2)
    deltas: list[Tensor] = []
    for layer in range(len(kernels) - 1, -1, -1):
        deltas.insert(0, _times_slope(pulled, states[layer], critic.slope))
        if layer > 0:
            pulled = _transposed(deltas[0], kernels[layer], sides[layer], critic)

    # The penalty's pull r, then the tangents q_0 … q_L.
    between = slice(2, None, 3)
    pull = _transposed(deltas[0][between], kernels[0], sides[0], critic)  # g (U, C, H, W)
    length = torch.linalg.vector_norm(pull, dim=(1, 2, 3), keepdim=True)
    factor = 2.0 * loss.gradient_penalty * (length - 1.0) / torch.where(length > 0, length, 1.0)
    tangent = pull * torch.where(length > 0, factor, 0.0)
    finite = []
    for layer, kernel in enumerate(kernels):
        _columns(tangent, kernel, critic, space, f"columns {layer}", only_between=True)
        pushed = F.conv2d(tangent, kernel, None, critic.stride, critic.padding)
        finite.append(states[layer][between].sum(dim=(1, 2, 3)))  # a slope of zero or one hides an overflow
        tangent = _times_slope(pushed, states[layer][between], critic.slope)
    last = states[-1].permute(0, 2, 3, 1).reshape(units, 3, critic.output.shape[1])
    last[:, 2] = tangent.permute(0, 2, 3, 1).flatten(1)
    return Passes(deltas, columns, last, labels, torch.stack(finite).isfinite().all(dim=0))


def _times_slope(gradient: Tensor, state: Tensor, slope: float) -> Tensor:
    """φ'(a) ⊙ gradient, in its place; φ'(a) is read off the sign of h = φ(a)."""
    torch.ops.aten.leaky_relu_backward.grad_input(gradient, state, slope, True, grad_input=gradient)
    return gradient


def _by_kind(tensor: Tensor) -> Tensor:
    """(3U, C, H, W) in channels-last memory as (U, 3, H·W, C)."""
    count, channels, height, width = tensor.shape
    return tensor.permute(0, 2, 3, 1).reshape(count // 3, 3, height * width, channels)


def _by_unit(columns: Tensor, delta: Tensor, first: int) -> Tensor:
    """Rows of im2col (3U, h, w, k, k, C) as (U, rank, k·k·C), beside delta (U, 3, h·w, out)."""
    return columns.view(*delta.shape[:3], math.prod(columns.shape[3:]))[:, first:].flatten(1, 2)


def _columns(
    state: Tensor,
    kernel: Tensor,
    critic: ImageCriticTensors,
    space: Workspace,
    name: str,
    *,
    only_between: bool = False,
) -> Tensor:
    """im2col of (3U, C, H, W) as rows (3U, h, w, k, k, C); or of (U, C, H, W), in the place of h(x̂)'s rows.

    By a strided copy of a padded image, which `F.unfold` does slowly on few channels.
    """
    count, channels, height, width = state.shape
    size, padding, stride = kernel.shape[2], critic.padding, critic.stride
    tall, wide = height + 2 * padding, width + 2 * padding
    padded = space.take("padded", (count, tall, wide, channels), like=state)
    inside = padded[:, padding : padding + height, padding : padding + width]
    if padding:
        padded.zero_()
    inside.copy_(state.permute(0, 2, 3, 1))
    down, across, step = padded.stride()[0], padded.stride()[1], padded.stride()[2]
    places = ((tall - size) // stride + 1, (wide - size) // stride + 1)
    windows = padded.as_strided(
        (count, *places, size, size, channels), (down, stride * across, stride * step, across, step, 1)
    )
    total = 3 * count if only_between else count
    rows = space.take(name, (total, *windows.shape[1:]), like=state)
    (rows[2::3] if only_between else rows).copy_(windows)
    return rows


def _transposed(delta: Tensor, kernel: Tensor, side: tuple[int, int], critic: ImageCriticTensors) -> Tensor:
    """Wᵀ u: what a layer's output pulls back to its input (N, C, *side)."""
    # Where a library takes five times as long: for one channel, and on a GPU whatever comes out the same each time.
    if kernel.shape[1] == 1 or delta.device.type != "cpu":
        count, outputs, height, width = delta.shape
        rows = delta.permute(0, 2, 3, 1).reshape(count, height * width, outputs) @ kernel.flatten(1)
        pulled = F.fold(rows.mT, side, kernel.shape[2], padding=critic.padding, stride=critic.stride)
        return pulled.contiguous(memory_format=torch.channels_last)
    reached = [(s - 1) * critic.stride - 2 * critic.padding + kernel.shape[2] for s in delta.shape[2:]]
    rest = [s - r for s, r in zip(side, reached, strict=True)]
    pulled = F.conv_transpose2d(delta, kernel, None, critic.stride, critic.padding, rest)
    return pulled.contiguous(memory_format=torch.channels_last)


def _units_per_product(rank: int) -> int:
    """As many units of `rank` rows as keep a product's rounding within STACKED_ROUNDING; at least one."""
    units = 1
    while units < UNITS_AT_ONCE and _rounding(rank, units + 1) <= STACKED_ROUNDING:
        units += 1
    return units


def _rounding(rank: int, units: int) -> float:
    """2·gamma·Σ|terms| of a product over the rows of some units, in clip norms."""
    return 2.0 * float32_gamma(rank * units) * units * STACKED_CANCELLATION


def _diagonal(matrices: Tensor) -> Tensor:
    return matrices.diagonal(dim1=1, dim2=2)
