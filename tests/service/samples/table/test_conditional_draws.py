"""Rows drawn under a condition are as those of an unconditional sample that meet it, and rare ones come as fast."""

import time

import numpy as np
import pytest
from scipy import stats
from tiny_generators import tiny_sampler
from tiny_mixtures import tiny_mixture

from service.samples.table.base import SamplingError
from service.samples.table.conditional import ConditionalRows
from service.samples.table.selections import Pairs

TABLE = {
    "fields": [
        {"name": "class", "type": "string", "constraints": {"enum": ["a", "b", "c"], "required": True}},
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"]}},
        {"name": "size", "type": "integer", "constraints": {"enum": [1, 2, 3, 4], "required": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 30}},
        {"name": "rate", "type": "number", "constraints": {"minimum": -1, "maximum": 1, "required": True}},
    ]
}
FREQUENCIES = [0.6, 0.3, 0.1]
SHARED = {"age": [[4, 0.25], [5, 0.5], [22, 0.9]], "rate": [[0.0, 0.3]]}
EXCLUSIONS = [
    {"class": ["a"], "size": [3, 4]},
    {"colour": ["red"], "age": {"minimum": 0, "maximum": 9}},
    {"colour": ["blue", None], "size": [1]},
]
CONDITIONS = [
    "age>=7&age<=18&colour in [red, blue]",
    "rate<0.05&class!=a",
    "age missing&size>2",
    "age=5",
    "age in [4, 5, 11]&rate=0",
    "colour not missing&age!=5&rate>-0.61",
    "size=1&age<12",
    "class=a&size<=2",
]


def source_of(sampler, where):
    wanted = sampler._conditions.selections(where)
    return sampler._requests(1, np.random.SeedSequence(0), [wanted], Pairs())[0].source


def rows_of(sampler, rows, **options):
    return [row for chunk in sampler.chunks(rows, **options) for row in zip(*chunk.values(), strict=True)]


def coarse(row):
    """Of a row, what a table of frequencies can hold."""
    kind, colour, size, age, rate = row
    return kind, colour, size, None if age is None else (age == 5, age // 8), round(rate)


def meets(row, text):
    """The same conditions, read by Python."""
    of = dict(zip(("class", "colour", "size", "age", "rate"), row, strict=True))

    def one(part):
        name, *rest = part.split(" ")
        if rest in (["missing"], ["not", "missing"]):
            return (of[name] is None) == (rest == ["missing"])
        if rest[:1] == ["in"]:
            return str(of[name]) in "".join(rest[1:]).strip("[]").split(",")
        for sign in (">=", "<=", "!=", "=", "<", ">"):
            name, found, value = part.partition(sign)
            if found:
                break
        if of[name] is None:
            return False
        if isinstance(of[name], str):
            return (of[name] == value) == (sign == "=")
        signs = {
            ">=": np.greater_equal,
            "<=": np.less_equal,
            "!=": np.not_equal,
            "=": np.equal,
            "<": np.less,
            ">": np.greater,
        }
        return bool(signs[sign](of[name], float(value)))

    return all(map(one, text.split("&")))


def same_distribution(ones, others):
    """χ² of two samples, over what both say often enough."""
    kinds = sorted({*ones, *others}, key=repr)
    table = np.array([[sample.count(kind) for kind in kinds] for sample in (ones, others)], dtype=float)
    rare = table.sum(axis=0) < 12
    table = np.concatenate([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)], axis=1)
    table = table[:, table.sum(axis=0) > 0]
    assert table.shape[1] > 1
    assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.fixture(scope="module", params=["plain", "excluded"])
def sampler(request):
    schema = TABLE if request.param == "plain" else TABLE | {"exclusions": EXCLUSIONS}
    return tiny_mixture(schema, frequencies=FREQUENCIES, shared=SHARED, spread=0.8)


