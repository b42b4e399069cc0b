"""Where the networks of a table begin: near noisy tables. Post-processing of these; no row is read.

The generator is fitted to the two-way tables of a mixture that was fitted to the noisy ones, then the critic learns to tell rows
drawn from that mixture from the generator's. Relative: GEM (Liu et al. 2021), which fits a generator to noisy tables alone.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from service.methods.idpgan.knobs import Optimizer
from workers.methods.idpgan.held_tables import FINE, HeldTables
from workers.networks.table import TableGenerator
from workers.numerics.adam import Adam
from workers.numerics.slopes import critic_loss

ROWS_OF_A_STRATUM = 1_024
"""Noise vectors of a batch for every stratum that it looks at."""

COARSE = 1.0
"""The distance has this floor to begin with. A fit that begins with the fine one drops the commonest values of whole columns, since that is the
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
        parts = held.even_parts(ROWS_OF_A_STRATUM, torch.rand(()).item())
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
        adam.zero_grad()
        critic_loss(critic, high, low, gradient_penalty=gradient_penalty).backward()  # type: ignore[no-untyped-call]
        adam.step()
        on_step()
