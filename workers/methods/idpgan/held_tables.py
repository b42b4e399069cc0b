"""Tables that a generator is fitted to, and held to afterwards. Post-processing of noisy tables; no row is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from workers.mechanism.marginals import TableLayout
from workers.networks.mixture import MixtureGenerator
from workers.networks.table import softmax_of_columns

MOST_STRATA_AT_ONCE = 4
"""Strata that a batch looks at, drawn anew each time; bounds its time."""

LEAST_ROWS_OF_A_STRATUM = 128
"""Where there are more strata than that, a batch looks at as many as have so many rows of it, or at one."""

FINE = 1e-3
"""The distance has this floor: what was measured of rarer cells is noise."""


class Part(NamedTuple):
    """Consecutive rows of a batch that are of one stratum, and how much they count."""

    stratum: int
    rows: int
    weight: float


@dataclass(frozen=True)
class HeldTables:
    """Tables as probabilities, for a generator to follow. Cells of all free columns side by side: V as pairs group them.

    The distance of a table is the sum over its cells of squared error / (probability + floor), a χ² that cells much rarer than the floor
    do not rule; of a stratum, that of all ordered pairs and single columns, divided by how many these are; of all strata, the mean by their
    part of the rows.
    """

    one_way: Tensor  # (strata, W)
    two_way: Tensor  # (strata, V, V), each symmetric
    shares: Tensor  # (strata,) part of all rows
    layout: TableLayout

    @classmethod
    def of_mixture(
        cls, mixture: MixtureGenerator, layout: TableLayout, frequencies: Sequence[float] | None
    ) -> HeldTables:
        """The tables that a mixture has, without drawing from it."""
        one_way, two_way = [], []
        logits = mixture.logits.detach().view(layout.slices, mixture.components, -1)
        for part in logits:
            fine = _probabilities(_without_label(part, layout), layout)
            grouped = _grouped(fine, layout)
            one_way.append(fine.mean(dim=0))
            two_way.append(grouped.T @ grouped / mixture.components)
        shares = torch.tensor(frequencies or (1.0,), dtype=torch.float32, device=logits.device)
        return cls(torch.stack(one_way), torch.stack(two_way), shares / shares.sum(), layout)

    def tensors(self) -> dict[str, Tensor]:
        """The tables as tensors, for a checkpoint; computed from noisy tables alone."""
        return {"held.one_way": self.one_way, "held.two_way": self.two_way, "held.shares": self.shares}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], layout: TableLayout, device: torch.device) -> HeldTables:
        """The tables that `tensors` gave."""
        one_way, two_way, shares = (tensors[f"held.{name}"].to(device) for name in ("one_way", "two_way", "shares"))
        return cls(one_way, two_way, shares, layout)

    def even_parts(self, rows: int, place: float) -> list[Part]:
        """Parts of as many rows of every stratum, for a batch of its own: rare strata are fitted as precisely. Of many strata, a few as in `parts`."""
        if self.layout.slices > MOST_STRATA_AT_ONCE:
            return self.parts(rows * MOST_STRATA_AT_ONCE, place)
        return [Part(which, rows, share) for which, share in enumerate(self.shares.tolist())]

    def parts(self, rows: int, place: float) -> list[Part]:
        """How a batch of at most `rows` rows that are drawn like the table's is shared by the strata; place: uniform between 0 and 1.

        Systematic sampling: any row is of a stratum with the probability of its share, and of few strata each has its share of the rows to
        within one. Of many, a few have equally many rows.
        """
        few = min(MOST_STRATA_AT_ONCE, max(1, rows // LEAST_ROWS_OF_A_STRATUM))
        strata = rows if self.layout.slices <= MOST_STRATA_AT_ONCE else few
        points = (torch.arange(strata, dtype=torch.float64) + place) / strata
        ends = self.shares.cpu().double().cumsum(0)
        drawn = torch.searchsorted(ends, points * ends[-1]).clamp_(max=len(ends) - 1)
        found, counts = torch.unique_consecutive(drawn, return_counts=True)
        return [
            Part(which, count * (rows // strata), count / strata)
            for which, count in zip(found.tolist(), counts.tolist(), strict=True)
        ]

    def conditions(self, parts: Sequence[Part]) -> Tensor | None:
        """(R,) the label of every row of such a batch; None where there is no label."""
        if self.layout.label is None:
            return None
        drawn, rows = (
            torch.tensor(values, device=self.shares.device)
            for values in zip(*(part[:2] for part in parts), strict=True)
        )
        return drawn.repeat_interleave(rows)

    def distance(self, logits: Tensor, parts: Sequence[Part], *, floor: float = FINE) -> Tensor:
        """An unbiased estimate of a generator's squared distance, with a gradient. May be negative.

        logits (R, W) of the free columns, from public noise and `conditions(parts)`. Every part in two halves: the product of two
        independent errors has no bias that a square would have.
        """
        fine = _probabilities(logits, self.layout)
        grouped = _grouped(fine, self.layout)
        total, start = logits.new_zeros(()), 0
        for part in parts:
            half, pairs, singles = part.rows // 2, self.two_way[part.stratum], self.one_way[part.stratum]
            if half:
                one, other = torch.split(grouped[start : start + 2 * half], half)
                weights = (pairs + floor).reciprocal_().mul_(self._between_columns)
                between = _ErrorsOfPairs.apply(one, other, pairs, weights)  # type: ignore[no-untyped-call]
                alone, again = (
                    rows.mean(dim=0) - singles for rows in torch.split(fine[start : start + 2 * half], half)
                )
                total = total + part.weight * (between + (alone * again / (singles + floor)).sum())
            start += part.rows
        return total / len(self.layout.free) ** 2

    @cached_property
    def _between_columns(self) -> Tensor:
        """(V, V) 1 where the cells belong to different columns."""
        widths = torch.tensor([self.layout.pair_widths[column] for column in self.layout.free])
        column = torch.arange(len(widths)).repeat_interleave(widths).to(self.two_way.device)
        return (column.unsqueeze(0) != column.unsqueeze(1)).float()


class _ErrorsOfPairs(torch.autograd.Function):
    """Σ w ⊙ e' ⊙ e'' with e' = F'ᵀF'/n - p, e'' = F''ᵀF''/n - p: two halves F', F'' (n, V), symmetric p and w (V, V).

    By hand, since w and p are symmetric: the gradient by F' is 2/n · F'(w ⊙ e''), one product where autograd takes two.
    """

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, pairs: Tensor, weights: Tensor) -> Tensor:
        scale = 1.0 / len(first)
        error, other = (torch.addmm(pairs, half.T, half, beta=-1.0, alpha=scale) for half in (first, second))
        weighted = weights * other
        if any(ctx.needs_input_grad):
            gradients = (first @ weighted, second @ (weights * error))
            ctx.save_for_backward(*(gradient.mul_(2.0 * scale) for gradient in gradients))
        return weighted.mul_(error).sum()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        first, second = ctx.saved_tensors
        return gradients[0] * first, gradients[0] * second, None, None


def _without_label(logits: Tensor, layout: TableLayout) -> Tensor:
    """(R, total_width) -> (R, W): the free columns'."""
    if layout.label is None:
        return logits
    before = sum(layout.widths[: layout.label])
    return torch.cat((logits[:, :before], logits[:, before + layout.widths[layout.label] :]), dim=1)


def _probabilities(logits: Tensor, layout: TableLayout) -> Tensor:
    """(R, W) logits of the free columns -> the probabilities of their cells."""
    return softmax_of_columns(logits, tuple(layout.widths[column] for column in layout.free))


def _grouped(fine: Tensor, layout: TableLayout) -> Tensor:
    """(R, W) -> (R, V): cells that pairs count together are added up."""
    if all(layout.widths[column] == layout.pair_widths[column] for column in layout.free):
        return fine
    groups, before = [], 0
    for column in layout.free:
        groups.append(layout.groups_of(column) + before)
        before += layout.pair_widths[column]
    places = torch.from_numpy(np.concatenate(groups)).to(fine.device)
    return fine.new_zeros(len(fine), before).index_add(1, places, fine)
