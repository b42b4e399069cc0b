"""Per-unit gradients of autoencoders in blocks: outer products of what goes into a layer and what is asked of it.

A record's gradient is non-zero in its own block alone. So all blocks together are one vector, whose norm over all blocks is clipped
once, and one release of the sum serves all of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from workers.mechanism import DrawBounds
from workers.mechanism.outer_products import OuterProduct, OuterProductGradients, UnitGrid, VectorGradient
from workers.networks.autoencoders import Autoencoders, pass_through
from workers.networks.table import softmax_of_columns
from workers.numerics.block_sums import BLOCK_ROWS
from workers.numerics.workspace import Workspace

NAME = "outer_products"
"""Certificates name it."""
ROWS_OF_A_BLOCK = 2_048
"""Records that one call goes over; bounds memory, changes no result but by rounding."""


@dataclass(frozen=True)
class AutoencoderBatch:
    """R records, `rows_per_unit` of every unit side by side. One that is not `present` adds nothing to its unit."""

    records: Tensor  # (R, width + labels), labels last
    blocks: Tensor  # (R,) int64
    normals: Tensor  # (R, latent)
    present: Tensor  # (R,) bool
    rows_per_unit: int = 1

    @property
    def units(self) -> int:
        return len(self.present) // self.rows_per_unit


@dataclass(frozen=True)
class AutoencoderLoss:
    """Cross-entropy of cells or pixels, and `latent_weight` times the pull on codes."""

    widths: tuple[int, ...] | None
    """Cells of every column; None for pixels."""
    latent_weight: float
    latent_norm: float

    def error(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The gradient of the cross-entropy by the logits (R, width)."""
        made = torch.sigmoid(logits) if self.widths is None else softmax_of_columns(logits, self.widths)
        return made - targets


def draw_bounds(*, units: int, expected_units: float, rows_per_unit: int) -> DrawBounds:
    """Bounds of draws of this expected size. A larger draw has probability below 1e-90 (Bernstein) and must be cut."""
    most = min(units, math.ceil(2.0 * expected_units) + 200)
    return DrawBounds(most, max(1, ROWS_OF_A_BLOCK // rows_per_unit), rows_per_unit)


def autoencoder_gradients(
    networks: Autoencoders, batch: AutoencoderBatch, loss: AutoencoderLoss, workspace: Workspace
) -> OuterProductGradients:
    """Gradient of every unit's loss, the sum of its rows' losses, over the tensors of all blocks.

    Adjacency:   zero-out one unit.
    Sensitivity: unbounded; nothing may be released before clipping.
    Shapes:      batch of R rows; tensors in the order of `networks.parameters()`.
    Source:      Kingma and Welling 2014; Gram norms: Goodfellow 2015; docs/methods/dpgm.md.
    Edge cases:  no rows -> no units' gradients; rows of one unit may be of several blocks; a unit whose gradient is not finite
                 does not contribute.
    """
    padded_units = -(-batch.units // BLOCK_ROWS) * BLOCK_ROWS
    rows, own = padded_units * batch.rows_per_unit, len(batch.present)
    records = batch.records.new_zeros(rows, batch.records.shape[1])
    normals = batch.records.new_zeros(rows, networks.latent)
    block = batch.records.new_zeros(rows, networks.blocks)
    present = batch.present.new_zeros(rows)
    records[:own], normals[:own], present[:own] = batch.records, batch.normals, batch.present
    block[:own].scatter_(1, batch.blocks.unsqueeze(1), 1.0)

    with torch.enable_grad():
        passed = pass_through(networks, records, block, normals, loss.latent_norm)
        width = passed.sums[3].shape[1]
        with torch.no_grad():
            error = loss.error(passed.sums[3], records[:, :width])
        # Rows do not mix: the gradient of the sum by a row's own layers is that of the row's loss.
        pulled = torch.full_like(passed.pull, loss.latent_weight)
        deltas = torch.autograd.grad((passed.sums[3], passed.pull), passed.sums, (error, pulled))

    grid = UnitGrid(batch.units, batch.rows_per_unit, padded_units, present.new_zeros(rows, 1), present)
    inputs = [each.detach().unsqueeze(0).clone() for each in passed.inputs]
    asked = [each.unsqueeze(0).contiguous() for each in deltas]
    members = block.unsqueeze(0)
    grid.clear_null_rows(inputs, asked)

    def product(left: Tensor, right: Tensor) -> OuterProduct:
        return OuterProduct(left, right, grid.units, grid.rows_per_unit, workspace)

    parts: list[OuterProduct | VectorGradient] = []
    for place in (0, 2):
        hidden = asked[place]
        bias = grid.add(hidden, torch.Size((hidden.shape[2],)), f"bias{place}", workspace)
        parts += [product(hidden, inputs[place]), bias]
        parts += [product(asked[place + 1], inputs[place + 1]), product(members, asked[place + 1].clone())]
    return OuterProductGradients(tuple(parts), grid.usable(torch.ones_like(present)))
