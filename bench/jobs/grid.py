"""The trainings that are run: made-up rows or images, an order, and the work that its method says it is."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from bench.tables.made_up import CHAIN_WIDTHS, KEPT
from service.domain.image_schema import DeclaredSchema, ImageSchema, parse_schema
from service.domain.table_schema import TableSchema
from service.methods import whole_noise
from service.methods.catalogue import method_of, parse_order
from service.methods.dpgm import price as dpgm_price
from service.methods.facts import Facts
from service.methods.idpgan import price as idpgan_price
from service.methods.knobs import Order
from service.methods.pricing import price_order, resolve_order
from service.methods.work import Work
from service.privacy.events import Events
from service.privacy.filters import NANO, Shares, open_budget
from workers.encoding.images import EncodedImages
from workers.encoding.table import EncodedTable, TableDomain

BUDGET = open_budget(8.0, 1e-6)
CHEAP = {"thresholds": {"kind": "fixed"}, "noise_decay": {"kind": "constant"}}
"""Such lists are priced in a moment, and run as long."""


_UNPRICED: list[bool] = []


def without_prices() -> None:
    """From here on noise has a made-up size. Prices need dp_accounting, which a machine with a GPU may lack, and a minute."""
    sizes = SimpleNamespace(get_sigma_gaussian=lambda _epsilon, _delta: 2.0)
    for module in (idpgan_price, dpgm_price, whole_noise):
        module.gaussian_mechanism = sizes  # type: ignore[attr-defined]
    _UNPRICED.append(True)


@dataclass(frozen=True)
class Job:
    """One training; a table where `columns` is given, else images."""

    name: str
    order: dict[str, Any]
    units: int
    columns: int = 0
    side: int = 0
    channels: int = 1
    most: int = 1
    has_target: bool = False
    has_amounts: bool = False
    on_cuda_too: bool = True
    cuda: dict[str, Any] = field(default_factory=dict)
    """What the order says otherwise on a GPU, where small jobs say nothing."""

    @property
    def schema(self) -> dict[str, Any]:
        if not self.columns:
            sides = {"height": self.side, "width": self.side, "channels": self.channels}
            return {"type": "image", **sides, "classes": 10}
        fields: list[dict[str, Any]] = []
        for place in range(self.columns):
            most = CHAIN_WIDTHS[place % len(CHAIN_WIDTHS)] - 1
            bounds = {"minimum": 0, "maximum": most, "required": True}
            fields.append({"name": f"c{place}", "type": "integer", "constraints": bounds})
        fields[0] = {"name": "c0", "type": "string", "constraints": {"enum": ["a", "b", "c", "d"], "required": True}}
        if self.has_amounts:
            bounds = {"minimum": 0, "maximum": 10_000, "required": True}
            fields += [{"name": f"a{place}", "type": "integer", "constraints": bounds} for place in range(3)]
        return {"fields": fields, **({"target": "c0"} if self.has_target else {})}

    def declared(self) -> DeclaredSchema:
        return parse_schema(self.schema)

    def facts(self) -> Facts:
        return Facts.of_declaration(json.dumps(self.schema), units=self.units, most_per_unit=self.most, budget=BUDGET)

    def resolved(self, device: str = "cpu") -> Order:
        document = self.order | (self.cuda if device == "cuda" else {}) | {"epsilon": 2.0, "device": device}
        return resolve_order(parse_order(document), self.facts(), Shares(NANO, NANO), self.declared())

    def events(self, order: Order) -> Events:
        if _UNPRICED:
            return method_of(order).events(order, 2.0, BUDGET.delta)(1.0)
        return price_order(order, BUDGET).events

    def work(self, order: Order) -> Work:
        return method_of(order).estimate(order, self.facts())

    def source(self) -> MadeUp:
        return MadeUp(self)


@dataclass(frozen=True)
class MadeUp:
    """Made-up rows or images of a job."""

    job: Job

    @property
    def holds_images(self) -> bool:
        return not self.job.columns

    def table(self, *, numeric_bins: int, with_places: bool = False) -> tuple[EncodedTable, TableDomain]:
        """A column repeats what the one before it said in most rows."""
        job, rng, schema = self.job, np.random.default_rng(0), self.job.declared()
        if not isinstance(schema, TableSchema):
            raise TypeError("these are images")
        domain = TableDomain.from_schema(schema, numeric_bins=numeric_bins)
        starts = _starts(rng, job)
        rows = job.units if starts is None else int(starts[-1])
        codes = np.empty((rows, len(domain.widths)), np.uint16)
        said = rng.random(rows)
        for place, width in enumerate(domain.widths):
            changes = rng.random(rows) > KEPT
            said[changes] = rng.random(int(changes.sum()))
            codes[:, place] = np.minimum(said * width, width - 1)
        places = {}
        if with_places:
            places = {c: rng.integers(0, grid.size, rows).astype(np.uint32) for c, grid in domain.value_grids.items()}
        return EncodedTable(codes, job.units, starts, job.most, places), domain

    def images(self) -> EncodedImages:
        job, rng, schema = self.job, np.random.default_rng(0), self.job.declared()
        if not isinstance(schema, ImageSchema):
            raise TypeError("this is a table")
        starts = _starts(rng, job)
        images = job.units if starts is None else int(starts[-1])
        labels = np.arange(images) % 10
        pixels = int(np.prod(schema.shape))
        prototypes = rng.random((10, pixels)) * 160.0
        drawn = prototypes[labels] + 60.0 * rng.random((images, 1)) + 20.0 * rng.random((images, pixels))
        return EncodedImages(drawn.astype(np.uint8), labels, schema.shape, 10, starts, job.most)


def _starts(rng: np.random.Generator, job: Job) -> np.ndarray | None:
    """None where a unit is a row; else each has half of the most or more."""
    if job.most == 1:
        return None
    sizes = rng.integers(max(1, job.most // 2), job.most + 1, job.units)
    return np.concatenate([[0], np.cumsum(sizes)])


def _gan(method: str = "idpgan", steps: int = 100, **knobs: Any) -> dict[str, Any]:
    start = {"warm_start": {"kind": "none"}, **CHEAP} if method == "idpgan" else {}
    return {"method": method, "steps": steps, **start, **knobs}


def _hidden(*widths: int) -> dict[str, Any]:
    return {"networks": {"generator_hidden": list(widths), "critic_hidden": list(widths)}}


_PERCEPTRONS = {"image_networks": {"layers": "perceptrons"}}
_CONVOLUTIONS = {"image_networks": {"layers": "convolutions"}}
_FEW_STEPS = {"steps": 300}

JOBS = (
    Job("marginals, 8 columns", {"method": "marginals", "pairs": "all"}, 5_000, columns=8),
    Job("marginals, 8 columns, none", {"method": "marginals", "pairs": "none"}, 5_000, columns=8, on_cuda_too=False),
    Job("marginals, 16 columns", {"method": "marginals"}, 20_000, columns=16),
    Job("marginals, 16 columns, target", {"method": "marginals", "steps": 300}, 20_000, columns=16, has_target=True),
    Job("marginals, 24 columns", {"method": "marginals", "pairs": "all", "steps": 150}, 50_000, columns=24),
    Job("marginals, 40 columns", {"method": "marginals", "pairs": "all", "steps": 50}, 20_000, columns=40),
    Job("marginals, amounts", {"method": "marginals"}, 20_000, columns=6, has_amounts=True),
    Job("marginals, 20 rows a unit", {"method": "marginals", "pairs": "all"}, 2_000, columns=8, most=20),
    Job("idpgan, table", _gan(steps=400), 10_000, columns=10, cuda={"steps": 1_500}),
    Job("idpgan, table, small batch", _gan(steps=600, sampling_probability=0.001), 50_000, columns=10),
    Job("idpgan, table, large batch", _gan(steps=60, sampling_probability=0.1), 50_000, columns=10, cuda=_FEW_STEPS),
    Job("idpgan, table, width 512", _gan(steps=60, **_hidden(512, 512)), 10_000, columns=20, cuda=_FEW_STEPS),
    Job("idpgan, table, width 1,024", _gan(steps=15, **_hidden(1_024, 1_024)), 10_000, columns=40, cuda=_FEW_STEPS),
    Job("idpgan, table, width 2,048", _gan(steps=6, **_hidden(*[2_048] * 3)), 4_000, columns=10, cuda={"steps": 60}),
    Job("idpgan, 5 rows a unit", _gan(steps=100), 5_000, columns=10, most=5),
    Job("idpgan, 100 rows a unit", _gan(steps=4, sampling_probability=0.05), 1_000, columns=10, most=100),
    Job(
        "idpgan, tables first",
        {"method": "idpgan", "steps": 100, **CHEAP},
        10_000,
        columns=10,
        cuda={"steps": 500},
    ),
    Job("dpgan, table", _gan("dpgan", 400), 10_000, columns=20),
    Job("ganobfuscator, table", _gan("ganobfuscator", 300), 10_000, columns=20),
    Job("rdpcgan, table", {"method": "rdpcgan", "steps": 60, "autoencoder": {"steps": 60}}, 10_000, columns=20),
    Job("pategan, table", {"method": "pategan", "steps": 20}, 10_000, columns=20),
    Job("mixture, 14 x 14", {"method": "mixture"}, 5_000, side=14, on_cuda_too=False),
    Job("mixture, 28 x 28", {"method": "mixture", "cells": 16}, 10_000, side=28, on_cuda_too=False),
    Job("mixture, 28 x 28, one cell", {"method": "mixture", "cells": 1}, 20_000, side=28, on_cuda_too=False),
    Job("idpgan, 14 x 14", _gan(steps=300, **_PERCEPTRONS), 10_000, side=14, cuda={"steps": 1_000}),
    Job("idpgan, 28 x 28, convolutions", _gan(steps=6, **_CONVOLUTIONS), 10_000, side=28, cuda={"steps": 100}),
    Job("idpgan, 14 x 14, convolutions", _gan(steps=15, **_CONVOLUTIONS), 10_000, side=14, cuda={"steps": 150}),
    Job(
        "idpgan, 14 x 14, mixture first",
        _gan(steps=60, warm_start={"kind": "mixture", "cells": 8}, **_PERCEPTRONS),
        5_000,
        side=14,
    ),
    Job("ganobfuscator, 14 x 14", _gan("ganobfuscator", 100, **_PERCEPTRONS), 10_000, side=14),
    Job("dpacgan, 14 x 14", _gan("dpacgan", 30, **_PERCEPTRONS), 10_000, side=14, cuda={"steps": 150}),
    Job("dpgm, table", {"method": "dpgm", "steps": 200}, 10_000, columns=20, cuda={"steps": 1_000}),
    Job("dpsyn, table", {"method": "dpsyn", "steps": 200}, 10_000, columns=20, has_target=True, cuda={"steps": 1_000}),
    Job("dpgm, 14 x 14", {"method": "dpgm", "steps": 100}, 10_000, side=14, cuda={"steps": 1_000}),
    Job("dpsyn, 14 x 14", {"method": "dpsyn", "steps": 100}, 10_000, side=14, cuda={"steps": 1_000}),
    Job("dpgan, 14 x 14", _gan("dpgan", 300, **_PERCEPTRONS), 10_000, side=14),
)
