"""Columns joined to a tree by their strongest pairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from workers.mechanism.marginals import Columns


def strongest_tree(weights: Mapping[Columns, float]) -> list[Columns]:
    """The pairs of the forest of most weight, strongest first.

    Source: Kruskal 1956; with mutual information as weights, the best approximation of a distribution by a tree (Chow and Liu 1968).
    """
    tree_of = {column: column for pair in weights for column in pair}
    taken: list[Columns] = []
    for i, j in sorted(weights, key=weights.__getitem__, reverse=True):
        one, other = tree_of[i], tree_of[j]
        if one != other:
            tree_of = {column: one if tree == other else tree for column, tree in tree_of.items()}
            taken.append((i, j))
    return taken


def neighbours_in(tree: Sequence[Columns]) -> dict[int, list[int]]:
    """The columns that each has a pair with."""
    neighbours: dict[int, list[int]] = {column: [] for pair in tree for column in pair}
    for i, j in tree:
        neighbours[i].append(j)
        neighbours[j].append(i)
    return neighbours


def walk(neighbours: Mapping[int, Sequence[int]], start: int) -> Iterator[tuple[int, int]]:
    """(the column before it, column) of every other column in the tree of `start`; no column comes before the one it hangs on."""
    ahead = [(start, column) for column in neighbours.get(start, ())]
    for before, column in ahead:  # grows as it is walked
        yield before, column
        ahead += [(column, further) for further in neighbours[column] if further != before]
