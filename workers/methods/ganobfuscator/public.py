"""Public records, made up from the declaration alone, and the clip norm that they give a step. No private record is read."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

import numpy as np

from service.methods.ganobfuscator.order import PublicNormOrder
from workers.encoding.images import EncodedImages, cosine_basis
from workers.encoding.table import EncodedTable
from workers.methods.idpgan.images import ImageIdpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.methods.idpgan.training import Idpgan

if TYPE_CHECKING:
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
        wanted = min(self.order.looked_at, self.order.public_records, self.bounds.units_per_block)
        chosen = np.random.default_rng((SEED, self.plan.position)).choice(
            self.order.public_records, wanted, replace=False
        )
        with self._public_records():
            gradients = self.step.seen(self.gradients.gradients(self._critic_batch(np.sort(chosen)), self.loss))
            norms = gradients.tensor_norms.square().sum(dim=1).sqrt()
            usable = norms[norms <= LARGEST_NORM]  # neither infinite nor NaN
            return max(SMALLEST_NORM, float(usable.mean())) if len(usable) else SMALLEST_NORM

    @abstractmethod
    def _public_records(self) -> AbstractContextManager[None]:
        """While it is open, `_rows` reads public records."""


class PublicTable(PublicNorms, TableIdpgan):
    """Of a table: every bin and every category is as likely as any other."""

    _public: EncodedTable | None = None

    @contextmanager
    def _public_records(self) -> Iterator[None]:
        private = self.table
        if self._public is None:
            self._public = made_up_table(self.domain, self.order.public_records, private)
        self.table = self._public
        try:
            yield
        finally:
            self.table = private


class PublicImages(PublicNorms, ImageIdpgan):
    """Of images: smooth and random, every class as likely as any other."""

    _public: EncodedImages | None = None

    @contextmanager
    def _public_records(self) -> Iterator[None]:
        private = self.images
        if self._public is None:
            self._public = made_up_images(self.order.public_records, private)
        self.images = self._public
        try:
            yield
        finally:
            self.images = private


def made_up_table(domain: TableDomain, records: int, like: EncodedTable) -> EncodedTable:
    """As many units of one row each; `like` says how many places a unit has, and nothing of its rows is used."""
    rng = np.random.default_rng(SEED)
    codes = np.stack([rng.integers(0, width, records) for width in domain.widths], axis=1).astype(np.uint16)
    return EncodedTable(codes, records, _one_each(records, like.unit_starts is not None), like.max_rows_per_unit)


def made_up_images(records: int, like: EncodedImages) -> EncodedImages:
    """As many units of one image each, of the declared size."""
    rng, pixels = np.random.default_rng(SEED), int(np.prod(like.shape))
    basis = cosine_basis(like.shape, min(WAVES, pixels))  # (pixels, waves)
    waves = rng.standard_normal((records, basis.shape[1])) @ basis.T
    low, high = waves.min(axis=1, keepdims=True), waves.max(axis=1, keepdims=True)
    grey = np.rint(255.0 * (waves - low) / np.maximum(high - low, 1e-9)).astype(np.uint8)
    labels = rng.integers(0, max(1, like.classes), records)
    starts = _one_each(records, like.unit_starts is not None)
    return EncodedImages(grey, labels, like.shape, like.classes, starts, like.max_images_per_unit)


def _one_each(records: int, has_units: bool) -> np.ndarray | None:
    return np.arange(records + 1, dtype=np.int64) if has_units else None
