"""Public grids: equal cells, and the parts of them that noised counts may choose from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.domain.field_schema import FieldSchema
from service.domain.grids import finer_edges, grid_edges


def field(kind: str, low: Any, high: Any, **more: Any) -> FieldSchema:
    return FieldSchema.model_validate(
        {"name": "x", "type": kind, "constraints": {"minimum": low, "maximum": high}, **more}
    )


OPEN = [
    field("integer", 0, 200_000),
    field("integer", -70, 5),
    field("integer", 3, 999),
    field("number", 0, 1),
    field("number", -1e6, 2.5),
    field("number", 1e-3, 40.0),
    field("number", -900.0, -1.0),
    field("date", "1900-01-01", "2030-12-31"),
    field("datetime", "2020-01-01T00:00:00Z", "2020-02-01T00:00:00Z"),
]


@pytest.mark.parametrize("bins", [2, 32, 64])
@pytest.mark.parametrize("one", OPEN, ids=lambda one: f"{one.type} {one.constraints.minimum}")
def test_parts_lie_within_equal_cells(one: FieldSchema, bins: int) -> None:
    equal, fine = grid_edges(one, bins), finer_edges(one, bins)
    assert fine is not None
    assert set(equal) < set(fine)
    assert (fine[0], fine[-1]) == (equal[0], equal[-1])
    assert (np.diff(fine) > 0.0).all()
    if one.type != "number":
        assert all(edge == int(edge) for edge in fine)


def test_cells_are_small_where_zero_is_near() -> None:
    fine = finer_edges(field("integer", 0, 200_000), 32)
    assert fine is not None
    assert fine[:5] == (0.0, 1.0, 2.0, 4.0, 7.0)  # 6251/1024 and so on, rounded up
    both = finer_edges(field("number", -8, 8), 2)
    assert both is not None
    assert {-4.0, -0.5, 0.0, 0.5, 4.0} < set(both)
    assert {-edge for edge in both if abs(edge) > 1e-9} <= set(both)
    prices = finer_edges(field("integer", 1, 100_000), 8)
    assert prices is not None
    assert prices[:3] == (1.0, 2.0, 4.0)
    years = finer_edges(field("integer", 1_800, 2_055), 32)
    assert years == tuple(float(year) for year in range(1_800, 2_057, 4))


def test_a_numbers_zero_has_a_part_to_itself() -> None:
    for low, high, more, narrow in ((0, 1e5, {}, 1e-6), (-4, 60, {}, 1e-9), (0, 5_000, {"decimals": 2}, 0.01)):
        fine = finer_edges(field("number", low, high, **more), 32)
        assert fine is not None
        place = fine.index(0.0)
        assert 0.0 < fine[place + 1] <= narrow < fine[place + 2]
    assert finer_edges(field("number", 0, 0.5, decimals=0), 2) == (0.0, 0.25, 0.375, 0.5)


@pytest.mark.parametrize(
    "one",
    [
        field("integer", 0, 40),
        field("integer", 0, 1_000, bins=10),
        field("number", 0, 1, edges=[0, 0.5, 1]),
        FieldSchema.model_validate({"name": "x", "type": "string", "constraints": {"enum": ["a"]}}),
        FieldSchema.model_validate({"name": "x", "type": "boolean"}),
    ],
    ids=["one cell per value", "bins", "edges", "categories", "boolean"],
)
def test_what_is_declared_stays(one: FieldSchema) -> None:
    assert finer_edges(one, 32) is None
