"""The run of `method: idpgan`, of tables and of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch

from workers.methods.idpgan.image_start import StartedImageIdpgan
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.numerics.workspace import keep_freed_memory

if TYPE_CHECKING:
    from service.methods.idpgan.price import TrainedOrder
    from workers.checkpoints import Checkpoint
    from workers.generators.released import Released
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import Source


class Run:
    """Label counts or a warm start are measured first; then private steps, one for each that is on the plan."""

    of_tables: ClassVar[type[TableIdpgan]] = TableIdpgan
    of_images: ClassVar[type[ImageIdpgan]] = ImageIdpgan

    def __init__(
        self, order: TrainedOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        self.plan = plan
        self.gan: TableIdpgan | ImageIdpgan
        keep_freed_memory()
        if source.holds_images:
            images = source.images()
            _seed(randomness)
            kind = self.of_images if order.mixture_first is None else StartedImageIdpgan
            self.gan = kind(order, plan, images, randomness, device)
        else:
            table, domain = source.table(numeric_bins=order.numeric_bins, with_places=order.counts_values)
            _seed(randomness)
            self.gan = self.of_tables(order, plan, table, domain, randomness, device)

    def measure(self) -> None:
        self.gan.measure()

    def checkpoint(self) -> Checkpoint:
        return self.gan.checkpoint()

    def restore(self, checkpoint: Checkpoint) -> None:
        self.gan.restore(checkpoint)

    def finish(self, hooks: Hooks) -> Released:
        """The loop: a critic step, a generator step where one is due, a checkpoint now and then."""
        gan, plan = self.gan, self.plan
        gan.warm_up(lambda share: hooks.go_on_warming_up(share, plan.steps_done))
        while plan.steps_done < plan.steps:
            hooks.stop_if_asked(plan.steps_done, keep=self)  # who goes on loses nothing
            gan.critic_step()
            if gan.generator_is_due():
                gan.generator_step()
            step = plan.steps_done
            if step % hooks.checkpoint_every_steps == 0 and step < plan.steps:
                hooks.keep(self)
            hooks.on_progress(step)
        return gan.release()


def _seed(randomness: SecureRandom) -> None:
    """Initial weights are public; seeding them from the secure stream keeps two releases from sharing them."""
    torch.manual_seed(int(randomness.uniforms(1).item() * 2**53))
