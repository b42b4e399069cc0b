"""The real training step, set up for an attack: worst-case tables, canaries, and an ear on everything released.

Nothing here replaces a mechanism. `CanaryIdpgan` differs from `Idpgan` in one thing: the gradients of its units are
chosen by the adversary (Nasr et al. 2023, "gradient canaries"), which the guarantee must survive as it survives any
others. Drawing, clipping, summing, adding noise and histograms are those of a release.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from service.domain.table_schema import TableSchema
from service.methods.idpgan.order import IdpganOrder
from service.privacy.events import Events
from workers.encoding.table import ABSENT, EncodedTable, TableDomain
from workers.mechanism import PerUnitGradients, PrivateSum
from workers.mechanism.gradients import MaterialisedGradients
from workers.mechanism.noise import allocate
from workers.mechanism.secure_random import SecureRandom
from workers.methods import labels
from workers.methods.idpgan import training as idpgan
from workers.methods.idpgan.tables import TableIdpgan
from workers.plan import Plan

SCHEMA = TableSchema.model_validate(
    {
        "fields": [
            {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g", "b"], "required": True}},
            {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 5, "required": True}},
            {"name": "label", "type": "boolean", "constraints": {"required": True}},
        ]
    }
)
DOMAIN = TableDomain.from_schema(SCHEMA, numeric_bins=8)
FIRST_UNIT = np.array([0])
LARGE = 1e6
"""Norm of a canary's gradient before clipping: far above every clip norm."""


@dataclass
class Wiretap:
    """Every release made while it listens: its public shape, what went in (for contracts), what came out."""

    sums: list[PrivateSum] = field(default_factory=list)
    noisy: list[tuple[Tensor, ...]] = field(default_factory=list)
    noise_stds: list[tuple[float, ...]] = field(default_factory=list)


@contextlib.contextmanager
def listening() -> Iterator[Wiretap]:
    """Hear what `idpgan` hands to `release` and `release_counts`, and what it gets back; with the noise that was charged (whole numbers have a little more)."""
    real, real_counts = idpgan.release, labels.release_counts
    heard = Wiretap()

    def release(private: PrivateSum, *, noise_multiplier: float, **knobs: Any) -> tuple[Tensor, ...]:
        noisy = real(private, noise_multiplier=noise_multiplier, **knobs)
        sizes = [sum(private.values[tensor].numel() for tensor in group) for group in private.groups]
        allocation = knobs.get("allocation", "least_noise")
        stds = allocate(private.sensitivities, sizes, noise_multiplier=noise_multiplier, allocation=allocation)
        return note(private, noisy, stds)

    def release_counts(private: PrivateSum, *, noise_stds: Sequence[float], **knobs: Any) -> tuple[Tensor, ...]:
        noisy = real_counts(private, noise_stds=noise_stds, **knobs)
        return note(private, noisy, tuple(noise_stds))

    def note(private: PrivateSum, noisy: tuple[Tensor, ...], stds: tuple[float, ...]) -> tuple[Tensor, ...]:
        heard.sums.append(private)
        heard.noisy.append(noisy)
        heard.noise_stds.append(stds)
        return noisy

    idpgan.release, labels.release_counts = release, release_counts
    try:
        yield heard
    finally:
        idpgan.release, labels.release_counts = real, real_counts


def null_table(units: int, present: np.ndarray | None = None, *, rows_per_unit: int = 1) -> EncodedTable:
    """A table of null records, but for the units named in `present`, whose records are all alike."""
    codes = np.full((units * rows_per_unit, len(DOMAIN.widths)), ABSENT, dtype=np.uint16)
    if present is not None:
        rows = present[:, None] * rows_per_unit + np.arange(rows_per_unit)
        codes[rows.flatten()] = [2, 5, 1]
    starts = None if rows_per_unit == 1 else np.arange(0, len(codes) + 1, rows_per_unit, dtype=np.int64)
    return EncodedTable(codes, units, starts, rows_per_unit)


