"""The ablation's variants are orders, and its table says what was run."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from bench import ablation
from bench.tables.tables import Table, read_table
from service.methods.catalogue import parse_order

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def table(tmp_path: Path) -> Table:
    rng = np.random.default_rng(0)
    a = rng.integers(4, size=300)
    pl.DataFrame({"a": a, "b": np.where(a > 1, "y", "x")}).write_csv(tmp_path / "t.csv")
    bounds = {"minimum": 0, "maximum": 3, "required": True}
    fields = [
        {"name": "a", "type": "integer", "constraints": bounds},
        {"name": "b", "type": "string", "constraints": {"enum": ["x", "y"], "required": True}},
    ]
    (tmp_path / "t.json").write_text(json.dumps({"fields": fields, "target": "b"}))
    return read_table(tmp_path / "t.csv", tmp_path / "t.json", None, None, None)


@pytest.mark.parametrize("variant", ablation.VARIANTS)
def test_every_variant_is_an_order(variant: str) -> None:
    words, knobs = ablation.VARIANTS[variant]
    assert words
    parse_order({"method": "idpgan", "epsilon": 1.0, "steps": 600, **knobs})


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_runs_go_the_way_of_an_order_and_are_in_the_table(table: Table, jobs: int) -> None:
    asked = argparse.Namespace(steps=3, epsilon=4.0, delta=1e-5, times=1, batch=60, device="cpu", jobs=jobs)
    runs = list(ablation._ran(asked, table, [("cold off", 1), ("cold off", 2)]))
    assert {run["seed"] for run in runs} == {1, 2}
    facts = {"table": "t", "date": "2026-01-01", "epsilon": 4.0, "rows": 240, "steps": 3, "times": 1, "delta": 1e-5}
    text = ablation.markdown({**facts, "batch": 60, "where": ablation._where(asked), "runs": runs})
    assert "| cold off | from nothing; no decay, thresholds, groups | 2 |" in text
    assert "--batch 60`" in text
    assert "±" in text
