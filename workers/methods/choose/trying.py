"""Runs of candidates inside another run: their plans, their checkpoints, and what both forms of choosing share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from workers.checkpoints import Checkpoint, position_of, resume
from workers.hooks import Hooks
from workers.mechanism import RowsOfUnits
from workers.methods.choose.classifier import drawn_codes, fitted, wrong
from workers.methods.interface import Run as CandidateRun
from workers.methods.interface import run_class
from workers.numerics.exact_choice import below
from workers.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch
    from numpy.typing import NDArray
    from torch import Tensor

    from service.methods.choose.order import ChooseOrder
    from service.methods.knobs import Order
    from service.privacy.events import Events
    from workers.checkpoints import CheckpointStore
    from workers.encoding.table import EncodedTable, TableDomain
    from workers.generators.released import TableRelease
    from workers.mechanism.secure_random import SecureRandom
    from workers.sources import Source

SEEDS = 1 << 63


class Trying(ABC):
    """One run. `inner` is the checkpoint of the candidate that runs, if it has left one."""

    def __init__(
        self, order: ChooseOrder, plan: Plan, source: Source, randomness: SecureRandom, device: torch.device
    ) -> None:
        self.order, self.plan, self.source, self.randomness, self.device = order, plan, source, randomness, device
        self.is_private = randomness.is_private
        self.inner: Checkpoint | None = None
        self._tested: tuple[EncodedTable, TableDomain] | None = None

    @abstractmethod
    def measure(self) -> None:
        """Takes the first event; what belongs to it follows in `finish`."""

    @abstractmethod
    def finish(self, hooks: Hooks) -> TableRelease:
        """Tries, choice, and what is published."""

    @abstractmethod
    def own_state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and values of a checkpoint, beside `inner`."""

    @abstractmethod
    def take_up(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Put back what `own_state` gave, from a checkpoint."""

    @abstractmethod
    def test_source(self) -> Source:
        """The source of the rows on which errors are counted."""

    def checkpoint(self) -> Checkpoint:
        tensors, values = self.own_state()
        values |= position_of(self)
        if self.inner is not None:
            saved = self.inner
            tensors |= {f"inner.{name}": tensor for name, tensor in saved.tensors.items()}
            values["inner"] = saved.values
        return Checkpoint(tensors, values)

    def restore(self, checkpoint: Checkpoint) -> None:
        resume(self, checkpoint.values)
        self.take_up(checkpoint.tensors, checkpoint.values)
        if "inner" in checkpoint.values:
            self.inner = Checkpoint(under("inner", checkpoint.tensors), checkpoint.values["inner"])

    def tried(
        self, candidate: Order, events: Events, source: Source, hooks: Hooks
    ) -> tuple[CandidateRun, TableRelease]:
        """A candidate, run by a list of its own."""
        run = run_class(candidate)(candidate, Plan(events), source, self.randomness, self.device)
        hooks.measure_or_restore(run)
        made: Any = run.finish(hooks)
        self.is_private = self.is_private and made.is_private
        return run, made

    def quiet(self, hooks: Hooks, *, keeps: bool) -> Hooks:
        """Hooks for the run of a candidate: it tells no progress, and its checkpoints, if any, are part of this run's."""
        store = None if hooks.checkpoints is None or not keeps else _Inner(self, hooks.checkpoints)
        return Hooks(
            should_stop=hooks.should_stop, checkpoints=store, checkpoint_every_steps=hooks.checkpoint_every_steps
        )

    def classifier_of(self, made: TableRelease, hooks: Hooks) -> Tensor:
        """The weights of a classifier that was fitted to synthetic rows of this candidate alone. It may take long, so each step asks whether to stop."""
        _, domain = self._test()
        codes = drawn_codes(made, domain, self.order.rows, below(SEEDS, self.randomness.bits))
        return fitted(codes, domain.widths, self._target, lambda: hooks.stop_if_asked(self.plan.steps_done))

    def errors(self, classifiers: Sequence[Tensor]) -> NDArray[np.bool_]:
        """(classifiers, rows) which test rows each gets wrong. Private."""
        table, domain = self._test()
        codes = table.codes.astype(np.int64)
        return np.stack([wrong(each, codes, domain.widths, self._target) for each in classifiers])

    @property
    def test_units(self) -> RowsOfUnits:
        table, _ = self._test()
        return RowsOfUnits(table.unit_starts, table.max_rows_per_unit)

    def published(self, made: TableRelease, place: int) -> TableRelease:
        """The release with the number of the candidate that it is."""
        choice = {"form": self.order.form, "candidate": place, "candidates": len(self.order.candidates)}
        return replace(made, choice=choice, is_private=made.is_private and self.is_private)

    @property
    def _target(self) -> int:
        _, domain = self._test()
        return domain.index(self.order.target or "")

    def _test(self) -> tuple[EncodedTable, TableDomain]:
        if self._tested is None:
            self._tested = self.test_source().table(numeric_bins=self.order.numeric_bins)
        return self._tested


class _Inner:
    """Keeps the checkpoint of a candidate's run as part of the whole one."""

    def __init__(self, trying: Trying, store: CheckpointStore) -> None:
        self._trying, self._store = trying, store

    def put(self, checkpoint: bytes) -> None:
        self._trying.inner = Checkpoint.from_bytes(checkpoint)
        self._store.put(self._trying.checkpoint().to_bytes())

    def get(self) -> bytes | None:
        inner = self._trying.inner
        return None if inner is None else inner.to_bytes()


def under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with the prefix, without it."""
    start = f"{prefix}."
    return {name.removeprefix(start): tensor for name, tensor in tensors.items() if name.startswith(start)}
