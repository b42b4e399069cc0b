"""Where networks begin if there is something to look at for free: as a WGAN-GP of it.

Rows or images of a dataset that is declared public, or samples of a measured mixture. No private row is read: batches come from these alone, and
fakes have their conditions or classes. With a mask (a lottery ticket), what was learned there says only which coordinates of the critic the private
steps update, and is then forgotten.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import torch

from service.methods.idpgan.work import FREE_BATCH
from workers.numerics.adam import Adam
from workers.numerics.slopes import critic_loss

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor, nn

    from service.methods.idpgan.price import TrainedOrder
    from workers.encoding.images import EncodedImages
    from workers.encoding.table import EncodedTable
    from workers.methods.idpgan.step_knobs.step import ShapedStep

PENALTY = 10.0
"""Of steps without noise, whatever the private steps have."""


class Networks(Protocol):
    """What begins: generator and critic, and how batches are made for them."""

    order: TrainedOrder
    critic: nn.Module
    averaged_generator: nn.Module
    generator_steps: int
    tensors: list[nn.Parameter]
    step: ShapedStep

    @property
    def generator(self) -> nn.Module: ...

    def free_batch(self, free: Any, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Real records, generated ones of the same classes or conditions, and these."""
        ...

    def made_of(self, conditions: Tensor) -> Tensor:
        """Generated records of these classes or conditions."""
        ...

    def keep_within_bound(self) -> None:
        """Clamp the critic's weights, where the order bounds them."""
        ...


def begin_from_free_records(
    gan: Networks, free: EncodedImages | EncodedTable, steps: int, on_share: Callable[[float], None]
) -> None:
    """Both networks, in turn, for so many steps of the critic; `on_share` may raise to stop, and another attempt begins anew."""
    optimizer, first = gan.order.optimizer, _first_weights(gan)
    betas = (optimizer.beta1, optimizer.beta2)
    critic = Adam(gan.tensors, learning_rate=optimizer.critic_learning_rate, betas=betas)
    generator = Adam(gan.generator.parameters(), learning_rate=optimizer.generator_learning_rate, betas=betas)
    every = gan.order.critic_steps_per_generator_step
    for step in range(steps):
        on_share(step / steps)
        units = torch.randint(free.units, (min(FREE_BATCH, free.units),)).numpy()
        real, fake, conditions = gan.free_batch(free, units)
        if len(real):
            _critic_step(gan, critic, real, fake)
        if (step + 1) % every == 0:
            generator.zero_grad()
            (-gan.critic(gan.made_of(conditions)).mean()).backward()
            generator.step()
    gan.averaged_generator.load_state_dict(gan.generator.state_dict())
    gan.generator_steps = steps // every  # the average begins here, and not at the first private steps
    critic.zero_grad()
    generator.zero_grad()
    if first is not None:
        gan.step.take_mask(gan.tensors)
        _go_back(gan, first)


def _first_weights(gan: Networks) -> tuple[dict[str, Tensor], ...] | None:
    """Of generator and critic, where the order wants to go back to them."""
    if gan.order.mask_share is None:
        return None
    return tuple(
        {name: value.clone() for name, value in network.state_dict().items()} for network in (gan.generator, gan.critic)
    )


def _go_back(gan: Networks, first: tuple[dict[str, Tensor], ...]) -> None:
    """To the weights before the free steps, the critic's within their bound: what the mask leaves out stays there, or at zero."""
    of_generator, of_critic = first
    gan.critic.load_state_dict(of_critic)
    gan.keep_within_bound()
    if gan.order.prunes:
        gan.step.prune(gan.tensors)
    for network in (gan.generator, gan.averaged_generator):
        network.load_state_dict(of_generator)
    gan.generator_steps = 0


def _critic_step(gan: Networks, adam: Adam, real: torch.Tensor, fake: torch.Tensor) -> None:
    adam.zero_grad()
    critic_loss(gan.critic, real, fake, gradient_penalty=PENALTY).backward()  # type: ignore[no-untyped-call]
    adam.step()
    gan.keep_within_bound()