def order_for(sampling_probability: float, steps: int, **knobs: Any) -> IdpganOrder:
    """An order with a tiny critic; fixed thresholds and one group unless the knobs say otherwise."""
    return IdpganOrder.model_validate(
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "sampling_probability": sampling_probability,
            "steps": steps,
            "device": "cpu",
            "networks": {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [4, 3]},
            "thresholds": {"kind": "fixed", "clip_norm": 1.0},
            "clusters": {"kind": "none"},
            **knobs,
        }
    )


class CanaryIdpgan(TableIdpgan):
    """Units whose gradients are orthogonal spikes: present unit i has LARGE in entry i of every tensor that long."""

    def restart(self, events: Events, table: EncodedTable) -> None:
        """Back to before the first step, with another table; cheaper than building the networks again."""
        self.plan, self.table = Plan(events), table
        self.thresholds = self.initial_thresholds
        self.clip_groups = self._cluster(self.thresholds)
        self.average_histogram = None

    @property
    def initial_thresholds(self) -> tuple[float, ...]:
        rule = self.order.thresholds
        clip_norm = rule.clip_norm if rule.kind == "fixed" else rule.initial_clip_norm
        return (clip_norm / len(self.tensors) ** 0.5,) * len(self.tensors)

    def _per_unit_gradients(self, drawn: np.ndarray) -> Iterator[PerUnitGradients]:
        for start in range(0, len(drawn), self.bounds.units_per_block):
            yield self._spikes(drawn[start : start + self.bounds.units_per_block])

    def _spikes(self, units: np.ndarray) -> PerUnitGradients:
        starts = self.table.unit_starts
        first_rows = units if starts is None else starts[units]
        usable = torch.from_numpy(self.table.codes[first_rows, 0] != ABSENT)
        gradients = []
        for tensor in self.tensors:
            flat = torch.zeros(len(units), tensor.numel())
            fits = units < tensor.numel()
            flat[np.flatnonzero(fits), units[fits]] = LARGE
            gradients.append(flat.reshape(len(units), *tensor.shape))
        return MaterialisedGradients(tuple(gradients), usable)


def make_canaries(
    order: IdpganOrder, events: Events, table: EncodedTable, seed: int, cls: type[TableIdpgan] = CanaryIdpgan
) -> Any:
    torch.manual_seed(seed)
    return cls(order, Plan(events), table, DOMAIN, SecureRandom.from_test_seed(seed), torch.device("cpu"))


def spike_score(heard: Wiretap, release: int, canaries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(x, μ) of each spike canary in one noisy gradient sum: x ~ N(0, 1) without it, N(μ, 1) with it.

    The best projection: per group onto the canary's own direction, weighted by c_k/s_k².
    """
    private, noisy = heard.sums[release], heard.noisy[release]
    x, squared = np.zeros(len(canaries)), np.zeros(len(canaries))
    parts = zip(private.groups, private.sensitivities, heard.noise_stds[release], strict=True)
    for group, clip_norm, noise_std in parts:
        flat = [noisy[tensor].flatten().numpy() for tensor in group]
        owners = np.array([canaries < len(values) for values in flat])  # (tensors, canaries)
        share = np.sqrt(np.maximum(owners.sum(axis=0), 1))
        projection = sum(
            np.where(own, values[np.minimum(canaries, len(values) - 1)], 0.0)
            for own, values in zip(owners, flat, strict=True)
        )
        held = owners.any(axis=0)
        x += held * projection / share * clip_norm / noise_std**2
        squared += held * (clip_norm / noise_std) ** 2
    signal = np.sqrt(squared)
    return x / np.maximum(signal, 1e-300), signal


def histogram_score(heard: Wiretap, release: int) -> tuple[float, float]:
    """(x, μ) of a canary whose norms all lie beyond the grid: its counts are those of the last cell."""
    (counts,), (sensitivity,) = heard.noisy[release], heard.sums[release].sensitivities
    (noise_std,) = heard.noise_stds[release]
    direction = counts[:, -1].sum().item() / len(counts) ** 0.5
    return direction / noise_std, sensitivity / noise_std
