"""Where synthetic rows come from. Ours go the way of a real order: resolve, price, plan, measure or train, bundle, sample."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from bench.orders import budget_of_one_release, scaled
from bench.tables.peers import PEERS, DidNotRun
from bench.tables.tables import Table, encode, frame_of
from bench.tables.values import with_quantile_bins
from service.domain.grids import shape_of
from service.domain.table_schema import TableSchema
from service.methods.catalogue import parse_order
from service.methods.facts import Facts
from service.methods.knobs import Order
from service.methods.pricing import Price, price_order, resolve_order
from service.privacy.filters import NANO, Shares
from service.samples.table.sampler import TableSampler
from workers.encoding.images import EncodedImages
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.training import make_release

__all__ = ["METHODS", "NEEDS_NO_EPSILON", "Ask", "DidNotRun"]


@dataclass(frozen=True)
class Ask:
    """What a method is asked for: rows at (epsilon, delta) of one release."""

    table: Table
    epsilon: float
    delta: float
    rows: int
    seed: int
    knobs: Mapping[str, Any]
    noise: float = 1.0
    """The part of the priced noise that is drawn; less than 1 is no private run."""


Maker = Callable[[Ask], tuple[pl.DataFrame, float]]
"""Returns the rows, and the seconds from rows to generator (sampling not counted)."""


STRATEGIES_OFF = {
    "noise_decay": {"kind": "constant"},
    "thresholds": {"kind": "fixed"},
    "clusters": {"kind": "none"},
}
"""IDPGAN without decay, adaptive thresholds and groups: a DP-GAN of the same code."""


@dataclass(frozen=True)
class _Frame:
    """Rows in memory, encoded when a run asks for them."""

    rows: pl.DataFrame
    schema: TableSchema
    holds_images: bool = False

    def table(self, *, numeric_bins: int, with_places: bool = False) -> tuple[EncodedTable, TableDomain]:
        domain = TableDomain.from_schema(self.schema, numeric_bins=numeric_bins)
        return encode(self.rows, domain, with_places=with_places), domain

    def images(self) -> EncodedImages:
        raise TypeError("this is a table")


def priced(method: str, ask: Ask, fixed: Mapping[str, Any] | None = None) -> tuple[Order, Price]:
    """The order as it would be stored, and its price."""
    schema = ask.table.schema
    budget = budget_of_one_release(ask.epsilon, ask.delta)
    order = parse_order({"method": method, "epsilon": ask.epsilon, "device": "cpu", **(fixed or {}), **ask.knobs})
    facts = Facts(len(ask.table.train), budget, lambda numeric_bins: shape_of(schema, numeric_bins=numeric_bins))
    resolved = resolve_order(order, facts, Shares(NANO, NANO), schema)
    return resolved, price_order(resolved, budget)


def ours(method: str, fixed: Mapping[str, Any] | None = None) -> Maker:
    def make(ask: Ask) -> tuple[pl.DataFrame, float]:
        schema, units = ask.table.schema, len(ask.table.train)
        resolved, price = priced(method, ask, fixed)
        started = time.monotonic()
        source, randomness = _Frame(ask.table.train, schema), SecureRandom.from_test_seed(ask.seed)
        events = price.events if ask.noise == 1.0 else scaled(price.events, ask.noise)
        made = make_release(resolved, Plan(events), source, randomness)
        files = made.files(schema=schema, certificate={}, order=resolved.model_dump(mode="json"))
        seconds = time.monotonic() - started
        sampler = TableSampler.from_files(json.loads(files["config.json"]), files["generator.onnx"])
        columns: dict[str, list[Any]] = {name: [] for name in sampler.names}
        # As many as there are real ones first, since a sample is balanced as a whole; then the others.
        for rows, seed in ((min(ask.rows, units), ask.seed), (max(0, ask.rows - units), 1_000 + ask.seed)):
            for chunk in sampler.chunks(rows, seed=seed):
                for name, values in chunk.items():
                    columns[name] += values
        return frame_of(columns, schema), seconds

    return make


def given_quantile_bins(ask: Ask) -> tuple[pl.DataFrame, float]:
    """Marginals, where the schema declares for free the bins that real rows fill equally. No method could know them."""
    table = replace(ask.table, schema=with_quantile_bins(ask.table.schema, ask.table.train))
    return ours("marginals")(replace(ask, table=table))


def real(ask: Ask) -> tuple[pl.DataFrame, float]:
    """The training rows themselves: what no private method can beat."""
    return ask.table.train, 0.0


def independent(ask: Ask) -> tuple[pl.DataFrame, float]:
    """Every column shuffled on its own, without noise: what one-way tables alone can do."""
    rng = np.random.default_rng(ask.seed)
    frame = ask.table.train
    return frame.select([frame[name].gather(rng.permutation(len(frame))) for name in frame.columns]), 0.0


METHODS: dict[str, Maker] = {
    "real": real,
    "independent": independent,
    "auto": ours("auto"),
    "marginals": ours("marginals"),
    "marginals for tables": ours("marginals", {"purpose": "tables"}),
    "marginals given quantile bins": given_quantile_bins,
    "marginals of equal cells": ours("marginals", {"tree_precision_share": 0.0}),
    "idpgan": ours("idpgan"),
    "dpgm": ours("dpgm"),
    "dpsyn": ours("dpsyn"),
    "dpgan": ours("idpgan", STRATEGIES_OFF | {"warm_start": {"kind": "none"}}),
    "rdpcgan": ours("rdpcgan"),
    "pategan": ours("pategan"),
    **PEERS,
}
NEEDS_NO_EPSILON = {"real", "independent"}
