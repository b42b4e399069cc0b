"""Log densities of published generators, against brute force over domains small enough to list."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import torch
from tiny_mixtures import mixture_files

from service.samples.density import Density, log_density, log_shares_of_cells, log_within_cell, nearest_distances
from service.samples.table.sampler import TableSampler

SCHEMA = {
    "fields": [
        {"name": "a", "type": "string", "constraints": {"enum": ["x", "y", "z"], "required": True}},
        {"name": "b", "type": "integer", "bins": 3, "constraints": {"minimum": 0, "maximum": 8}},
        {"name": "c", "type": "boolean", "constraints": {"required": True}},
    ]
}
WIDTHS = (3, 4, 2)


def all_cells():
    return np.array(list(itertools.product(*map(range, WIDTHS))))


@pytest.fixture(params=["whole", "by condition"])
def files(request):
    frequencies = [0.5, 0.2, 0.3] if request.param == "by condition" else None
    logits = 2 * torch.randn(len(frequencies or [1]), 8, sum(WIDTHS), generator=torch.Generator().manual_seed(3))
    return mixture_files(SCHEMA, logits, frequencies=frequencies)


def test_cells_sum_to_one_and_are_as_frequent_as_drawn(files):
    density = Density(*files)
    assert density.is_exact
    chances = np.exp(density.of_cells(all_cells()))
    assert chances.sum() == pytest.approx(1.0, abs=1e-6)
    codes = {"a": ["x", "y", "z"], "c": [False, True]}
    counts = np.zeros(WIDTHS)
    for chunk in TableSampler.from_files(*files).chunks(40_000, seed=1):
        rows = zip(chunk["a"], chunk["b"], chunk["c"], strict=True)
        for a, b, c in rows:
            counts[codes["a"].index(a), 3 if b is None else b // 3, int(c)] += 1
    assert counts.reshape(-1) / 40_000 == pytest.approx(chances, abs=0.012)


def test_independent_columns_have_the_same_single_columns(files):
    density = Density(*files)
    joint, alone = (
        np.exp(one(all_cells())).reshape(WIDTHS) for one in (density.of_cells, density.of_independent_cells)
    )
    assert alone.sum() == pytest.approx(1.0, abs=1e-6)
    for place in range(3):
        others = tuple({0, 1, 2} - {place})
        assert alone.sum(axis=others) == pytest.approx(joint.sum(axis=others), abs=1e-6)
    assert np.abs(alone - joint).max() > 0.01, "columns of this mixture depend on each other"


def test_values_sum_to_one_with_those_that_many_rows_share(files):
    config, network = json.loads(json.dumps(files[0])), files[1]
    config["columns"][1]["shared_values"] = [[1, 0.5], [4, 0.25]]
    density = Density(config, network)
    values = np.ma.array([*range(9), 0], mask=[*[False] * 9, True])
    rows = [(a, b, c) for a in range(3) for b in range(10) for c in range(2)]
    drawn = [np.array([a for a, _, _ in rows]), values[[b for _, b, _ in rows]], np.array([c for _, _, c in rows])]
    cells = np.stack([drawn[0], density.columns[1].code_of(drawn[1]), drawn[2]], axis=1)
    assert np.exp(density.of_cells(cells) + density.within_cells(drawn)).sum() == pytest.approx(1.0, abs=1e-6)
    within = np.exp(log_within_cell(density.columns[1], values))
    assert within[:3] == pytest.approx([1 / 6, 0.5 + 1 / 6, 1 / 6])


def test_wide_tables_give_the_same_as_narrow_ones():
    """More combinations of cells than a number of 64 bits can tell apart."""
    rng = np.random.default_rng(0)
    widths = [32] * 15
    cells = np.repeat(rng.integers(32, size=(20, 15)), 2, axis=0)
    logs = log_shares_of_cells(rng.normal(size=(4, 480)), widths)
    found = log_density(cells, np.log(np.full(4, 0.25)), logs, widths)
    places = cells + 32 * np.arange(15)
    assert found == pytest.approx(np.log(np.exp(logs[:, places].sum(axis=2)).mean(axis=0)))


def test_nearest_rows():
    synthetic = np.array([[0, 0], [2, 4]])
    found = nearest_distances(
        np.array([[0, 0], [0, 1], [2, 3], [1, 4]]), synthetic, is_range=[False, True], widths=[3, 5]
    )
    assert found == pytest.approx([0.0, 0.125, 0.125, 0.5])
