"""The run of `method: idpgan`, of tables and of images."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

import torch

from service.base.errors import InvalidOrder
from workers.methods.idpgan.image_start import StartedImageIdpgan
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.idpgan.mixture_samples import SampledImageIdpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.numerics.workspace import keep_freed_memory

if TYPE_CHECKING:
    from service.methods.idpgan.price import TrainedOrder
    from workers.checkpoints import Checkpoint
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.generators.released import Released
    from workers.hooks import Hooks
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan
    from workers.sources import PublicSource, Source


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
            self.gan = self._kind(order)(order, plan, images, randomness, device)
            if order.free_public_steps:
                self.gan.public = cast("PublicSource", source).public_images()
        else:
            table, domain = source.table(numeric_bins=order.numeric_bins, with_places=order.counts_values)
            _seed(randomness)
            self.gan = self.of_tables(order, plan, table, domain, randomness, device)
            if order.free_public_steps:
                self.gan.public = _public_rows(cast("PublicSource", source), order, domain)

    def _kind(self, order: TrainedOrder) -> type[ImageIdpgan]:
        if order.mixture_first is None:
            return self.of_images
        return StartedImageIdpgan if order.corrects_mixture else SampledImageIdpgan

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
        for _ in hooks.steps_of(self):
            gan.critic_step()
            if gan.generator_is_due():
                gan.generator_step()
        return gan.release()


def _public_rows(source: PublicSource, order: TrainedOrder, domain: TableDomain) -> EncodedTable:
    """Codes of public rows, which must mean what those of the private ones do."""
    public, of_public = source.public_table(numeric_bins=order.numeric_bins)
    if of_public.columns != domain.columns:
        raise InvalidOrder("public_dataset: its columns are declared otherwise by now", where="public_dataset")
    return public.rows_alone()


def _seed(randomness: SecureRandom) -> None:
    """Initial weights are public; seeding them from the secure stream keeps two releases from sharing them."""
    torch.manual_seed(randomness.seed())
