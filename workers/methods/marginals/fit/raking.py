"""A fitted mixture moved towards what is best known of single columns, as far as that lowers its error. Post-processing.

A fit weighs all tables at once, and stops before it repeats their noise: where much is known, single columns are more accurate in
their own estimates than in the mixture. Adding the same to a cell's logits in all components moves a column's table and
leaves what components say of other columns. How far to go is told by Stein's estimate of the error of all measured tables
together (stopping.py), with the twin moved towards its own estimates as far.
Relative: iterative proportional fitting (Deming and Stephan 1940).
"""

from __future__ import annotations

import torch
from torch import Tensor

from workers.methods.marginals.fit.mixture_fit import LARGEST_LOGIT, NoisyTables, TwinFits, expected_counts
from workers.methods.marginals.fit.stopping import EstimatedRisk

STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""How far to go, of which the one of least estimated error is taken."""

_STEPS, _LARGEST_STEP = 6, 3.0
_SMALLEST_SHARE = 1e-3
"""Of an average cell: no cell that the mixture fills is emptied further, whatever its noisy count."""


def rake_where_better(fits: TwinFits, risk: EstimatedRisk) -> Tensor:
    """Logits (strata, components, W) of the fit, moved."""
    least, nearest = float("inf"), fits.logits
    for strength in STRENGTHS:
        moved, twin = raked(fits.logits, fits.tables, strength), raked(fits.twin_logits, fits.twin_tables, strength)
        error = risk.of_all_tables(expected_counts(moved, fits.tables), expected_counts(twin, fits.twin_tables))
        if error < least:
            least, nearest = error, moved
    return nearest


def raked(logits: Tensor, tables: NoisyTables, strength: float) -> Tensor:
    """Logits (strata, components, W) whose one-way tables are this part of the way from the mixture's to the estimated ones."""
    if strength == 0.0:
        return logits
    moved, widths = [], list(tables.widths)
    for own, counts in zip(torch.split(logits, widths, dim=2), torch.split(tables.one_way, widths, dim=1), strict=True):
        shares = own.softmax(dim=2).mean(dim=1)
        wanted = shares.lerp(counts / counts.sum(dim=1, keepdim=True), strength)
        wanted = wanted.maximum(shares.clamp(max=_SMALLEST_SHARE / counts.shape[1]))
        wanted /= wanted.sum(dim=1, keepdim=True)
        raised = torch.zeros_like(shares)
        for _ in range(_STEPS):
            raised += (wanted / shares.clamp(min=1e-12)).log_().clamp_(-_LARGEST_STEP, _LARGEST_STEP)
            shares = (own + raised[:, None]).softmax(dim=2).mean(dim=1)
        there = own + raised[:, None]
        moved.append(there - there.amax(dim=2, keepdim=True))
    return torch.cat(moved, dim=2).clamp_(min=-LARGEST_LOGIT)
