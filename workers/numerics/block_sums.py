"""Sums of products over rows, block by block, and how far rounding can push them apart on neighbouring inputs.

A row that changes alters the rounding of its own block only: the products of the other blocks are the same bits. That
makes float32 products usable inside a clipped sum, where one product over all rows would need float64.
"""

from __future__ import annotations

import torch
from torch import Tensor

from workers.numerics.compiling import BLOCKS_IN_FLOAT32, ROWS_AT_ONCE
from workers.numerics.workspace import Workspace

BLOCK_ROWS = 64
"""Rows of one product; padding to a multiple of it also keeps the number of shapes small."""

PRODUCTS_IN_FLOAT32 = 5
"""Products that are added up in float32, before they go to the sum in float64."""


def sum_in_blocks(left: Tensor, right: Tensor, workspace: Workspace) -> Tensor:
    """leftᵀ right (out, in) in float64 for left (rows, out) and right (rows, in), rows a multiple of BLOCK_ROWS.

    On the CPU: a product of BLOCK_ROWS terms an entry and the sum over a few of them in the dtype of the factors.
    Elsewhere in float64, because the order of additions of a GPU's product is not known to be the same twice.
    """
    if left.device.type != "cpu":
        return left.double().T @ right.double()
    tall = left.view(-1, BLOCK_ROWS, left.shape[1]).mT
    wide = right.view(-1, BLOCK_ROWS, right.shape[1])
    total = left.new_zeros(left.shape[1], right.shape[1], dtype=torch.float64)
    shape = (min(PRODUCTS_IN_FLOAT32, len(tall)), *total.shape)
    products = workspace.take("block_products", shape, like=left)
    for some, others in zip(
        torch.split(tall, PRODUCTS_IN_FLOAT32), torch.split(wide, PRODUCTS_IN_FLOAT32), strict=True
    ):
        total += torch.bmm(some, others, out=products[: len(some)]).sum(dim=0)
    return total


def block_sum_rounding(*, units: int, kinds: int, rows_per_unit: int) -> float:
    """How far two float32 sums over neighbours can drift apart by rounding, in units of one unit's largest Σ|terms|.

    units·rows_per_unit·kinds rows are added, those of a unit side by side within each kind. With Σ_k ‖left_k‖‖right_k‖ ≤ 1
    for every unit, a product of r rows is off by at most gamma_r times the units in it, and a sum of n products by at
    most gamma_n times the units in them; only those that hold the changed unit differ. Twice that for two neighbours.
    gamma_n = n·u/(1 - n·u), u of float32 (Higham 2002, §3.1 and §4.2: any order of addition, with or without FMA).
    The larger of two ways: `sum_in_blocks`, where kinds lie in sums of their own, and perceptron.c, which takes all
    kinds of whole units into one product.
    """
    in_a_product = _units_beside(BLOCK_ROWS, rows_per_unit)
    in_a_sum = kinds * _units_beside(PRODUCTS_IN_FLOAT32 * BLOCK_ROWS, rows_per_unit)
    drift = _drift(units, (BLOCK_ROWS, in_a_product), (PRODUCTS_IN_FLOAT32, in_a_sum))
    if rows_per_unit <= ROWS_AT_ONCE:
        in_a_product = ROWS_AT_ONCE // rows_per_unit
        in_a_sum = BLOCKS_IN_FLOAT32 * in_a_product
        drift = max(drift, _drift(units, (kinds * ROWS_AT_ONCE, in_a_product), (BLOCKS_IN_FLOAT32, in_a_sum)))
    return 2.0 * drift


def float32_gamma(additions: int) -> float:
    unit_roundoff = torch.finfo(torch.float32).eps / 2.0
    return additions * unit_roundoff / (1.0 - additions * unit_roundoff)


def _units_beside(rows: int, rows_per_unit: int) -> int:
    """Units in the blocks of so many rows that one unit lies in; it may straddle them, and share the first and last."""
    if rows % rows_per_unit == 0:
        return rows // rows_per_unit
    return (rows_per_unit // rows + 2) * rows // rows_per_unit + 2


def _drift(units: int, product: tuple[int, int], total: tuple[int, int]) -> float:
    """Of products and then of sums of them, each by its additions and the units in it."""
    return float32_gamma(product[0]) * min(product[1], units) + 1.01 * float32_gamma(total[0]) * min(total[1], units)
