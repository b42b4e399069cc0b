"""What a condition and weights cost, counted: a reader's address of four thousand characters held a thread for minutes."""

import difflib
import json
import random
from collections import deque

import numpy as np
import pytest
from tiny_generators import tiny_sampler
from tiny_mixtures import tiny_mixture

from service.samples.table import conditional, weighting
from service.samples.table.base import SamplingError
from service.samples.table.condition_texts import COMPARED, LISTED, MISSING, ColumnNames
from service.samples.table.conditions import Conditions
from service.samples.table.intervals import StepsMeant
from service.samples.table.network import Network
from service.samples.table.weighting import strata_of
from service.samples.table.written import modelled_columns

FLAGS = [
    {"name": f"flag {n}", "type": "string", "constraints": {"enum": ["x", "y"], "required": True}} for n in range(4)
]
TABLE = {
    "fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 1_000}}, *FLAGS],
    "exclusions": [{"age": {"minimum": 0, "maximum": 9}, "flag 0": ["y"]}],
}
LIST = "age in [" + ",".join(map(str, range(100, 300))) + "]"
UNIFORM = {f"flag {n}": "uniform" for n in range(4)}
LARGE = [
    {"name": "kind", "type": "string", "size": 3_000, "values": [f"kind number {n}" for n in range(3_000)]},
    {"name": "age", "type": "integer", "size": 33, "edges": np.linspace(0, 999, 33).tolist(), "missing": True},
]


@pytest.fixture(scope="module")
def sampler():
    return tiny_mixture(TABLE, components=16)


@pytest.fixture(scope="module")
def large():
    columns = modelled_columns({"missing_value": "", "columns": LARGE})
    return Conditions(columns), columns


@pytest.fixture
def work(monkeypatch):
    """Components that the network was asked for, and selections whose steps were counted."""
    found = {"components": 0, "selections": 0}
    logits, init = Network.logits, StepsMeant.__init__

    def asked(self, noise, condition):
        found["components"] += len(noise)
        return logits(self, noise, condition)

    def counted(self, column, intervals):
        found["selections"] += 1
        init(self, column, intervals)

    monkeypatch.setattr(Network, "logits", asked)
    monkeypatch.setattr(StepsMeant, "__init__", counted)
    return found


def test_strata_share_what_they_have_in_common(sampler, work):
    found = []
    for weights in ({"flag 0": "uniform"}, UNIFORM):
        work.update(components=0, selections=0)
        sampler.draws(10, seed=0, where=LIST, weights=weights)
        found.append(dict(work))
    assert found[0] == found[1]  # of 2 strata and of 16
    assert found[1]["components"] == 16
    rows = [
        row
        for chunk in sampler.chunks(64, seed=0, where=LIST, weights=UNIFORM)
        for row in zip(*chunk.values(), strict=True)
    ]
    assert all(100 <= row[0] < 300 for row in rows)
    assert {row[1:] for row in rows} == {(a, b, c, d) for a in "xy" for b in "xy" for c in "xy" for d in "xy"}


def test_a_long_list_is_looked_at_once(work, large):
    reader, _ = large
    for count in (2, 900):
        work["selections"] = 0
        reader.selections([f"age in [{','.join(map(str, range(count)))}]"])
        assert work["selections"] <= 2


def test_words_on_a_mistake_are_looked_for_once(large, monkeypatch):
    reader, _ = large
    looked = []
    close = difflib.get_close_matches
    monkeypatch.setattr(difflib, "get_close_matches", lambda *a, **o: looked.append(len(a[1])) or close(*a, **o))
    reader.selections(["kind=kind number 7&age>3"] * 20)
    reader.selections({"kind": {"in": [f" kind number {n} " for n in range(50)]}})
    assert looked == []
    with pytest.raises(SamplingError, match="did you mean"):
        reader.selections("kind=kind numbr 7&a&b&c&d")
    assert len(looked) == 1
    assert looked[0] <= 2_000


@pytest.mark.parametrize(
    ("where", "weights", "words"),
    [
        (["age>1"] * 1_025, None, "1025 conditions at once; 1024"),
        ("age>1" + "&age>1" * 256, None, "257 conditions at once; 256"),
        ({"age": {"in": list(range(10_001))}}, None, "age: 10001 values in one list; 10000"),
        (None, {"kind": "uniform"}, "more than 256 combinations"),
        (None, {"kind": {f"kind number {n}": 1 for n in range(100)}}, "100 values have a weight, and it has 3000 bins"),
        (
            "age not in [" + ",".join(map(str, range(950))) + "]",
            {"age": {f">{n}": 1 for n in range(200)}},
            "age: 200 val",
        ),
        (None, {"age": {f">{n}" + "&age>1" * 200: 1 for n in range(6)}}, "1206 conditions at once; 1024"),
    ],
)
def test_what_would_take_long_is_refused_before_it_is_begun(large, work, where, weights, words):
    reader, columns = large
    wanted = reader.selections(where) if weights else {}
    work["selections"] = 0
    with pytest.raises(SamplingError, match=words):
        strata_of(reader, columns, weights, wanted) if weights else reader.selections(where)
    assert work["selections"] == 0


