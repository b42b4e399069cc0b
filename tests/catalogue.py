"""Tiny data of every kind, and orders of every method of the catalogue for them: what contract tests run over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.image_schema import parse_schema
from service.methods.catalogue import CATALOGUE, parse_order
from service.methods.facts import Facts
from service.methods.interface import Modality
from service.methods.knobs import Order
from service.methods.pricing import price_order, resolve_order
from service.privacy.events import Events
from service.privacy.filters import NANO, Shares, open_budget
from workers.encoding.images import EncodedImages
from workers.encoding.table import EncodedTable, TableDomain
from workers.sources import Source

BUDGET = open_budget(20.0, 1e-6)
UNITS = 400
TABLE_SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
        {"name": "weight", "type": "number", "constraints": {"minimum": 0, "maximum": 10}},
    ],
    "target": "colour",
}
IMAGE_SCHEMA = {"type": "image", "height": 8, "width": 8, "channels": 1, "classes": 3}
SCHEMAS: dict[Modality, dict[str, Any]] = {"table": TABLE_SCHEMA, "image": IMAGE_SCHEMA}
CASES = [(name, holds) for name, method in CATALOGUE.items() for holds in sorted(method.takes)]
"""Every method with everything that it takes."""


@dataclass(frozen=True)
class Case:
    """A method, what the data are, and a resolved order with its price."""

    method: str
    holds: Modality
    order: Order
    events: Events
    facts: Facts

    @property
    def schema(self) -> Any:
        return parse_schema(SCHEMAS[self.holds])

    def source(self) -> Source:
        return _Table() if self.holds == "table" else _Images()


def ordered(method: str, **knobs: Any) -> dict[str, Any]:
    """A short one, if the method has steps."""
    fields = CATALOGUE[method].order.model_fields
    short = {"steps": 3} if "steps" in fields else {}
    if "sampling_probability" in fields:
        short |= {"sampling_probability": 0.1}
    if "warm_start" in fields:
        short |= {"warm_start": {"kind": "none"}}  # those have tests of their own, which take longer
    return {"method": method, "epsilon": 2.0, **short, **knobs}


def case_of(method: str, holds: Modality, **knobs: Any) -> Case:
    """The order as the service would resolve and price it."""
    facts = Facts.of_declaration(json.dumps(SCHEMAS[holds]), units=UNITS, most_per_unit=1, budget=BUDGET)
    order = parse_order(ordered(method, **knobs))
    resolved = resolve_order(order, facts, Shares(NANO, NANO), parse_schema(SCHEMAS[holds]))
    return Case(method, holds, resolved, price_order(resolved, BUDGET).events, facts)


class _Table:
    holds_images = False

    def table(
        self, *, numeric_bins: int, finer: bool = False, with_places: bool = False
    ) -> tuple[EncodedTable, TableDomain]:
        domain = TableDomain.from_schema(parse_schema(TABLE_SCHEMA), numeric_bins=numeric_bins, finer=finer)  # type: ignore[arg-type]
        rng = np.random.default_rng(0)
        codes = np.stack([rng.integers(0, width, UNITS) for width in domain.widths], axis=1).astype(np.uint16)
        places = {}
        if with_places:
            places = {c: rng.integers(0, grid.size, UNITS).astype(np.uint32) for c, grid in domain.value_grids.items()}
        return EncodedTable(codes, UNITS, None, 1, places), domain

    def images(self) -> EncodedImages:
        raise TypeError("this is a table")


class _Images:
    holds_images = True

    def table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        raise TypeError("these are images")

    def images(self) -> EncodedImages:
        rng = np.random.default_rng(0)
        return EncodedImages(rng.integers(0, 256, (UNITS, 64)).astype(np.uint8), np.arange(UNITS) % 3, (8, 8, 1), 3)
