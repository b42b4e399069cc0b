"""Public grids: equal cells, and the trees that begin with them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.domain.field_schema import FieldSchema
from service.domain.grids import grid_edges, tree_levels
from service.domain.value_grids import value_grid


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
def test_an_open_range_has_a_tree_whose_last_level_is_single_values(one: FieldSchema, bins: int) -> None:
    edges, grid = grid_edges(one, bins), value_grid(one, bins)
    assert grid is not None
    levels, parts = grid.tree(len(edges) - 1)
    widest = int(np.diff(grid.below(np.array(edges[1:-1])), prepend=0, append=grid.size).max())
    assert parts ** (levels - 1) >= widest > (parts - 1) ** (levels - 1) / 2
    assert parts <= 64
    assert tree_levels(one, bins) == levels + (one.type == "number")  # and one count of digits


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
    assert tree_levels(one, 32) == 0