def test_what_strata_multiply_is_refused(sampler, monkeypatch):
    monkeypatch.setattr(weighting, "MOST_WANTED", 31)
    with pytest.raises(
        SamplingError, match="16 combinations of values, and conditions on 2 columns: their product may be 31"
    ):
        sampler.draws(1, where="age>30&age<900&flag 0=x", weights={**UNIFORM, "age": {"<500": 1, ">=500": 1}})
    monkeypatch.setattr(conditional, "MOST_CHANCES", 16 * 15)
    with pytest.raises(
        SamplingError, match="ask 16 times for the 16 components of this generator; 15 times are the most"
    ):
        sampler.draws(1, where="age>30", weights=UNIFORM)
    assert list(sampler.draws(1, where="age>30"))  # without weights nothing is multiplied


def test_ranges_are_compared_a_bounded_number_of_times(sampler, monkeypatch):
    monkeypatch.setattr("service.samples.table.sampler.MOST_PAIRS", 5)
    with pytest.raises(SamplingError, match="pairs of ranges"):
        sampler.draws(1, weights={"age": {f">{n}": 1 for n in range(8)}})


def plain_readings(names, text):
    """By going through all names."""
    by_colon, others, start = [], [], text.lstrip()
    for place, name in sorted(enumerate(names), key=lambda each: -len(each[1])):
        for own in (name, json.dumps(name, ensure_ascii=False)):
            rest = start[len(own) :]
            if not start.startswith(own):
                continue
            if match := MISSING.fullmatch(rest):
                others.append((place, "not missing" if match[1] else "missing"))
            elif match := LISTED.fullmatch(rest):
                others.append((place, "not in" if match[1] else "in"))
            elif match := COMPARED.fullmatch(rest):
                (by_colon.insert(0, (place, "=")) if match[1] is None else others.append((place, match[1])))
    return by_colon + others


def test_names_are_found_as_by_going_through_all_of_them():
    rng = random.Random(5)
    for _ in range(300):
        names = list({"".join(rng.choice('ab:="') for _ in range(rng.randint(1, 5))) for _ in range(12)})
        text = rng.choice(names) if rng.random() < 0.5 else json.dumps(rng.choice(names))
        text = (
            rng.choice(["", " "]) + text + rng.choice([":a", "=b", ">=1", " in [1]", " missing", " not missing", "b:a"])
        )
        found = [(each.place, each.operator) for each in ColumnNames(names).readings(text)]
        assert found == plain_readings(names, text)


def begun_ahead(draw, parts):
    """As threads do: more parts are begun than have come back."""
    begun = deque()
    for part in parts:
        begun.append(part)
        if len(begun) > 4:
            yield draw(begun.popleft())
    yield from map(draw, begun)


def test_what_is_too_rare_does_not_depend_on_how_many_threads_draw(monkeypatch):
    network, outcomes = tiny_sampler(TABLE), set()
    for limit in range(12, 24):
        monkeypatch.setattr("service.samples.table.sampler.MOST_WEIGHTED_CELLS", 1 << limit)
        found = []
        for each in (map, begun_ahead):
            try:
                drawn = list(network.draws(5_000, seed=0, weights={"age": {"<10": 1, ">=10": 1}}, each=each))
            except SamplingError:
                drawn = []
            found.append([column.tolist() for columns in drawn for column in columns])
        assert found[0] == found[1]
        outcomes.add(bool(found[0]))
    assert outcomes == {True, False}


def test_a_network_does_not_draw_for_ever_for_rare_values(monkeypatch):
    network = tiny_sampler(TABLE)
    weights = {"age": {"<10": 1, ">=10": 1}}
    few = list(network.draws(20, seed=0, weights=weights))
    monkeypatch.setattr("service.samples.table.sampler.MOST_WEIGHTED_CELLS", 1 << 14)
    with pytest.raises(SamplingError, match="so rare that too many rows would be drawn"):
        list(network.draws(5_000, seed=0, weights=weights))
    monkeypatch.setattr("service.samples.table.sampler.MOST_WEIGHTED_CELLS", 1 << 22)
    again = list(network.draws(20, seed=0, weights=weights))
    assert [column.tolist() for column in again[0]] == [column.tolist() for column in few[0]]
    monkeypatch.undo()
    blocks = list(network.draws(9_000, seed=0, weights=UNIFORM))  # dealt in blocks, of which several chunks are drawn
    assert sum(len(columns[0]) for columns in blocks) == 9_000
