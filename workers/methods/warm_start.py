"""Where the networks of a table begin: near tables that were bought. Post-processing of noised tables; no row is read.

The generator is fitted to the two-way tables of a mixture that was fitted to the noised ones, then the critic learns to tell rows
drawn from that mixture from the generator's. Relative: GEM (Liu et al. 2021), which fits a generator to noised tables alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from service.privacy.orders import Optimizer
from workers.mechanism.marginals import TableLayout
from workers.methods.idpgan import SMALLEST_SQUARED_SLOPE
from workers.networks.mixture import MixtureGenerator

ROWS_AT_ONCE = 512
"""Noise vectors of each of the two halves of a batch, for every slice."""

MOST_SLICES_AT_ONCE = 4
"""Slices that a step looks at, drawn anew each time; bounds its time."""

COARSE, FINE = 1.0, 1e-3
"""Floors of the distance. What was measured of cells rarer than the fine one is noise. A fit that begins with it drops the commonest
values of whole columns, since that is the quickest way out of cells that should be empty."""

BETAS = (0.9, 0.99)


@dataclass(frozen=True)
class HeldTables:
    """Tables as probabilities, for a generator to follow. Cells of all free columns side by side: V as pairs group them.

    The distance of a table is the sum over its cells of squared error / (probability + floor), a χ² that cells much rarer than the floor
    do not rule; of a slice, that of all ordered pairs and single columns, divided by how many these are; of all slices, the mean by their
    part of the rows.
    """

    one_way: Tensor  # (slices, W)
    two_way: Tensor  # (slices, V, V)
    shares: Tensor  # (slices,) part of all rows
    layout: TableLayout

    @classmethod
    def of_mixture(
        cls, mixture: MixtureGenerator, layout: TableLayout, frequencies: Sequence[float] | None
    ) -> HeldTables:
        """The tables that a mixture has, without drawing from it."""
        one_way, two_way = [], []
        logits = mixture.logits.detach().view(layout.slices, mixture.components, -1)
        for part in logits:
            fine = _probabilities(part, layout)
            grouped = _grouped(fine, layout)
            one_way.append(fine.mean(dim=0))
            two_way.append(grouped.T @ grouped / mixture.components)
        shares = torch.tensor(frequencies or (1.0,), dtype=torch.float32, device=logits.device)
        return cls(torch.stack(one_way), torch.stack(two_way), shares / shares.sum(), layout)

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint; computed from noised tables alone."""
        return {"held.one_way": self.one_way, "held.two_way": self.two_way, "held.shares": self.shares}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], layout: TableLayout, device: torch.device) -> HeldTables:
        """What `tensors` gave."""
        one_way, two_way, shares = (tensors[f"held.{name}"].to(device) for name in ("one_way", "two_way", "shares"))
        return cls(one_way, two_way, shares, layout)

    def distance(self, generator: nn.Module, noise_dimension: int, *, floor: float = FINE) -> Tensor:
        """An unbiased estimate of a generator's squared distance, with a gradient. May be negative.

        Two halves of a batch of public noise: the product of two independent errors has no bias that a square would have.
        """
        slices, device = self.layout.slices, self.one_way.device
        seen, weights = torch.arange(slices), self.shares
        if slices > MOST_SLICES_AT_ONCE:
            seen = torch.multinomial(self.shares.cpu(), MOST_SLICES_AT_ONCE, replacement=True)
            weights = torch.full_like(self.shares, 1.0 / MOST_SLICES_AT_ONCE)
        noise = torch.randn(len(seen) * 2 * ROWS_AT_ONCE, noise_dimension, device=device)
        given = None if self.layout.label is None else seen.repeat_interleave(2 * ROWS_AT_ONCE).to(device)
        fine = _probabilities(generator(noise, given), self.layout)
        grouped = _grouped(fine, self.layout).view(len(seen), 2, ROWS_AT_ONCE, -1)
        halves = fine.view(len(seen), 2, ROWS_AT_ONCE, -1).mean(dim=2)
        between = self._between_columns(device)
        total = torch.zeros((), device=device)
        for place, which in enumerate(seen.tolist()):
            pairs, singles = self.two_way[which], self.one_way[which]
            one, other = (half.T @ half / ROWS_AT_ONCE - pairs for half in grouped[place])
            alone, again = (half - singles for half in halves[place])
            error = (one * other * between / (pairs + floor)).sum() + (alone * again / (singles + floor)).sum()
            total = total + error * weights[which]
        return total / len(self.layout.free) ** 2

    def _between_columns(self, device: torch.device) -> Tensor:
        """(V, V) 1 where the cells belong to different columns."""
        widths = torch.tensor([self.layout.pair_widths[column] for column in self.layout.free])
        column = torch.arange(len(widths)).repeat_interleave(widths).to(device)
        return (column.unsqueeze(0) != column.unsqueeze(1)).float()


def fit_generator(
    generator: nn.Module,
    held: HeldTables,
    *,
    noise_dimension: int,
    steps: int,
    learning_rate: float,
    on_step: Callable[[], None],
) -> None:
    """Bring a generator's tables near those held, the floor sinking for the first half; `on_step` may raise to stop."""
    adam = torch.optim.Adam(generator.parameters(), lr=learning_rate, betas=BETAS)
    for step in range(steps):
        for group in adam.param_groups:
            group["lr"] = learning_rate * (1.0 - step / steps)
        adam.zero_grad()
        floor = COARSE * (FINE / COARSE) ** min(1.0, 2.0 * step / steps)
        held.distance(generator, noise_dimension, floor=floor).backward()  # type: ignore[no-untyped-call]
        adam.step()
        on_step()


def fit_critic(
    critic: nn.Module,
    draw: Callable[[], tuple[Tensor, Tensor]],
    *,
    gradient_penalty: float,
    optimizer: Optimizer,
    steps: int,
    on_step: Callable[[], None],
) -> None:
    """WGAN-GP steps of a critic between two kinds of drawn records, as `draw` gives them: what to score high, and low.

    Clipped to nothing and without noise, since neither is private. `on_step` may raise to stop.
    """
    betas = (optimizer.beta1, optimizer.beta2)
    adam = torch.optim.Adam(critic.parameters(), lr=optimizer.critic_learning_rate, betas=betas)
    for _ in range(steps):
        with torch.no_grad():
            high, low = draw()
        mix = torch.rand(len(high), 1, device=high.device)
        between = (mix * high + (1.0 - mix) * low).requires_grad_()
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        lengths = (slope.square().sum(dim=1) + SMALLEST_SQUARED_SLOPE).sqrt()
        penalty = gradient_penalty * (lengths - 1.0).square().mean()
        adam.zero_grad()
        (critic(low).mean() - critic(high).mean() + penalty).backward()
        adam.step()
        on_step()


def _probabilities(logits: Tensor, layout: TableLayout) -> Tensor:
    """(R, total_width) logits -> (R, W) probabilities of the free columns' cells."""
    parts = torch.split(logits, list(layout.widths), dim=1)
    return torch.cat([F.softmax(parts[column], dim=1) for column in layout.free], dim=1)


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