@pytest.fixture(scope="module")
def unconditional(sampler):
    return rows_of(sampler, 150_000, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("where", CONDITIONS)
def test_rows_are_those_of_a_sample_that_meet_the_condition(sampler, unconditional, where):
    expected = [coarse(row) for row in unconditional if meets(row, where)]
    drawn = rows_of(sampler, 8_000, seed=2, where=where)
    assert len(drawn) == 8_000
    assert all(meets(row, where) for row in drawn)
    same_distribution([coarse(row) for row in drawn], expected)


def test_a_rare_condition_is_drawn_without_waiting_for_it(monkeypatch, record_property):
    """Of 500 rows that one in a hundred thousand meets, 500 are drawn, in about the time of an unconditional draw."""
    wide = {
        "fields": [
            {"name": f"x{number}", "type": "string", "constraints": {"enum": [f"v{value}" for value in range(20)]}}
            for number in range(12)
        ]
    }
    sampler = tiny_mixture(wide, components=512)
    where = "x0=v3&x1 in [v1]&x2=v2&x3!=v0&x4 in [v5, v6]&x5 not missing"
    drawn, draw = [], ConditionalRows.draw

    def counted(self, rows, rng):
        drawn.append(rows)
        return draw(self, rows, rng)

    monkeypatch.setattr(ConditionalRows, "draw", counted)
    seconds = []
    for condition in (None, where):
        began = time.perf_counter()
        rows = rows_of(sampler, 500, seed=0, where=condition)
        seconds.append(time.perf_counter() - began)
    assert {(row[0], row[1], row[2]) for row in rows} == {("v3", "v1", "v2")}
    assert sum(drawn) == 500
    source = source_of(sampler, where)
    record_property("times of an unconditional draw", seconds[1] / seconds[0])  # machines differ: no bound here
    assert source.log_chance < np.log(1e-4)


def test_the_chance_of_a_condition_is_known(sampler, unconditional):
    where = "age>=7&age<=18&rate<0.05"
    source = source_of(sampler, where)
    if not sampler._exclusions.selections:
        met = sum(meets(row, where) for row in unconditional) / len(unconditional)
        assert np.exp(source.log_chance) == pytest.approx(met, rel=0.03)


def test_a_seed_repeats(sampler):
    for options in ({"where": "age>3"}, {"weights": {"colour": "uniform"}}):
        assert rows_of(sampler, 3_000, seed=4, **options) == rows_of(sampler, 3_000, seed=4, **options)
        assert rows_of(sampler, 3_000, seed=4, **options) != rows_of(sampler, 3_000, seed=5, **options)


def test_a_condition_that_the_schema_excludes_is_refused_at_once():
    sampler = tiny_mixture(TABLE | {"exclusions": EXCLUSIONS}, frequencies=FREQUENCIES)
    for where in ("class=a&size>=3", "colour=red&age<=9", {"colour": None, "size": 1}):
        with pytest.raises(
            SamplingError, match=r"excludes every such row.*of (class and size|colour and age|colour and size)"
        ):
            sampler.draws(1, where=where)


def test_a_network_is_asked_for_enough_rows_before_the_first_is_given():
    """About one in 15,000 meets the condition: some come early, but the sample is refused as a whole."""
    bias = np.zeros(35)
    bias[3] = -np.log(5_000)
    schema = {
        "fields": [
            {"name": "class", "type": "integer", "constraints": {"enum": [0, 1, 2], "required": True}},
            {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"]}},
        ]
    }
    sampler = tiny_sampler(schema, bias=bias[:7], noise_scale=0.0)
    with pytest.raises(SamplingError, match="fewer than 1 in 10,000"):
        next(sampler.draws(1_000, seed=0, where="colour=red"))
    assert len(next(sampler.draws(1_000, seed=0, where="colour=blue"))[0]) > 0


def test_weights_say_how_often_values_come_and_change_nothing_else(sampler, unconditional):
    rows = rows_of(sampler, 9_000, seed=3, weights={"colour": {"red": 1, "blue": 2}, "class": "uniform"})
    counts = {
        (kind, colour): sum(row[:2] == (kind, colour) for row in rows) for kind in "abc" for colour in ("red", "blue")
    }
    assert sum(counts.values()) == 9_000
    assert all(abs(count - (1_000 if key[1] == "red" else 2_000)) <= 1 for key, count in counts.items())
    of_first = [row[:2] for row in rows[:900]]  # the first rows are any rows
    assert abs(of_first.count(("a", "blue")) - 200) < 70
    for kind, colour in (("b", "red"), ("a", "blue")):
        own, others = ([coarse(r) for r in sample if r[:2] == (kind, colour)] for sample in (rows, unconditional))
        same_distribution(own, others)


def test_weights_of_parts_of_a_range_under_a_condition(sampler):
    rows = rows_of(sampler, 1_000, seed=3, where="size=2", weights={"age": {"<10": 0.1, ">=10": 0.4, "missing": 0.5}})
    assert {row[2] for row in rows} == {2}
    ages = [row[3] for row in rows]
    assert (ages.count(None), sum(age is not None and age < 10 for age in ages)) == (500, 100)


def test_weights_of_a_network():
    sampler = tiny_sampler(TABLE, condition="class", frequencies=FREQUENCIES)
    rows = rows_of(sampler, 1_000, seed=0, weights={"class": "uniform", "size": {"1": 1, "2": 1}})
    assert {row[2] for row in rows} == {1, 2}
    assert all(abs(sum(row[0] == kind for row in rows) - 333) <= 2 for kind in "abc")


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"colur": "uniform"}, "did you mean 'colour'"),
        ({"colour": {"rad": 1}}, "did you mean 'red'"),
        ({"colour": {"red": -1}}, "not a number from 0"),
        ({"colour": {"red": 0}}, "must be more than 0"),
        ({"colour": {}}, "must be more than 0"),
        ({"colour": "even"}, '"uniform" or a weight'),
        ({"age": "uniform"}, "is a range"),
        ({"class": {"a": 1, "b": 1}}, "does not meet the condition"),
        ("uniform", "weights: give"),
    ],
)
def test_wrong_weights_say_why(weights, words):
    with pytest.raises(SamplingError, match=words):
        tiny_mixture(TABLE, frequencies=FREQUENCIES).draws(10, weights=weights, where="class=a")
