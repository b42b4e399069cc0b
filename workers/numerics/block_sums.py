"""Sums of products over rows, block by block, and how far rounding can push them apart on neighbouring inputs.

A row that changes alters the rounding of its own block only: the products of the other blocks are the same bits. That
makes float32 products usable inside a clipped sum, where one product over all rows would need float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from workers.numerics.kernels import ROWS_AT_ONCE
from workers.numerics.workspace import Workspace

BLOCK_ROWS = 64
"""Rows of one product; padding to a multiple of it also keeps the number of shapes small."""


def sum_in_blocks(left: Tensor, right: Tensor, workspace: Workspace) -> Tensor:
    """leftᵀ right (out, in) for left (rows, out) and right (rows, in), rows a multiple of BLOCK_ROWS.

    On the CPU: a product of BLOCK_ROWS terms an entry in the dtype of the factors, then the sum over blocks in it.
    Elsewhere in float64, because the order of additions of a GPU's product is not known to be the same twice.
    """
    if left.device.type != "cpu":
        return left.double().T @ right.double()
    blocks = len(left) // BLOCK_ROWS
    tall = left.view(blocks, BLOCK_ROWS, left.shape[1]).mT
    wide = right.view(blocks, BLOCK_ROWS, right.shape[1])
    products = workspace.take("block_products", (blocks, left.shape[1], right.shape[1]), like=left)
    return torch.bmm(tall, wide, out=products).sum(dim=0)


def block_sum_rounding(*, rows: int, kinds: int, rows_per_unit: int) -> float:
    """How far two sums over neighbours can drift apart by rounding, in units of one unit's largest Σ|terms|.

    rows·kinds rows are added, those of a unit side by side within each kind. With Σ_k ‖left_k‖‖right_k‖ ≤ 1 for every
    unit, a product of r rows is off by at most gamma_r times the units in it, and only the products that hold the changed
    unit differ; the sum over n products is off by at most gamma_n times all units. Twice that for two neighbours.
    gamma_n = n·u/(1 - n·u), u of float32 (Higham 2002, §3.1 and §4.2: any order of addition, with or without FMA).
    The larger of two ways: `sum_in_blocks`, and perceptron.c, which takes all kinds of whole units into one product.
    """
    units = -(-rows // rows_per_unit)
    if BLOCK_ROWS % rows_per_unit == 0:
        sharing = BLOCK_ROWS // rows_per_unit
    else:  # a unit may straddle blocks, and share the first and last with others
        sharing = (rows_per_unit // BLOCK_ROWS + 2) * BLOCK_ROWS // rows_per_unit + 2
    products = kinds * -(-rows // BLOCK_ROWS)
    drift = float32_gamma(BLOCK_ROWS) * min(sharing, units) + 1.01 * float32_gamma(products) * units
    if rows_per_unit <= ROWS_AT_ONCE:
        sharing = ROWS_AT_ONCE // rows_per_unit
        compiled = float32_gamma(kinds * ROWS_AT_ONCE) * min(sharing, units)
        drift = max(drift, compiled + 1.01 * float32_gamma(-(-units // sharing)) * units)
    return 2.0 * drift


def float32_gamma(additions: int) -> float:
    unit_roundoff = torch.finfo(torch.float32).eps / 2.0
    return additions * unit_roundoff / (1.0 - additions * unit_roundoff)
