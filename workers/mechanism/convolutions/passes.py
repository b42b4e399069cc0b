"""The passes through an image critic, which leave the factors of every unit's gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from workers.mechanism import CriticBatch, CriticLoss
from workers.mechanism.convolutions.critic import ImageCriticTensors
from workers.numerics.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Passes:
    """What the passes through the critic leave: the factors of every unit's gradients."""

    deltas: list[Tensor]  # u_l (3U, C_l, H_l, W_l) of every layer
    columns: list[Tensor]  # im2col of h_{l-1}, and of q_{l-1} at x̂
    last: Tensor  # (U, 3, d): h_L, and q_L at x̂
    labels: Tensor  # (U, 3, classes)
    finite: Tensor  # (U,) bool: the activations at x̂ are, which no factor shows


def image_passes(critic: ImageCriticTensors, batch: CriticBatch, loss: CriticLoss, space: Workspace) -> Passes:
    """Forward, backward to the input, and the tangents of the penalty forward again.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; these are the factors of gradients that are not clipped yet.
    Shapes:      batch of U rows of U units; see `Passes`.
    Source:      the formulas of `workers.mechanism.convolutions`.
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
