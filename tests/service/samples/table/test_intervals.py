"""What intervals mean in a range: the same as by going through every bin for each of them, and as little work as they are few."""

import numpy as np
import pytest

from service.samples.table.intervals import intervals_of
from service.samples.table.ranges import GridColumn
from service.samples.table.selections import RangeSelection

HALVINGS = 54
"""Of the steps in a bin, of which there are 2**53 at most."""
WHOLE = {"type": "integer", "missing": True, "edges": [0.0, 3.0, 3.5, 3.7, 10.0, 40.0, 41.0]}
COLUMNS = {
    "integers": WHOLE,
    "required": WHOLE | {"missing": False},
    "integers with a step": WHOLE | {"step": 5},
    "shared integers": WHOLE | {"shared_values": [[1.0, 0.25], [2.0, 0.5], [40.0, 1.0], [7.0, 0.0]][:3]},
    "numbers": {"type": "number", "missing": True, "edges": [-2.0, -0.5, 0.0, 1e-13, 0.3, 7.0]},
    "shared numbers": {
        "type": "number",
        "missing": False,
        "edges": [-2.0, -0.5, 0.0, 1e-13, 0.3, 7.0],
        "shared_values": [[-1.0, 0.125], [0.0, 1.0], [0.25, 0.3], [6.5, 0.6]],
    },
    "decimals": {"type": "number", "missing": True, "decimals": 1, "edges": [0.0, 0.05, 0.07, 0.5, 0.55, 3.0]},
    "few decimals": {"type": "number", "missing": True, "decimals": 0, "edges": [-1.5, -0.2, 0.3, 0.6, 0.9, 4.0]},
    "large numbers": {"type": "number", "missing": True, "decimals": 2, "edges": [-(2.0**53), -1e15, 0.0, 0.011, 1e15]},
    "dates": {"type": "date", "missing": True, "edges": [19000.0, 19010.0, 19010.5, 19400.0]},
    "times": {"type": "datetime", "missing": True, "step": 60, "edges": [1.6e9, 1.6e9 + 90, 1.6e9 + 7200, 1.7e9]},
}


def column_of(config):
    size = len(config["edges"]) - 1 + config["missing"]
    return GridColumn({"name": "a", "size": size} | config, "")


def steps_below(column, low):
    """(bins,) in as many passes over all bins as a step has bits."""
    bins = np.arange(len(column.steps))
    fewest, most = np.zeros(len(bins)), column.steps.astype(np.float64).copy()
    for _ in range(HALVINGS):
        middle = fewest + np.floor((most - fewest) / 2)
        is_below = (column.number_at(bins, middle) < low) & (middle < most)
        fewest, most = np.where(is_below, middle + 1, fewest), np.where(is_below, most, middle)
    return fewest


class Plain:
    """A selection that goes through all bins, and all rows, for each interval."""

    def __init__(self, column, ends, missing):
        self.column, self.ends, self.missing = column, ends, missing
        shape = len(ends), len(column.steps)
        self.firsts = np.array([steps_below(column, low) for low, _ in ends]).reshape(shape)
        past = np.array([steps_below(column, np.nextafter(high, np.inf)) for _, high in ends]).reshape(shape)
        self.counts = past - self.firsts
        self.of_bin = np.zeros(len(column.steps))
        if column.shared is not None:
            meant = self.holds(np.ma.asarray(column.shared.values))
            self.of_bin = np.bincount(column.shared.cells, column.shared.shares * meant, minlength=len(column.steps))

    def holds(self, drawn):
        numbers = np.ma.getdata(drawn)
        found = np.zeros(len(numbers), dtype=bool)
        for low, high in self.ends:
            found |= (numbers >= low) & (numbers <= high)
        return np.where(np.ma.getmaskarray(drawn), self.missing, found)

    def chances(self):
        parts = self.counts.sum(axis=0) / self.column.steps
        if self.column.shared is not None:
            parts = parts * (1.0 - self.column.shared.all_of_cell) + self.of_bin
        return np.array([*parts, self.missing] if self.column.missing else parts, dtype=np.float64)

    def steps(self, bins, rest):
        """Of the steps of one interval after the other, those at these parts of all of them."""
        before = np.concatenate([np.zeros((1, len(self.column.steps))), np.cumsum(self.counts, axis=0)])[:, bins]
        numbered = np.minimum(np.floor(rest * before[-1]), before[-1] - 1)
        which = np.clip((before[1:] <= numbered).sum(axis=0), 0, len(self.ends) - 1)
        return np.maximum(self.firsts[which, bins] + numbered - before[which, np.arange(len(bins))], 0.0)


