"""Relevance of inputs bought from private records: one Gaussian release before the first step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.gradients import MaterialisedGradients
from workers.mechanism.noise import release
from workers.methods.idpgan.step_knobs.columns import relevance_of

if TYPE_CHECKING:
    from workers.mechanism import DrawBounds, PrivateSum
    from workers.mechanism.secure_random import SecureRandom

SMALLEST_CLIP_NORM = 1e-6


def bought_relevance(
    critic: nn.Module,
    rows: Iterable[tuple[Tensor, Tensor]],
    generated: Tensor,
    *,
    noise_multiplier: float,
    randomness: SecureRandom,
    bounds: DrawBounds,
) -> Tensor:
    """(W,) noisy relevance of every input over all units; the caller has taken its event.

    rows: blocks of records (R, W) of whole units, and which are present. The clip norm is public: the mean length over generated records.
    """
    made = relevance_of(critic, generated)
    private = relevance_sum(
        _by_unit(critic, rows, bounds.rows_per_unit),
        inputs=made.shape[1],
        clip_norm=max(SMALLEST_CLIP_NORM, float(made.norm(dim=1).mean().nan_to_num(0.0, 0.0, 0.0))),
        bounds=bounds,
    )
    (noisy,) = release(private, noise_multiplier=noise_multiplier, randomness=randomness)
    return noisy.clamp(min=0.0)


def relevance_sum(
    blocks: Iterable[tuple[Tensor, Tensor]], *, inputs: int, clip_norm: float, bounds: DrawBounds
) -> PrivateSum:
    """Sum over units of the clipped relevance of every input.

    Adjacency:   zero-out one unit.
    Sensitivity: L2, clip_norm, which is public.
    Shapes:      blocks of (U, inputs) relevance, non-negative, and (U,) who has records; one value (inputs,).
    Source:      Phan et al. 2017, with a Gaussian on a clipped sum in the place of Laplace noise on an unclipped mean.
    Edge cases:  units without records, or of a relevance that is not finite, add zero.
    """
    gradients = (MaterialisedGradients((relevance,), usable) for relevance, usable in blocks)
    shape = torch.Size((inputs,))
    return clip_and_sum(gradients, groups=((0,),), clip_norms=(clip_norm,), shapes=[shape], bounds=bounds).sum


def _by_unit(
    critic: nn.Module, rows: Iterable[tuple[Tensor, Tensor]], rows_per_unit: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Relevance (U, W) summed over a unit's rows, and who has rows (U,). Private."""
    for records, present in rows:
        by_row = relevance_of(critic, records).masked_fill(~present.unsqueeze(1), 0.0)
        by_unit = by_row.view(-1, rows_per_unit, records.shape[1])
        yield by_unit.sum(dim=1), present.view(-1, rows_per_unit).any(dim=1)
