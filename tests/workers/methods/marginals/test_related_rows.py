"""From a file to synthetic rows: relations hold, whatever the method, and cost the tables next to nothing."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import numpy as np
import polars as pl
import pytest

from service.domain.table_schema import parse_table_schema
from service.intake.child import Job, read_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import MARGINALS
from service.privacy.events import GaussianEvent
from service.samples.table.sampler import TableSampler
from tests.bundles import build_bundle
from tests.runs import train
from workers.encoding.table import TableDomain, encode_table
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan

ROWS = 3_000
REQUIRED = {"required": True}
FIELDS: list[dict[str, Any]] = [
    {"name": "id", "type": "string", "role": "identifier"},
    {"name": "ward", "type": "string", "constraints": {"enum": ["a", "b", "c"], **REQUIRED}},
    {"name": "start", "type": "integer", "bins": 16, "constraints": {"minimum": 0, "maximum": 479, **REQUIRED}},
    {"name": "end", "type": "integer", "bins": 16, "constraints": {"minimum": 0, "maximum": 479, **REQUIRED}},
    {
        "name": "net",
        "type": "number",
        "decimals": 2,
        "bins": 8,
        "constraints": {"minimum": 0, "maximum": 80, **REQUIRED},
    },
    {"name": "gross", "type": "number", "role": "derived", "constraints": REQUIRED},
]
GROSS = "gross = net * 1.25"


def make_rows() -> pl.DataFrame:
    generator = np.random.default_rng(1)
    ward, start = generator.integers(3, size=ROWS), generator.integers(0, 440, size=ROWS)
    stay = generator.exponential(np.array([5, 20, 60])[ward])
    net = generator.integers(0, 2_000, size=ROWS) * 0.04
    return pl.DataFrame(
        {
            "id": [f"real-{row}" for row in range(ROWS)],
            "ward": [["a", "b", "c"][one] for one in ward],
            "start": start,
            "end": np.minimum(start + stay.astype(int), 479),
            "net": net.round(2),
            "gross": (net * 1.25).round(2),
        }
    )


def synthetic(folder: Any, relations: list[str], sigma: float) -> pl.DataFrame:
    schema = parse_table_schema({"target": "ward", "fields": FIELDS, "relations": relations})
    path = folder / f"{len(relations)}-{sigma}.csv"
    make_rows().write_csv(path)
    with (
        SealedFile.in_the_clear(path) as upload,
        SealedFile.create(folder) as stored,
        SealedFile.create(folder) as scratch,
    ):
        read_table(Job(upload, stored, scratch, schema, None, IngestLimits(), b"k" * 32))
        domain = TableDomain.from_schema(schema, numeric_bins=16)
        table = encode_table(io.BytesIO(stored.read_at(0, stored.size)), domain, units=ROWS)
    order = MarginalsOrder.model_validate(
        {"method": "marginals", "epsilon": 1.0, "device": "cpu", "pair_groups": "declared"}
        | {"components": 128, "steps": 200, "pairs": "all", "condition_on": "ward"}
    )
    trained = train(order, Plan((GaussianEvent(MARGINALS, sigma),)), table, domain, SecureRandom.from_test_seed(1))
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
        names = archive.read("MODEL_CARD.md").decode()
        assert "real-" not in names
        sampler = TableSampler.from_files(json.loads(archive.read("config.json")), archive.read("generator.onnx"))
    return pl.concat(pl.DataFrame(chunk) for chunk in sampler.chunks(20_000, seed=0))


def distance(rows: pl.DataFrame, *names: str) -> float:
    """Total variation from the real table, in the cells of the model."""
    tables = []
    for frame in (rows, make_rows()):
        cells = np.zeros(16 ** len(names))
        codes = {"ward": frame["ward"].cast(pl.Enum(["a", "b", "c"])).to_physical().to_numpy().astype(int)}
        codes |= {name: frame[name].to_numpy() // 30 for name in ("start", "end")}
        codes["gross"] = (frame["gross"].to_numpy() / 6.25).astype(int).clip(max=15)
        np.add.at(cells, sum(codes[name] * 16**at for at, name in enumerate(names)), 1 / frame.height)
        tables.append(cells)
    return float(0.5 * np.abs(tables[0] - tables[1]).sum())


def test_a_relation_holds_and_marginals_stay(tmp_path: Any) -> None:
    """Almost without noise, so that what differs is the relation's doing."""
    plain, kept = (synthetic(tmp_path, relations, 0.01) for relations in ([GROSS], [GROSS, "start <= end"]))
    assert plain.filter(pl.col("start") > pl.col("end")).height > 1_000
    assert kept.filter(pl.col("start") > pl.col("end")).height == 0
    for names in (["start"], ["end"], ["ward", "start"], ["ward", "end"]):
        assert distance(kept, *names) < distance(plain, *names) + 0.01
    assert distance(kept, "start", "end") < distance(plain, "start", "end") + 0.01
    assert distance(kept, "gross") < 0.05  # computed, and never measured
    assert ((kept["net"] * 100).round() * 5 - (kept["gross"] * 100 * 4).round()).abs().max() <= 2


@pytest.mark.parametrize("sigma", [60.0])
def test_it_holds_under_noise(tmp_path: Any, sigma: float) -> None:
    kept = synthetic(tmp_path, [GROSS, "start <= end"], sigma)
    assert kept.filter(pl.col("start") > pl.col("end")).height == 0
    assert kept["id"].n_unique() == kept.height
