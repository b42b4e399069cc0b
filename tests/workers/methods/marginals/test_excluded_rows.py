"""What a schema says no row has: rows of a fitted mixture keep to it, and are closer for it, whatever noise says."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import polars as pl
import pytest

from service.domain.table_schema import TableSchema
from service.intake.table.exclusions import excluded
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import MARGINALS, ONE_WAY_TABLES
from service.privacy.events import Events, GaussianEvent
from service.samples.table.sampler import TableSampler
from tests.bundles import build_bundle
from tests.runs import train
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan

FIELDS = [
    {"name": "colour", "type": "string", "constraints": {"enum": ["r", "g", "b"], "required": True}},
    {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 11, "required": True}},
    {"name": "label", "type": "boolean", "constraints": {"required": True}},
    {"name": "price", "type": "number", "constraints": {"minimum": 0, "maximum": 10, "required": True}},
]
EXCLUSIONS = [
    {"colour": ["r"], "size": {"minimum": 4}},
    {"colour": ["g", "b"], "size": {"maximum": 3}},
    {"label": [True], "price": {"minimum": 5}},
]
PLAIN = TableSchema.model_validate({"target": "label", "fields": FIELDS})
DECLARED = TableSchema.model_validate({"target": "label", "fields": FIELDS, "exclusions": EXCLUSIONS})
ROWS = 2_000
PAIRS: Events = (GaussianEvent(MARGINALS, 60.0),)
COLUMNS: Events = (GaussianEvent(ONE_WAY_TABLES, 30.0), GaussianEvent(MARGINALS, 30.0))


def make_table() -> EncodedTable:
    """Red is small, other colours are large, and what is labelled is cheap."""
    generator = np.random.default_rng(1)
    colour, label = generator.integers(3, size=ROWS), generator.integers(2, size=ROWS)
    size = np.where(colour == 0, generator.integers(4, size=ROWS), generator.integers(4, 12, size=ROWS))
    price = generator.integers(10, size=ROWS) // (1 + label)
    return EncodedTable(np.stack([colour, size, label, price], axis=1).astype(np.uint8), ROWS, None, 1)


def rows_of(schema: TableSchema, events: Events, seed: int, **knobs: Any) -> pl.DataFrame:
    order = MarginalsOrder.model_validate(
        {"method": "marginals", "epsilon": 1.0, "device": "cpu", "pair_groups": "declared"}
        | {"components": 128, "steps": 200, **knobs}
    )
    domain = TableDomain.from_schema(schema, numeric_bins=10)
    trained = train(order, Plan(events), make_table(), domain, SecureRandom.from_test_seed(seed))
    bundle = build_bundle(
        trained.generator,
        domain,
        noise_dimension=trained.noise_dimension,
        condition_index=trained.condition_index,
        condition_frequencies=trained.condition_frequencies,
        schema=schema,
        certificate={},
        order={"method": "marginals"},
    )
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        sampler = TableSampler.from_files(json.loads(archive.read("config.json")), archive.read("generator.onnx"))
    return pl.concat(pl.DataFrame(chunk) for chunk in sampler.chunks(20_000, seed=0))


def broken(rows: pl.DataFrame) -> float:
    return float(
        rows.select(pl.any_horizontal(excluded(DECLARED, one) for one in DECLARED.exclusions)).to_series().mean()
    )


def distance(rows: pl.DataFrame) -> float:
    """Total variation of colour and size together, in mean over the labels."""
    codes = make_table().codes
    apart = []
    for label in (0, 1):
        own = rows.filter(pl.col("label") == bool(label))
        drawn = np.zeros((3, 12))
        np.add.at(
            drawn, ([["r", "g", "b"].index(one) for one in own["colour"]], own["size"].to_numpy()), 1.0 / len(own)
        )
        real = np.zeros((3, 12))
        mine = codes[codes[:, 2] == label]
        np.add.at(real, (mine[:, 0], mine[:, 1]), 1.0 / len(mine))
        apart.append(0.5 * np.abs(drawn - real).sum())
    return float(np.mean(apart))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "knobs"),
    [
        (PAIRS, {"pairs": "all", "condition_on": "label"}),
        (PAIRS, {"pairs": "all", "condition_on": "label", "pairs_within": "table"}),
        (PAIRS, {"pairs": "all", "purpose": "tables"}),
        (COLUMNS, {"pairs": "none", "condition_on": "label"}),
    ],
    ids=["pairs within the label", "pairs of all rows", "no condition", "single columns"],
)
def test_rows_keep_to_the_schema_and_are_closer_for_it(events: Events, knobs: dict[str, Any]) -> None:
    plain, declared = ([rows_of(schema, events, seed, **knobs) for seed in (1, 2)] for schema in (PLAIN, DECLARED))
    assert min(map(broken, plain)) > 0.05
    assert max(map(broken, declared)) == 0.0
    assert np.mean([distance(rows) for rows in declared]) < 0.9 * np.mean([distance(rows) for rows in plain])
