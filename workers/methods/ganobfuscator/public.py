"""Public records, made up from the declaration alone, and the clip norm that they give a step. No private record is read."""

from __future__ import annotations

import math
from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from service.methods.ganobfuscator.order import PublicNormOrder
from workers.encoding.images import EncodedImages, cosine_basis
from workers.encoding.table import EncodedTable
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.methods.idpgan.training import Idpgan

if TYPE_CHECKING:
    from torch import Tensor

    from workers.encoding.table import TableDomain

SMALLEST_NORM, LARGEST_NORM = 1e-6, 1e6
"""A critic that overflowed must not end the run."""
WAVES = 32
"""Cosines of low frequency that a made-up image is a random sum of."""
SEED = 0
"""Public: another attempt at a release makes up the same records."""


class PublicNorms(Idpgan):
    """A run whose clip norm is, at every step, the mean gradient norm of a few public records."""

    order: PublicNormOrder

    def critic_step(self) -> None:
        """The norm first, from the weights before the step and public records; then a private step like any other."""
        blocks = len(self.step.shapes)
        self.clip_groups = self._cluster((self._public_norm() / math.sqrt(blocks),) * blocks)
        super().critic_step()

    def _public_norm(self) -> float:
        wanted = min(self.order.public_records_a_step, self.bounds.units_per_block)
        chosen = np.random.default_rng((SEED, self.plan.position)).choice(
            self.order.public_records, wanted, replace=False
        )
        batch = self._batch_of(*self._public_rows(np.sort(chosen)))
        norms = self.step.seen(self.gradients.gradients(batch, self.loss)).tensor_norms.square().sum(dim=1).sqrt()
        usable = norms[norms <= LARGEST_NORM]  # neither infinite nor NaN
        return max(SMALLEST_NORM, float(usable.mean())) if len(usable) else SMALLEST_NORM

    @abstractmethod
    def _public_rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """Of made-up units, what `_rows` gives of private ones."""


class PublicTable(PublicNorms, TableIdpgan):
    """Public records of a table: every bin and every category is as likely as any other."""

    @cached_property
    def made_up(self) -> EncodedTable:
        """Public records, one a unit."""
        return made_up_table(self.domain, self.order.public_records, places=self.bounds.rows_per_unit)

    def _public_rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        return self._rows_of(self.made_up, units)


class PublicImages(PublicNorms, ImageIdpgan):
    """Public records of images: smooth and random, every class as likely as any other."""

    @cached_property
    def made_up(self) -> EncodedImages:
        """Public records, one a unit."""
        return made_up_images(self.shape, self.order.public_records, self.classes, places=self.bounds.rows_per_unit)

    def _public_rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        return self._rows_of(self.made_up, units)


def made_up_table(domain: TableDomain, records: int, *, places: int) -> EncodedTable:
    """A made-up table of `records` units of one row each, which has the first of a unit's places."""
    rng = np.random.default_rng(SEED)
    codes = np.stack([rng.integers(0, width, records) for width in domain.widths], axis=1).astype(np.uint16)
    return EncodedTable(codes, records, _one_each(records, places), places)


def made_up_images(shape: tuple[int, int, int], records: int, classes: int, *, places: int) -> EncodedImages:
    """Made-up images, `records` units of one image each, which has the first of a unit's places. shape: height, width, channels."""
    rng, pixels = np.random.default_rng(SEED), math.prod(shape)
    basis = cosine_basis(shape, min(WAVES, pixels))  # (pixels, waves)
    waves = rng.standard_normal((records, basis.shape[1])) @ basis.T
    low, high = waves.min(axis=1, keepdims=True), waves.max(axis=1, keepdims=True)
    grey = np.rint(255.0 * (waves - low) / np.maximum(high - low, 1e-9)).astype(np.uint8)
    labels = rng.integers(0, classes, records)
    return EncodedImages(grey, labels, shape, classes, _one_each(records, places), places)


def _one_each(records: int, places: int) -> np.ndarray | None:
    """Where each unit's records begin; None where a unit is one record, as private ones have it."""
    return np.arange(records + 1, dtype=np.int64) if places > 1 else None
