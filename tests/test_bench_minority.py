"""A share of a minority among training rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from bench.minority import FIELD, MINORITY, lines_of, with_share
from bench.tables.tables import METRIC_BINS, Table
from service.domain.table_schema import parse_table_schema
from workers.encoding.table import TableDomain

SCHEMA = {
    "protected": [FIELD],
    "target": "y",
    "fields": [
        {"name": FIELD, "type": "string", "constraints": {"required": True, "enum": [MINORITY, "Male"]}},
        {"name": "x", "type": "integer", "constraints": {"required": True, "minimum": 0, "maximum": 9999}},
        {"name": "y", "type": "string", "constraints": {"required": True, "enum": ["no", "yes"]}},
    ],
}


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            FIELD: np.where(rng.random(3_000) < 0.4, MINORITY, "Male"),
            "x": np.arange(3_000),
            "y": np.where(rng.random(3_000) < 0.3, "yes", "no"),
        }
    )
    schema = parse_table_schema(SCHEMA)
    return Table(
        "t", schema, "y", frame[:2_400], frame[2_400:], TableDomain.from_schema(schema, numeric_bins=METRIC_BINS)
    )


def test_the_minority_has_the_share_and_no_row_comes_twice(table):
    for share in (0.3, 0.7):
        drawn = with_share(table, 1_000, share, 1)
        assert len(drawn.train) == drawn.train["x"].n_unique() == 1_000
        assert (drawn.train[FIELD] == MINORITY).sum() == round(share * 1_000)
        assert drawn.test.equals(table.test)
    assert not with_share(table, 1_000, 0.3, 2).train.equals(with_share(table, 1_000, 0.3, 1).train)


def test_each_share_has_a_line_of_real_rows_and_one_of_each_epsilon(table):
    real, synthetic = lines_of(table, 1_000, 0.5, ["1"], 1)
    assert real.startswith("| 50% | real rows | 0.")
    assert "(" not in real
    assert synthetic.startswith("| 50% | marginals, ε = 1 | ")
    assert synthetic.count("(") == 7
