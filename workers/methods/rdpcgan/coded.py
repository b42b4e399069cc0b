"""RDP-CGAN of tables: private steps of an autoencoder, whose decoder then ends the generator of a Wasserstein GAN.

Every line that touches rows is preceded by taking its event from the plan:
  label frequencies    GaussianEvent("label_counts")   once, where the order conditions
  autoencoder step     SampledStepEvent                gradients of encoder and decoder together, on one Poisson draw
  critic step          SampledStepEvent                as of `idpgan`
The encoder is thrown away at the end. It still needs noise: whatever a row does to it moves every later gradient of the decoder.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from service.methods.rdpcgan.order import RdpcganOrder
from workers.mechanism import DrawBounds, PerUnitGradients
from workers.mechanism.clipping import clip_and_sum
from workers.mechanism.gradients import reconstruction_gradients
from workers.mechanism.noise import release
from workers.mechanism.sampling import poisson_sample
from workers.methods.idpgan.tables import TableIdpgan
from workers.networks.autoencoder import Autoencoder, DecodedGenerator, make_decoder
from workers.numerics.adam import Adam

if TYPE_CHECKING:
    from service.methods.idpgan.price import TrainedOrder
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan

BLOCK_ROWS = 256
"""Rows whose gradients are held at once."""
AUTOENCODER_BETAS = (0.9, 0.999)
"""Adam's."""


class CodedTables(TableIdpgan):
    """Two phases of one plan; which one it is, the number of steps done says."""

    kept = (*TableIdpgan.kept, "autoencoder", "autoencoder_adam")

    def __init__(
        self,
        order: TrainedOrder,
        plan: Plan,
        table: EncodedTable,
        domain: TableDomain,
        randomness: SecureRandom,
        device: torch.device,
    ) -> None:
        self.knobs = cast("RdpcganOrder", order).autoencoder
        super().__init__(order, plan, table, domain, randomness, device)
        knobs = self.knobs
        self.autoencoder = Autoencoder(
            domain.total_width,
            sum(self.free_widths),
            latent=knobs.latent,
            hidden=knobs.hidden,
            layers=knobs.layers,
        ).to(device)
        self.autoencoder_tensors = list(self.autoencoder.parameters())  # encoder, then decoder
        self.autoencoder_adam = Adam(
            self.autoencoder_tensors, learning_rate=knobs.learning_rate, betas=AUTOENCODER_BETAS
        )
        rows = table.max_rows_per_unit
        self.autoencoder_bounds = DrawBounds(self.bounds.most_units, max(1, BLOCK_ROWS // rows), rows)

    def make_generator(self, order: TrainedOrder, widths: tuple[int, ...]) -> DecodedGenerator:
        free = sum(width for place, width in enumerate(widths) if place != self.condition_index)
        knobs = self.knobs
        return DecodedGenerator(
            widths,
            noise_dimension=order.networks.noise_dimension,
            hidden=order.networks.generator_hidden,
            condition_index=self.condition_index,
            latent=knobs.latent,
            decoder=make_decoder(knobs.latent, free, hidden=knobs.hidden, layers=knobs.layers),
        )

    @property
    def steps_before(self) -> int:
        """The autoencoder's."""
        return self.knobs.steps

    def critic_step(self) -> None:
        """The next private step: the autoencoder's while it has any left."""
        if self.plan.steps_done >= self.knobs.steps:
            super().critic_step()
            return
        self.autoencoder_step()
        if self.plan.steps_done == self.knobs.steps:
            self._take_decoder()

    def generator_is_due(self) -> bool:
        return self.plan.steps_done > self.knobs.steps and super().generator_is_due()

    def autoencoder_step(self) -> None:
        """Draw, clip encoder and decoder as one gradient, sum, noise on all of it, update."""
        noise = self.plan.take_sampled_step(sampling_probability=self.sampling_probability, histogram=False)
        drawn = poisson_sample(
            units=self.units, sampling_probability=self.sampling_probability, randomness=self.randomness
        )[: self.autoencoder_bounds.most_units]
        clipped = clip_and_sum(
            self._reconstructions(drawn),
            groups=(tuple(range(len(self.autoencoder_tensors))),),
            clip_norms=(self.knobs.clip_norm,),
            shapes=[tensor.shape for tensor in self.autoencoder_tensors],
            bounds=self.autoencoder_bounds,
            device=self.device,
        )
        noisy = release(clipped.sum, noise_multiplier=noise.gradient_noise_multiplier, randomness=self.randomness)
        for tensor, total in zip(self.autoencoder_tensors, noisy, strict=True):
            tensor.grad = total.to(torch.float32) / self.expected_units
        self.autoencoder_adam.step()

    def _reconstructions(self, drawn: np.ndarray) -> Iterator[PerUnitGradients]:
        """The draw in blocks of whole units, each as per-unit gradients of the reconstruction loss."""
        widths, bounds = tuple(self.domain.widths), self.autoencoder_bounds
        for start in range(0, len(drawn), bounds.units_per_block):
            rows, present, _ = self._rows(drawn[start : start + bounds.units_per_block])
            yield reconstruction_gradients(
                self.autoencoder,
                rows[:, : sum(widths)],
                present,
                rows_per_unit=bounds.rows_per_unit,
                loss=self._reconstruction_loss,
            )

    def _reconstruction_loss(self, logits: Tensor, row: Tensor) -> Tensor:
        """Cross-entropy of every column but the condition, in nats, added up."""
        wanted = [
            part
            for place, part in enumerate(torch.split(row, list(self.domain.widths)))
            if place != self.condition_index
        ]
        told = torch.split(logits, self.free_widths)
        losses = [-(part * F.log_softmax(guess, dim=0)).sum() for part, guess in zip(wanted, told, strict=True)]
        return torch.stack(losses).sum() if losses else logits.sum()

    def _take_decoder(self) -> None:
        for generator in (self.generator, self.averaged_generator):
            cast("DecodedGenerator", generator).take_decoder(self.autoencoder.decoder)
        self.last_generator_step = self.plan.steps_done
