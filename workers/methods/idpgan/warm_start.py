"""Where the networks of a table begin: near tables that were bought. Post-processing of noised tables; no row is read.

The generator is fitted to the two-way tables of a mixture that was fitted to the noised ones, then the critic learns to tell rows
drawn from that mixture from the generator's. Relative: GEM (Liu et al. 2021), which fits a generator to noised tables alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from service.methods.idpgan.knobs import Optimizer
from workers.methods.idpgan.held_tables import FINE, HeldTables
from workers.methods.idpgan.training import SMALLEST_SQUARED_SLOPE
from workers.networks.table import TableGenerator
from workers.numerics.adam import Adam

ROWS_OF_A_SLICE = 1_024
"""Noise vectors of a batch for every slice that it looks at."""

COARSE = 1.0
"""Floor of the distance to begin with. A fit that begins with the fine one drops the commonest values of whole columns, since that is the
quickest way out of cells that should be empty."""

BETAS = (0.9, 0.99)


def fit_generator(
    generator: TableGenerator,
    held: HeldTables,
    *,
    noise_dimension: int,
    steps: int,
    learning_rate: float,
    on_step: Callable[[], None],
) -> None:
    """Bring a generator's tables near those held, the floor sinking for the first half; `on_step` may raise to stop."""
    adam = Adam(generator.parameters(), learning_rate=learning_rate, betas=BETAS)
    for step in range(steps):
        adam.learning_rate = learning_rate * (1.0 - step / steps)
        adam.zero_grad()
        floor = COARSE * (FINE / COARSE) ** min(1.0, 2.0 * step / steps)
        parts = held.even_parts(ROWS_OF_A_SLICE, torch.rand(()).item())
        noise = torch.randn(sum(part.rows for part in parts), noise_dimension, device=held.shares.device)
        logits = generator.free_logits(noise, held.conditions(parts))
        held.distance(logits, parts, floor=floor).backward()  # type: ignore[no-untyped-call]
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
    adam = Adam(critic.parameters(), learning_rate=optimizer.critic_learning_rate, betas=betas)
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
