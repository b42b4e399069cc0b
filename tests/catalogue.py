"""Tiny data of every kind, and orders of every method of the catalogue for them: what contract tests run over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.domain.image_schema import parse_schema
from service.domain.open_columns import candidates, open_fields
from service.domain.table_schema import TableSchema, parse_table_schema
from service.methods.catalogue import CATALOGUE, parse_order
from service.methods.facts import Facts
from service.methods.interface import Modality
from service.methods.knobs import Order
from service.methods.pricing import price_order, resolve_order
from service.privacy.events import Events
from service.privacy.filters import NANO, Shares, open_budget
from workers.encoding.images import EncodedImages
from workers.encoding.table import EncodedTable, TableDomain
from workers.encoding.values import TableValues
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
OPEN_SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "infer": {"epsilon": 1.0}},
        {"name": "size", "type": "integer", "constraints": {"required": True}, "infer": {"epsilon": 0.5}},
        {"name": "weight", "type": "number", "decimals": 1, "constraints": {"minimum": 0}, "infer": {"epsilon": 0.5}},
    ],
}
"""Bounds and categories are still to be bought."""
QUESTIONS = [
    {"kind": "count", "where": [{"column": "colour", "values": ["red"]}, {"column": "size", "minimum": 3}]},
    {"kind": "histogram", "column": "weight", "noise": "gaussian"},
    {"kind": "cross_table", "columns": ["colour", "size"], "weight": 2.0},
    {"kind": "sum", "column": "weight"},
    {"kind": "mean", "column": "size", "where": [{"column": "weight", "values": [None]}]},
    {"kind": "quantiles", "column": "weight", "probabilities": [0.1, 0.5]},
    {"kind": "arg_max", "column": "colour"},
    {"kind": "median", "column": "size"},
    {"kind": "keys", "columns": ["colour", "size"]},
]
"""One of each kind."""
CANDIDATES = [
    {"method": "marginals", "steps": 3, "numeric_bins": 4},
    {"method": "marginals", "steps": 3, "purpose": "tables"},
]
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
        return parse_schema(schema_of(self.method, self.holds))

    def source(self) -> Source:
        return _Table(schema_of(self.method, self.holds)) if self.holds == "table" else _Images()


def schema_of(method: str, holds: Modality) -> dict[str, Any]:
    """What an order of the method can be placed on."""
    return OPEN_SCHEMA if method == "declaration" else SCHEMAS[holds]


def ordered(method: str, **knobs: Any) -> dict[str, Any]:
    """A short one, if the method has steps."""
    fields = CATALOGUE[method].order.model_fields
    short = {"steps": 3} if "steps" in fields else {}
    if "sampling_probability" in fields:
        short |= {"sampling_probability": 0.1}
    if method == "rdpcgan":
        short |= {"autoencoder": {"steps": 4}}
    if "warm_start" in fields:
        short |= {"warm_start": {"kind": "none"}}  # those have tests of their own, which take longer
    if "questions" in fields:
        short |= {"questions": QUESTIONS}
    if "candidates" in fields:
        short |= {"candidates": CANDIDATES, "rows": 200}
    return {"method": method, "epsilon": 2.0, **short, **knobs}


def case_of(method: str, holds: Modality, **knobs: Any) -> Case:
    """The order as the service would resolve and price it."""
    schema = schema_of(method, holds)
    facts = Facts.of_declaration(json.dumps(schema), units=UNITS, most_per_unit=1, budget=BUDGET)
    order = parse_order(ordered(method, **knobs))
    resolved = resolve_order(order, facts, Shares(NANO, NANO), parse_schema(schema))
    return Case(method, holds, resolved, price_order(resolved, BUDGET).events, facts)


class _Table:
    holds_images = False

    def __init__(self, schema: dict[str, Any] = TABLE_SCHEMA) -> None:
        self._schema = schema

    def table(self, *, numeric_bins: int, with_places: bool = False) -> tuple[EncodedTable, TableDomain]:
        domain = TableDomain.from_schema(parse_schema(TABLE_SCHEMA), numeric_bins=numeric_bins)  # type: ignore[arg-type]
        rng = np.random.default_rng(0)
        codes = np.stack([rng.integers(0, width, UNITS) for width in domain.widths], axis=1).astype(np.uint16)
        places = {}
        if with_places:
            places = {c: rng.integers(0, grid.size, UNITS).astype(np.uint32) for c, grid in domain.value_grids.items()}
        return EncodedTable(codes, UNITS, None, 1, places), domain

    def values(self, names: Sequence[str]) -> TableValues:
        rng = np.random.default_rng(0)
        schema = parse_table_schema(self._schema)
        if open_fields(schema):
            return self._open_values(schema, rng)
        codes, numbers = {}, {}
        for field in (field for field in schema.fields if field.name in names):
            if field.categories is not None:
                codes[field.name] = rng.integers(0, len(field.categories), UNITS)
            else:
                low, high = field.bounds
                drawn = rng.integers(int(low), int(high) + 1, UNITS).astype(np.float64)
                numbers[field.name] = np.where(
                    rng.random(UNITS) < 0.1, drawn if field.constraints.required else np.nan, drawn
                )
        return TableValues({field.name: field for field in schema.fields}, codes, numbers, UNITS, None, 1)

    def _open_values(self, schema: TableSchema, rng: np.random.Generator) -> TableValues:
        numbers = {"size": rng.integers(0, 10, UNITS).astype(np.float64), "weight": rng.random(UNITS)}
        return TableValues(
            {field.name: field for field in schema.fields},
            {"colour": rng.integers(-1, 3, UNITS)},
            numbers,
            UNITS,
            None,
            1,
            {"colour": ("blue", "green", "red")},
            {field.name: candidates(schema, field) for field in schema.fields if field.name in numbers},
        )

    def images(self) -> EncodedImages:
        raise TypeError("this is a table")


class _Images:
    holds_images = True

    def table(self, **_how: object) -> tuple[EncodedTable, TableDomain]:
        raise TypeError("these are images")

    def values(self, names: Sequence[str]) -> TableValues:
        raise TypeError("these are images", names)

    def images(self) -> EncodedImages:
        rng = np.random.default_rng(0)
        return EncodedImages(rng.integers(0, 256, (UNITS, 64)).astype(np.uint8), np.arange(UNITS) % 3, (8, 8, 1), 3)
