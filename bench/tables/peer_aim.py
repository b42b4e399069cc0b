"""AIM (McKenna et al. 2022) on PyPI's mbi, in its own environment (see peers.py): `python peer_aim.py REQUEST.json`.

The workload is all pairs. Neighbours are as ours: one row is there or not, and how many there are is public. `aim` is charged in
zero-concentrated DP, as in the paper, `aim-gdp` in Gaussian DP. mbi's mirror descent estimates each model, beginning at the one before;
its pairs are summed in NumPy, since JAX would compile the sums of every model anew.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import combinations
from pathlib import Path
from typing import Any

os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import mbi
import networkx as nx
import numpy as np
from aim_accounting import Accountant, GaussianDp, ZeroConcentrated  # beside this script
from mbi.estimation import MirrorDescent
from mbi.junction_tree import hypothetical_model_size, make_junction_tree
from scipy.special import logsumexp

Clique = tuple[str, ...]
Table = np.ndarray[Any, np.dtype[np.float64]]

MEGABYTES = 80.0
SHARE_MEASURED = 0.9
"""Of the budget; the rest selects."""
ROUNDS_PER_COLUMN = 16
STEPS, SMALLEST_GAIN = 1_000, 1e-4
"""Of mirror descent: at most, and the part of its loss that fifty steps must gain, or it ends."""
RARE = 3.0
"""Cells with a noisy count below so many standard deviations are one cell of their column, as in MST (McKenna et al. 2021)."""
OF_ABSOLUTE_NOISE = np.sqrt(2.0 / np.pi)
"""Mean of |noise|, in standard deviations."""


class Marginals:
    """Expected counts of single columns and of all pairs under a model, by its junction tree."""

    def __init__(self, model: mbi.MarkovRandomField, rows: float) -> None:
        self._tree = make_junction_tree(model.domain, [tuple(clique) for clique in model.cliques])[0]
        self._beliefs = _beliefs(model, self._tree)
        names: Clique = tuple(model.domain.attributes)
        homes = {name: clique for clique in self._beliefs for name in clique}
        single = {name: _summed(self._beliefs[homes[name]], homes[name], (name,)) for name in names}
        self.counts: dict[Clique, Table] = {(name,): rows * single[name] for name in names}
        for place, name in enumerate(names):
            with_others = self._with_others(name, homes[name])
            for other in names[place + 1 :]:  # in another part of the tree: independent
                pair = with_others[other] if other in with_others else np.outer(single[name], single[other])
                self.counts[name, other] = rows * pair

    def _with_others(self, name: str, home: Clique) -> dict[str, Table]:
        """Chances of a column with each other one of its part of the tree: out from its clique, from separator to separator."""
        found: dict[str, Table] = {}
        walk: list[tuple[Clique, Clique, Table | None]] = [(home, (), None)]
        while walk:
            clique, before, given = walk.pop()
            for other in clique:
                if other != name and other not in found:
                    found[other] = self._joint(name, (other,), clique, before, given)
            for neighbour in self._tree.neighbors(clique):
                if neighbour == before:
                    continue
                between, passed = _shared(neighbour, clique), None
                if name not in neighbour:
                    joint, of = (
                        self._joint(name, between, clique, before, given),
                        _summed(self._beliefs[clique], clique, between),
                    )
                    passed = np.divide(joint, of, out=np.zeros_like(joint), where=of > 0.0)
                walk.append((neighbour, clique, passed))
        return found

    def _joint(self, name: str, others: Clique, clique: Clique, before: Clique, given: Table | None) -> Table:
        """Of a column and others of a clique. given: of the column, given what the clique shares with the one before; None: it is in the clique."""
        if given is None:
            return _summed(self._beliefs[clique], clique, (name, *others))
        shared = _shared(clique, before)
        wanted = tuple(dict.fromkeys((*shared, *others)))
        place = {each: number for number, each in enumerate((name, *wanted))}
        table = _summed(self._beliefs[clique], clique, wanted)
        numbers = [[place[each] for each in names] for names in ((name, *shared), wanted, (name, *others))]
        product: Table = np.einsum(given, numbers[0], table, numbers[1], numbers[2], optimize=True)
        return product


def _beliefs(model: mbi.MarkovRandomField, tree: nx.Graph) -> dict[Clique, Table]:
    """Chances within every clique of a tree: messages to a root and back."""
    logs = {clique: np.zeros([model.domain[name] for name in clique]) for clique in tree.nodes}
    for clique in model.cliques:
        factor = model.potentials[clique]
        names = tuple(factor.domain.attributes)
        home = next(each for each in logs if set(names) <= set(each))
        logs[home] = logs[home] + _spread(np.asarray(factor.values), names, home)
    for part in nx.connected_components(tree):
        edges = list(nx.dfs_edges(tree, next(iter(part))))
        sent = {}
        for parent, child in reversed(edges):
            sent[child] = _message(logs[child], child, parent)
            logs[parent] = logs[parent] + _spread(sent[child], _shared(child, parent), parent)
        for parent, child in edges:
            between = _shared(parent, child)
            back = _message(logs[parent], parent, child) - _spread(sent[child], _shared(child, parent), between)
            logs[child] = logs[child] + _spread(back, between, child)
    return {clique: np.exp(table - logsumexp(table)) for clique, table in logs.items()}


def _shared(clique: Clique, other: Clique) -> Clique:
    return tuple(name for name in clique if name in other)


def _message(table: Table, clique: Clique, towards: Clique) -> Table:
    gone = tuple(place for place, name in enumerate(clique) if name not in towards)
    return np.asarray(logsumexp(table, axis=gone)) if gone else table


def _spread(values: Table, names: Clique, clique: Clique) -> Table:
    """As a table that broadcasts over a clique."""
    order = sorted(range(len(names)), key=lambda place: clique.index(names[place]))
    shape = [values.shape[names.index(name)] if name in names else 1 for name in clique]
    return np.transpose(values, order).reshape(shape)


def _summed(table: Table, clique: Clique, names: Clique) -> Table:
    kept = table.sum(axis=tuple(place for place, name in enumerate(clique) if name not in names))
    left = [name for name in clique if name in names]
    return np.transpose(kept, [left.index(name) for name in names])


class Column:
    """A column whose rare cells are one cell, by its noisy counts."""

    def __init__(self, noisy: Table, deviation: float) -> None:
        rare = noisy < RARE * deviation
        self.place = np.where(rare, int((~rare).sum()), np.cumsum(~rare) - 1)
        """Of each cell, where it is counted."""
        self.width = int(self.place.max()) + 1
        self._noisy = np.maximum(noisy, 0.0)

    def cells(self, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Back to the cells, rare ones drawn by their noisy counts."""
        found = np.empty(len(places), dtype=np.int64)
        for place in range(self.width):
            cells, here = np.flatnonzero(self.place == place), places == place
            chances = self._noisy[cells] + 1e-9
            found[here] = rng.choice(cells, int(here.sum()), p=chances / chances.sum())
        return found


