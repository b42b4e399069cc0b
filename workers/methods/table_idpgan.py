"""IDPGAN of tables: records are one-hot rows, both networks perceptrons, gradients outer products."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from workers.encoding.table import ABSENT
from workers.mechanism.label_counts import label_counts
from workers.methods.idpgan import Idpgan
from workers.networks.table import TableCritic, TableGenerator, one_hot_records, sample_records

if TYPE_CHECKING:
    from torch import nn

    from service.privacy.orders import IdpganOrder
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.mechanism import PrivateSum
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan


class TableIdpgan(Idpgan):
    """A run on the rows of a table."""

    def __init__(
        self,
        order: IdpganOrder,
        plan: Plan,
        table: EncodedTable,
        domain: TableDomain,
        randomness: SecureRandom,
        device: torch.device,
    ) -> None:
        self.table, self.domain = table, domain
        self.condition_index = None if order.condition_on is None else domain.index(order.condition_on)
        sizes = order.networks
        generator = TableGenerator(
            domain.widths,
            noise_dimension=sizes.noise_dimension,
            hidden=sizes.generator_hidden,
            condition_index=self.condition_index,
        )
        super().__init__(
            order,
            plan,
            randomness,
            device,
            units=table.units,
            rows_per_unit=table.max_rows_per_unit,
            networks=(generator, TableCritic(domain.total_width, sizes.critic_hidden)),
        )

    def _label_counts(self) -> PrivateSum:
        place = self.condition_index
        if place is None:
            raise RuntimeError("this order conditions on nothing")
        return label_counts(
            self.table.codes[:, place],
            categories=self.domain.widths[place],
            unit_starts=self.table.unit_starts,
            max_rows_per_unit=self.table.max_rows_per_unit,
        )

    def _rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        codes = torch.from_numpy(self._codes_of(units).astype(np.int64)).to(self.device)  # (R, columns)
        real, present = one_hot_records(codes, self.domain.widths)
        if self.condition_index is None:
            return real, present, None
        return real, present, torch.where(present, codes[:, self.condition_index], 0)

    def _codes_of(self, units: np.ndarray) -> np.ndarray:
        """Codes of these units' rows, max_rows_per_unit places each; empty places hold null records.

        However many rows a unit has, those of the others keep their places and every product its shape: float32
        results, which depend on both, are then the same to the last bit on a neighbouring table.
        """
        starts, places = self.table.unit_starts, self.table.max_rows_per_unit
        if starts is None:
            alone: np.ndarray = self.table.codes[units]
            return alone
        rows = starts[units][:, None] + np.arange(places)  # (U, places)
        there = rows < starts[units + 1][:, None]
        codes = np.full((*rows.shape, self.table.codes.shape[1]), ABSENT, dtype=np.uint16)
        codes[there] = self.table.codes[rows[there]]
        return codes.reshape(-1, len(self.domain.widths))

    def _fakes(self, generator: nn.Module, conditions: Tensor | None, rows: int | None = None) -> Tensor:
        """G(z) as records (rows, total_width)."""
        count = len(conditions) if conditions is not None else rows or self.generator_batch
        noise = self.randomness.normals(count, self.order.networks.noise_dimension, dtype=torch.float32)
        uniforms = self.randomness.uniforms(count, self.domain.total_width, dtype=torch.float32)
        logits = generator(noise.to(self.device), conditions)
        return sample_records(
            logits, self.domain.widths, uniforms.to(self.device), self.order.networks.softmax_temperature
        )