def some_ends(column, rng, count):
    """Disjoint intervals whose ends are values, edges, and numbers near them; many of a single number."""
    span = column.edges[-1] - column.edges[0]
    some = rng.uniform(column.edges[0] - span / 10, column.edges[-1] + span / 10, 2 * count)
    bins = rng.integers(len(column.steps), size=2 * count)
    values = column.number_at(bins, np.floor(rng.random(2 * count) * column.steps[bins]))
    shared = column.edges if column.shared is None else column.shared.values
    near = rng.choice(np.concatenate([column.edges, shared]), 2 * count)
    numbers = np.unique(np.concatenate([some, values, near, np.nextafter(values, np.inf), np.nextafter(near, -np.inf)]))
    numbers = np.sort(rng.choice(numbers, min(len(numbers), 2 * count), replace=False)).tolist()
    if rng.random() < 0.3:
        return [(number, number) for number in numbers]
    if rng.random() < 0.2:
        numbers = [-np.inf, *numbers[1:-1], np.inf]
    return list(zip(numbers[::2], numbers[1::2], strict=False))


@pytest.mark.parametrize("name", COLUMNS)
def test_they_mean_what_each_of_them_means_in_each_bin(name):
    rng, column = np.random.default_rng(len(name)), column_of(COLUMNS[name])
    for _ in range(25):
        ends, others = (some_ends(column, rng, int(rng.integers(1, 9))) for _ in range(2))
        missing = bool(rng.integers(2)) and column.missing
        plain, found = Plain(column, ends, missing), RangeSelection(column, intervals_of(ends), missing=missing)
        assert found.chances.tolist() == plain.chances().tolist()
        codes = np.flatnonzero(found.chances[: len(column.steps)])
        drawn = column.fill(rng.integers(column.size, size=200), rng)
        edges = np.ma.asarray(np.array([*np.array(ends).flat, *column.edges]))
        assert found.holds(drawn).tolist() == plain.holds(drawn).tolist()
        assert found.holds(edges).tolist() == plain.holds(edges).tolist()
        every = [RangeSelection(column, intervals_of([each]), missing=False).chances.any() for each in ends]
        assert found.are_drawn.tolist() == every
        both = found.both(RangeSelection(column, intervals_of(others), missing=True))
        pairs = sorted((max(a, c), min(b, d)) for a, b in ends for c, d in others if max(a, c) <= min(b, d))
        assert [*zip(both.intervals.lows, both.intervals.highs, strict=True)] == pairs
        if len(codes):
            asked = rng.choice(codes, 200)
            of_steps = found._steps
            rest = np.concatenate([rng.random(190), np.zeros(5), np.full(5, 1 - 2.0**-53)])
            asked, rest = asked[of_steps.totals[asked] > 0], rest[of_steps.totals[asked] > 0]
            numbered = np.minimum(np.floor(rest * of_steps.totals[asked]), of_steps.totals[asked] - 1)
            assert of_steps.at(asked, numbered).tolist() == plain.steps(asked, rest).tolist()
            assert found.holds(found.fill(rng.choice(codes, 100), rng)).all()


def test_a_thousand_of_them_take_no_more_passes_over_a_thousand_bins_than_one(monkeypatch):
    column = column_of({"type": "integer", "missing": True, "edges": np.linspace(0, 2**20, 1_025).tolist()})
    looked_at = []
    real = GridColumn.number_at

    def number_at(self, cells, steps):
        looked_at.append(len(cells))
        return real(self, cells, steps)

    monkeypatch.setattr(GridColumn, "number_at", number_at)
    found = {}
    for count in (1, 1_000):
        looked_at.clear()
        selection = RangeSelection(
            column, intervals_of([(7.0 * n + 1, 7.0 * n + 4) for n in range(count)]), missing=False
        )
        selection.chances.any()
        selection.fill(np.zeros(50, dtype=np.int64), np.random.default_rng(0))
        found[count] = len(looked_at), sum(looked_at)
    assert found[1_000][0] <= found[1][0]
    assert found[1_000][1] < 4 * HALVINGS * 1_000 + 4 * 1_024  # two ends each: not one of each bin