class Aim:
    """One run: what was measured so far, and the model of it."""

    def __init__(self, codes: np.ndarray, widths: list[int], accountant: Accountant, rng: np.random.Generator) -> None:
        self._accountant, self._rng, self._rows = accountant, rng, len(codes)
        self._each = accountant.total / (ROUNDS_PER_COLUMN * len(widths))
        deviation, self._spent = accountant.deviation(SHARE_MEASURED * self._each), 0.0
        singles = []
        for cells, width in zip(codes.T, widths, strict=True):
            counts = np.bincount(cells, minlength=width)
            singles.append(counts + deviation * rng.standard_normal(width))
            self._spent += accountant.measuring(deviation)
        self._columns = [Column(noisy, deviation) for noisy in singles]
        self._names = [f"c{place}" for place in range(len(widths))]
        self._domain = mbi.Domain(self._names, [column.width for column in self._columns])
        self._measured = [
            mbi.LinearMeasurement(noisy, (name,), stddev=deviation).compress(
                {name: column.place}, mbi.Domain([name], [len(noisy)])
            )
            for name, noisy, column in zip(self._names, singles, self._columns, strict=True)
        ]
        placed = [column.place[cells] for column, cells in zip(self._columns, codes.T, strict=True)]
        pairs = list(combinations(self._names, 2))
        cliques: list[Clique] = [*((name,) for name in self._names), *pairs]
        self._real = {clique: self._counted(placed, clique) for clique in cliques}
        self._weights = {clique: sum(len(set(clique) & set(pair)) for pair in pairs) for clique in cliques}
        self._model: mbi.MarkovRandomField | None = None

    def fit(self) -> None:
        accountant = self._accountant
        deviation = accountant.deviation(SHARE_MEASURED * self._each)
        epsilon = accountant.strength((1.0 - SHARE_MEASURED) * self._each)
        known, is_last = self._estimated(), False
        while not is_last:
            left = accountant.total - self._spent
            if left < 2.0 * (accountant.measuring(deviation) + accountant.selecting(epsilon)):
                is_last = True
                deviation = accountant.deviation(SHARE_MEASURED * left)
                epsilon = accountant.strength((1.0 - SHARE_MEASURED) * left)
            chosen = self._select(known, deviation, epsilon)
            self._measure(chosen, deviation)
            before, known = known, self._estimated()
            changed = np.abs(known[chosen] - before[chosen]).sum()
            if changed <= OF_ABSOLUTE_NOISE * deviation * self._real[chosen].size:
                deviation, epsilon = deviation / 2.0, 2.0 * epsilon

    def draw(self, rows: int) -> np.ndarray:
        assert self._model is not None
        made = self._model.synthetic_data(rows).to_dict()
        columns = zip(self._names, self._columns, strict=True)
        return np.stack([column.cells(made[name], self._rng) for name, column in columns], axis=1)

    def _measure(self, clique: Clique, deviation: float) -> None:
        noisy = self._real[clique] + deviation * self._rng.standard_normal(self._real[clique].shape)
        self._measured.append(mbi.LinearMeasurement(noisy.ravel(), clique, stddev=deviation))
        self._spent += self._accountant.measuring(deviation)

    def _select(self, known: dict[Clique, Table], deviation: float, epsilon: float) -> Clique:
        """By the exponential mechanism, of those that a model of allowed size can hold; the size grows with what is spent."""
        self._spent += self._accountant.selecting(epsilon)
        candidates = self._fitting(MEGABYTES * min(1.0, self._spent / self._accountant.total))
        scores = []
        for clique in candidates:
            error = np.abs(self._real[clique] - known[clique]).sum()
            scores.append(self._weights[clique] * (error - OF_ABSOLUTE_NOISE * deviation * self._real[clique].size))
        exponents = epsilon * np.array(scores) / (2.0 * max(self._weights.values()))
        return candidates[int(np.argmax(exponents + self._rng.gumbel(size=len(exponents))))]

    def _fitting(self, megabytes: float) -> list[Clique]:
        """What the model already has costs no room."""
        had = [] if self._model is None else [tuple(clique) for clique in self._model.cliques]
        held = [set(clique) for clique in make_junction_tree(self._domain, had)[0].nodes]
        return [
            clique
            for clique in self._real
            if any(set(clique) <= each for each in held)
            or hypothetical_model_size(self._domain, [*had, clique]) <= megabytes
        ]

    def _estimated(self) -> dict[Clique, Table]:
        self._model = MirrorDescent().estimate(
            self._domain,
            self._measured,
            known_total=float(self._rows),
            iters=STEPS,
            warm_start=None if self._model is None else self._model.potentials,
            tol=SMALLEST_GAIN,
        )
        return Marginals(self._model, self._rows).counts

    def _counted(self, codes: list[np.ndarray], clique: Clique) -> Table:
        shape = [self._domain[name] for name in clique]
        flat = np.ravel_multi_index([codes[self._names.index(name)] for name in clique], shape)
        return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def main() -> None:
    ask = json.loads(Path(sys.argv[1]).read_text())
    np.random.seed(ask["seed"])  # noqa: NPY002 - what mbi draws rows with
    accountant = {"aim": ZeroConcentrated, "aim-gdp": GaussianDp}[ask["method"]](ask["epsilon"], ask["delta"])
    aim = Aim(np.load(ask["codes"]), ask["widths"], accountant, np.random.default_rng(ask["seed"]))
    aim.fit()
    np.save(ask["reply"], aim.draw(ask["rows"]))


if __name__ == "__main__":
    main()
