"""Trees of columns, and what they say of pairs that were not measured."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from workers.methods.marginals.choose.column_trees import neighbours_in, strongest_tree, walk
from workers.methods.marginals.estimate.implied_pairs import implied_pairs


def test_the_tree_is_the_forest_of_most_weight() -> None:
    weights = {(0, 1): 5.0, (0, 2): 4.0, (1, 2): 4.5, (2, 3): 1.0, (4, 5): 0.5}
    assert strongest_tree(weights) == [(0, 1), (1, 2), (2, 3), (4, 5)]
    assert strongest_tree({}) == []


def test_a_walk_comes_to_every_column_of_the_tree_from_the_one_it_hangs_on() -> None:
    neighbours = neighbours_in([(0, 3), (1, 3), (1, 2), (5, 6)])
    assert set(walk(neighbours, 0)) == {(0, 3), (3, 1), (1, 2)}
    seen = {2}
    for before, column in walk(neighbours, 2):
        assert before in seen
        seen.add(column)
    assert list(walk(neighbours, 4)) == []


def chain(rows: tuple[float, ...], order: tuple[int, ...], widths: tuple[int, ...]) -> np.ndarray:
    """(slices, widths...) counts in which each column of `order` depends on the one before it alone, in each slice in its own way."""
    slices = []
    for seed, total in enumerate(rows):
        rng = np.random.default_rng(seed)
        joint = rng.dirichlet(np.full(widths[order[0]], 2.0))
        for before, column in pairwise(order):
            joint = joint[..., None] * rng.dirichlet(np.full(widths[column], 0.5), size=widths[before])
        slices.append(total * joint.transpose(np.argsort(order)))
    return np.stack(slices)


def margins(counts: np.ndarray, *columns: int) -> np.ndarray:
    others = tuple(axis + 1 for axis in range(counts.ndim - 1) if axis not in columns)
    summed: np.ndarray = counts.sum(axis=others)
    return summed


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1), (3, 1, 0, 2)])
def test_pairs_along_a_chain_are_exact_in_every_slice(order: tuple[int, ...]) -> None:
    counts = chain((900.0, 80.0), order, (3, 4, 2, 5))
    links = [(min(pair), max(pair)) for pair in pairwise(order)]
    found = implied_pairs({pair: margins(counts, *pair) for pair in links}, {c: margins(counts, c) for c in range(4)})
    assert set(found) == {(i, j) for i in range(4) for j in range(i + 1, 4)} - set(links)
    for pair, implied in found.items():
        np.testing.assert_allclose(implied, margins(counts, *pair), rtol=1e-3, atol=1e-3)


def test_a_weak_pair_beside_the_tree_is_not_on_any_path() -> None:
    """(0, 2) is measured too, and says less than what leads through 1; it is not asked for, and (0, 3) goes by the tree."""
    counts = chain((5_000.0,), (0, 1, 2, 3), (3, 3, 3, 3))
    links = [(0, 1), (1, 2), (2, 3), (0, 2)]
    found = implied_pairs({pair: margins(counts, *pair) for pair in links}, {c: margins(counts, c) for c in range(4)})
    assert set(found) == {(0, 3), (1, 3)}
    np.testing.assert_allclose(found[0, 3], margins(counts, 0, 3), rtol=1e-3)


def test_what_no_path_joins_is_independent_and_all_keep_their_single_columns() -> None:
    counts = chain((700.0, 0.0), (0, 1, 2), (3, 2, 4))
    noised = {pair: margins(counts, *pair) - 3.0 for pair in ((0, 1),)}  # not positive in the slice without rows
    one_way = {column: margins(counts, column) for column in range(3)}
    found = implied_pairs(noised, one_way)
    assert set(found) == {(0, 2), (1, 2)}
    for (i, j), implied in found.items():
        independent = np.outer(one_way[i][0], one_way[j][0]) / 700.0
        np.testing.assert_allclose(implied[0], independent, rtol=1e-9)
        assert not implied[1].any()
    raked = implied_pairs({(0, 1): margins(counts, 0, 1) + 5.0, (1, 2): margins(counts, 1, 2) + 5.0}, one_way)[0, 2]
    np.testing.assert_allclose(raked.sum(axis=1)[0], one_way[2][0], rtol=1e-6)
    assert np.isfinite(raked).all()
