"""A column of which no cell is missing gains none beyond the noise; one that has some keeps about as many. So do categories that no row has."""

from __future__ import annotations

import numpy as np
import pytest

from service.domain.table_schema import TableSchema
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import marginals_events
from tests.runs import train
from workers.encoding.table import EncodedTable, TableDomain
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan

COLUMNS = 8
SCHEMA = TableSchema.model_validate(
    {
        "target": "label",
        "fields": [
            *({"name": f"c{i}", "type": "string", "constraints": {"enum": ["r", "g", "b"]}} for i in range(COLUMNS)),
            {"name": "often", "type": "integer", "constraints": {"minimum": 0, "maximum": 3}},
            {"name": "label", "type": "boolean"},
        ],
    }
)
DOMAIN = TableDomain.from_schema(SCHEMA, numeric_bins=4)
ROWS = 4_000


def table() -> EncodedTable:
    """Only `often` has missing cells, a fifth; columns follow the label a little."""
    generator = np.random.default_rng(5)
    label = generator.integers(2, size=ROWS)
    others = [
        np.minimum(generator.integers(3, size=ROWS) + label * generator.integers(2, size=ROWS), 2)
        for _ in range(COLUMNS)
    ]
    often = np.where(generator.random(ROWS) < 0.2, 4, generator.integers(4, size=ROWS))
    return EncodedTable(np.stack([*others, often, label], axis=1).astype(np.uint16), ROWS, None, 1)


@pytest.mark.parametrize(("pairs", "condition"), [("all", "label"), ("none", "label"), ("all", None)])
def test_no_cell_is_missing_where_none_was(pairs: str, condition: str | None) -> None:
    order = MarginalsOrder.model_validate(
        {
            "method": "marginals",
            "epsilon": 1.0,
            "condition_on": condition,
            "pairs": pairs,
            "device": "cpu",
            "components": 16,
            "steps": 60,
        }
    )
    trained = train(
        order, Plan(marginals_events(order, noise_multiplier=3.0)), table(), DOMAIN, SecureRandom.from_test_seed(1)
    )
    shares = missing_shares(trained)
    assert sum(share > 1e-9 for share in shares[:COLUMNS]) <= 1, "noise may make one of eight look like a few"
    assert max(shares[:COLUMNS]) < 0.01
    assert shares[COLUMNS] == pytest.approx(0.2, abs=0.03)
    if trained.condition_frequencies is not None:
        assert trained.condition_frequencies[-1] < 1e-6


def missing_shares(trained) -> list[float]:
    """Of every column, from the mixture's own logits: which part of its rows has no value."""
    logits = trained.generator.logits.detach().double()
    slices = 1 if trained.condition_frequencies is None else len(trained.condition_frequencies)
    weights = np.ones(1) if slices == 1 else np.array(trained.condition_frequencies)
    found, start = [], 0
    for width in DOMAIN.widths:
        shares = logits[:, start : start + width].softmax(dim=1)[:, -1].reshape(slices, -1).mean(dim=1).numpy()
        found.append(float(shares @ weights))
        start += width
    return found


def test_of_categories_that_no_row_has_about_half_stay_empty_and_those_that_occur_stay() -> None:
    used, declared = 6, 46
    fields = [
        {"name": name, "type": "string", "constraints": {"required": True, "enum": [f"v{i}" for i in range(declared)]}}
        for name in ("a", "b")
    ]
    domain = TableDomain.from_schema(TableSchema.model_validate({"fields": fields}), numeric_bins=4)
    codes = np.random.default_rng(1).integers(used, size=(ROWS, 2)).astype(np.uint16)
    order = MarginalsOrder.model_validate(
        {"method": "marginals", "epsilon": 1.0, "pairs": "all", "device": "cpu", "components": 16, "steps": 60}
    )
    plan = Plan(marginals_events(order, noise_multiplier=3.0))
    trained = train(order, plan, EncodedTable(codes, ROWS, None, 1), domain, SecureRandom.from_test_seed(1))
    logits = trained.generator.logits.detach().double()
    shares = np.stack([part.softmax(dim=1).mean(dim=0).numpy() for part in logits.split(declared, dim=1)])
    empty = shares < 1e-9
    assert not empty[:, :used].any()
    assert 0.3 < empty[:, used:].mean() < 0.75
