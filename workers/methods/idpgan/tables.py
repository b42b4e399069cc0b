"""IDPGAN of tables: records are one-hot rows, both networks perceptrons, gradients outer products.

With a warm start, tables are measured before the first step, and the networks begin near them (warm_start.py); with a public dataset they
begin from its rows (free_start.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from workers.checkpoints import Checkpoint
from workers.encoding.places import codes_in_places
from workers.encoding.table import TableDomain
from workers.generators.released import TableRelease
from workers.methods.idpgan.free_start import begin_from_free_records
from workers.methods.idpgan.held_tables import HeldTables
from workers.methods.idpgan.step_knobs.step import activation_of
from workers.methods.idpgan.training import Idpgan
from workers.methods.idpgan.warm_start import fit_critic, fit_generator
from workers.methods.labels import counts_of_column
from workers.methods.marginals.method import Marginals
from workers.networks.mixture import MixtureGenerator
from workers.networks.table import PairProducts, TableCritic, TableGenerator, one_hot_records, sample_records

if TYPE_CHECKING:
    from torch import nn

    from service.methods.idpgan.price import TrainedOrder
    from workers.encoding.table import EncodedTable
    from workers.mechanism import PrivateSum
    from workers.mechanism.secure_random import SecureRandom
    from workers.plan import Plan


PARTS = 3
"""Of a warm-up: mixture, generator, critic; they take about as long each."""


class TableIdpgan(Idpgan):
    """A run on the rows of a table."""

    generator_batch_share = 0.5
    """Half as large a batch costs half as much, and is as good (docs/results/idpgan-on-tables.md)."""

    generator: TableGenerator

    def __init__(
        self,
        order: TrainedOrder,
        plan: Plan,
        table: EncodedTable,
        domain: TableDomain,
        randomness: SecureRandom,
        device: torch.device,
    ) -> None:
        self.table, self.domain = table, domain
        self.public: EncodedTable | None = None
        """Rows of a dataset that is declared public, each by itself, to begin from."""
        self.condition_index = None if order.condition_on is None else domain.index(order.condition_on)
        sizes = order.networks
        generator = self.make_generator(order, domain.widths)
        self.free_widths = [width for i, width in enumerate(domain.widths) if i != self.condition_index]
        self.products = PairProducts(domain.total_width, len(domain.columns), sizes.pair_products).to(device)
        super().__init__(
            order,
            plan,
            randomness,
            device,
            units=table.units,
            rows_per_unit=table.max_rows_per_unit,
            networks=(generator, self.make_critic(order, domain)),
        )
        self.warm_start = order.tables_first
        tables = order.tables_order
        self.tables = (
            None if tables is None else Marginals(tables, plan, table, domain, randomness, device, keeps_bins=True)
        )
        self.held: HeldTables | None = None
        """What the tables say, once the networks are near them."""
        self._rows_per_unit: float | None = None
        self.domain_of_rows = domain
        """The columns as synthetic rows have them, with the values that many rows share."""

    def make_generator(self, order: TrainedOrder, widths: tuple[int, ...]) -> TableGenerator:
        return TableGenerator(
            widths,
            noise_dimension=order.networks.noise_dimension,
            hidden=order.networks.generator_hidden,
            condition_index=self.condition_index,
        )

    def make_critic(self, order: TrainedOrder, domain: TableDomain) -> nn.Module:
        """The critic of one-hot rows with their products of pairs; none of its layers may mix records."""
        width = domain.total_width + order.networks.pair_products
        return TableCritic(width, order.networks.critic_hidden, activation_of(order.private_step))

    def measure(self) -> None:
        """Measure the tables of a warm start, with which label frequencies come; without one, label counts."""
        if self.tables is None:
            super().measure()
            return
        self.tables.measure()
        self._take_from_tables(self.tables)

    def _take_from_tables(self, tables: Marginals) -> None:
        self.condition_frequencies, self._rows_per_unit = tables.condition_frequencies, tables.rows_per_unit

    @property
    def rows_per_unit(self) -> float | None:
        return self._rows_per_unit

    def warm_up(self, on_share: Callable[[float], None]) -> None:
        """Fit a mixture to the tables, the generator to the mixture's tables, and the critic to the rest, unless that was done.

        Or train on public rows, unless a private step was taken. No private row is read. `on_share` is told often how much of it is done,
        from 0 to 1, and may raise to stop.
        """
        if self.public is not None and not self.plan.steps_done:
            begin_from_free_records(self, self.public, self.order.free_public_steps, on_share)
        start, tables = self.warm_start, self.tables
        if start is None or tables is None or self.held is not None:
            return
        mixture = tables.fit(lambda step: on_share(step / tables.order.steps / PARTS)).to(self.device)
        self.domain_of_rows = tables.domain_of_rows
        held = HeldTables.of_mixture(mixture, tables.layout, self.condition_frequencies)
        fit_generator(
            self.generator,
            held,
            noise_dimension=self.order.networks.noise_dimension,
            steps=start.generator_steps,
            learning_rate=start.generator_learning_rate,
            on_step=_told_by_steps(on_share, 1, steps=start.generator_steps),
        )
        self.averaged_generator.load_state_dict(self.generator.state_dict())
        self.generator_steps = start.generator_steps  # the average begins here, and not at the first private steps
        fit_critic(
            self.critic,
            lambda: self._pair_of_batches(mixture),
            gradient_penalty=self.order.gradient_penalty,
            optimizer=self.order.optimizer,
            steps=start.critic_steps,
            on_step=_told_by_steps(on_share, 2, steps=start.critic_steps),
        )
        self.held = held

    @torch.no_grad()
    def free_batch(self, free: EncodedTable, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Records of these rows that cost nothing, as many generated ones of the same conditions, and these conditions."""
        real, _, conditions = self._rows_of(free, units)
        conditions = torch.zeros(len(real), dtype=torch.int64) if conditions is None else conditions
        return real, self.made_of(conditions), conditions

    def made_of(self, conditions: Tensor) -> Tensor:
        """Generated records of these conditions, or as many of none."""
        return self._fakes(self.generator, None if self.condition_index is None else conditions, len(conditions))

    def release(self) -> TableRelease:
        return TableRelease(
            generator=self.averaged_generator.cpu(),
            domain=self.domain_of_rows,
            noise_dimension=self.order.networks.noise_dimension,
            condition_index=self.condition_index,
            condition_frequencies=self.condition_frequencies,
            engine=self.engine,
            device=self.device.type,
            is_private=self.is_private,
            rows_per_unit=self.rows_per_unit,
        )

    def _pair_of_batches(self, mixture: MixtureGenerator) -> tuple[Tensor, Tensor]:
        """Records drawn from a mixture, and as many of the generator with the same conditions."""
        conditions = self._drawn_conditions(self.generator_batch)
        noise = torch.randn(self.generator_batch, mixture.noise_dimension, device=self.device)
        logits = mixture(noise, conditions)
        drawn = sample_records(logits, self.domain.widths, torch.rand_like(logits).clamp_min_(1e-9), 1.0)
        return self.products(drawn), self._fakes(self.generator, conditions)

    def _batch_to_follow(self) -> tuple[Tensor, Tensor | float]:
        """One batch for both: what the critic scores, and how far its tables are from those held."""
        if self.held is None or self.warm_start is None or self.warm_start.hold == 0.0:
            return super()._batch_to_follow()
        parts = self.held.parts(self.generator_batch, self.randomness.uniforms(1).item())
        conditions = self.held.conditions(parts)
        logits = self._free_logits(self.generator, conditions, self.generator_batch)
        return self._drawn(logits, conditions), self.warm_start.hold * self.held.distance(logits, parts)

    def checkpoint(self) -> Checkpoint:
        """Before the networks are warm: the tables alone, as of `marginals`. Later: everything, and what is held."""
        if self.tables is None:
            return super().checkpoint()
        if self.held is None:
            return self.tables.checkpoint()
        saved = super().checkpoint()
        within_cells = [(column.decimals, column.shared_values) for column in self.domain_of_rows.columns]
        values = {**saved.values, "rows_per_unit": self._rows_per_unit, "within_cells": within_cells}
        return Checkpoint({**saved.tensors, **self.held.tensors()}, values)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue where the checkpoint was taken, in either phase."""
        if self.tables is not None and "variances" in checkpoint.values:
            self.tables.restore(checkpoint)
            self.is_private = self.is_private and self.tables.is_private
            self._take_from_tables(self.tables)
            return
        super().restore(checkpoint)
        if self.tables is not None:
            self.held = HeldTables.from_tensors(checkpoint.tensors, self.tables.layout, self.device)
            self._rows_per_unit = checkpoint.values["rows_per_unit"]
            if "within_cells" in checkpoint.values:  # those of earlier versions have none
                self.domain_of_rows = _with_what_is_within_cells(self.domain, checkpoint.values["within_cells"])

    def _label_counts(self) -> PrivateSum:
        place = self.condition_index
        if place is None:
            raise RuntimeError("this order conditions on nothing")
        return counts_of_column(self.table, place, width=self.domain.widths[place])

    def _rows(self, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        return self._rows_of(self.table, units)

    def _rows_of(self, table: EncodedTable, units: np.ndarray) -> tuple[Tensor, Tensor, Tensor | None]:
        """Records of these units of this table."""
        codes = torch.from_numpy(codes_in_places(table, units).astype(np.int64)).to(self.device)  # (R, columns)
        real, present = one_hot_records(codes, self.domain.widths)
        real = self.products(real)
        if self.condition_index is None:
            return real, present, None
        return real, present, torch.where(present, codes[:, self.condition_index], 0)

    def _fakes(self, generator: nn.Module, conditions: Tensor | None, rows: int | None = None) -> Tensor:
        """G(z) as records (rows, total_width + products)."""
        logits = self._free_logits(cast("TableGenerator", generator), conditions, rows or self.generator_batch)
        return self._drawn(logits, conditions)

    def _free_logits(self, generator: TableGenerator, conditions: Tensor | None, rows: int) -> Tensor:
        """(rows, free width) logits of as many conditions, or of `rows` where there are none."""
        count = rows if conditions is None else len(conditions)
        size = self.order.networks.noise_dimension
        noise = self.randomness.normals(count, size, dtype=torch.float32, device=self.device)
        return generator.free_logits(noise, conditions)

    def _drawn(self, logits: Tensor, conditions: Tensor | None) -> Tensor:
        """Records (rows, total_width + products) drawn from logits of the free columns, with a gradient."""
        uniforms = self.randomness.uniforms(*logits.shape, dtype=torch.float32, device=self.device)
        drawn = sample_records(logits, self.free_widths, uniforms, self.order.networks.softmax_temperature)
        records: Tensor = self.products(self.generator.with_condition(drawn, conditions))
        return records


def _with_what_is_within_cells(domain: TableDomain, kept: list[Any]) -> TableDomain:
    """Digits and shared values of every column, as a checkpoint keeps them."""
    columns = (
        replace(column, decimals=decimals, shared_values=tuple((value, share) for value, share in shared))
        for column, (decimals, shared) in zip(domain.columns, kept, strict=True)
    )
    return replace(domain, columns=tuple(columns))


def _told_by_steps(on_share: Callable[[float], None], part: int, *, steps: int) -> Callable[[], None]:
    """To be called once a step of one of the parts of a warm-up."""
    done = itertools.count(1)
    return lambda: on_share((part + next(done) / steps) / PARTS)
