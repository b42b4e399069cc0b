"""What the stand-alone sampler promises: the right distribution, repeatable, typed, and nothing but numpy and onnxruntime."""

import itertools
import json
import tracemalloc

import numpy as np
import pytest
from scipy import special, stats
from tiny_generators import (
    MIXED,
    NOISE_DIMENSION,
    domain_of,
    parse_csv,
    tiny_config,
    tiny_files,
    tiny_onnx,
    tiny_sampler,
)

import service.samples.table.dealing
from service.samples.table.base import SamplingError
from service.samples.table.blocks import CHUNKS_OF_A_BLOCK
from service.samples.table.dealing import even_thresholds
from service.samples.table.network import cells_reached, cumulative_weights
from service.samples.table.sampler import TableSampler

CLASSES = {
    "fields": [
        {"name": "class", "type": "integer", "constraints": {"enum": [0, 1, 2], "required": True}},
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green", "blue"]}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 30, "required": True}},
        {"name": "a:b", "type": "boolean", "constraints": {"required": True}},
    ]
}
FREQUENCIES = [0.6, 0.3, 0.1]


def conditional(**options):
    return tiny_sampler(CLASSES, condition="class", frequencies=FREQUENCIES, **options)


def column(sampler, name, rows, **options):
    return [v for chunk in sampler.chunks(rows, **options) for v in chunk[name]]


def rows_of(sampler, rows, **options):
    return [row for chunk in sampler.chunks(rows, **options) for row in zip(*chunk.values(), strict=True)]


def fits(values, support, probabilities):
    """χ² of counts against probabilities."""
    counts = np.array([values.count(value) for value in support])
    assert counts.sum() == len(values)
    assert stats.chisquare(counts, np.asarray(probabilities) * len(values)).pvalue > 1e-4


def test_a_seed_repeats_and_no_seed_does_not():
    sampler = tiny_sampler()
    assert rows_of(sampler, 500, seed=7) == rows_of(sampler, 500, seed=7)
    assert rows_of(sampler, 500, seed=7) != rows_of(sampler, 500, seed=8)
    assert rows_of(sampler, 500) != rows_of(sampler, 500)


def test_chunks_may_be_drawn_in_any_order():
    """As several threads draw them: all that a chunk needs is dealt before."""

    def backwards(draw, chunks):
        return reversed([draw(chunk) for chunk in reversed(list(chunks))])

    sampler = conditional()
    rows = 3 * sampler.rows_at_a_time * CHUNKS_OF_A_BLOCK // 2
    plain, turned = (list(sampler.draws(rows, seed=3, **options)) for options in ({}, {"each": backwards}))
    assert sum(len(chunk[0]) for chunk in plain) == rows
    assert all(
        np.array_equal(a, b) for one, other in zip(plain, turned, strict=True) for a, b in zip(one, other, strict=True)
    )


def test_the_global_random_state_is_left_alone():
    before = np.random.get_state()[1].tolist()  # noqa: NPY002 - the state in question
    rows_of(tiny_sampler(), 100, seed=1)
    rows_of(tiny_sampler(), 100)
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002 - the state in question


@pytest.fixture(params=["a mixture's noise", "a network's noise"])
def noise(request, monkeypatch):
    """Rows of a mixture share thresholds; a network's do not."""
    if request.param == "a network's noise":
        monkeypatch.setattr(service.samples.table.dealing, "MOST_SIGNS", NOISE_DIMENSION - 1)


@pytest.mark.usefixtures("noise")
def test_frequencies_are_the_softmax_of_the_logits():
    domain = domain_of(CLASSES)
    bias = np.random.default_rng(1).normal(scale=1.5, size=domain.total_width)
    sampler = tiny_sampler(CLASSES, bias=bias, noise_scale=0.0)
    chunks = list(sampler.draws(100_000, seed=0))
    offsets = np.cumsum([0, *domain.widths])
    for index, (start, stop) in enumerate(itertools.pairwise(offsets)):
        drawn = np.concatenate([chunk[index] for chunk in chunks])
        if domain.columns[index].kind == "grid":
            drawn = np.searchsorted(domain.columns[index].edges, drawn, side="right") - 1
        fits(drawn.tolist(), range(stop - start), special.softmax(bias[start:stop]))


@pytest.mark.usefixtures("noise")
def test_columns_are_independent_given_the_noise():
    sampler = tiny_sampler(CLASSES, bias=np.zeros(domain_of(CLASSES).total_width), noise_scale=0.0)
    pairs = [(row[0], row[1]) for row in rows_of(sampler, 60_000, seed=0)]
    support = list(itertools.product([0, 1, 2], ["red", "green", "blue", None]))
    fits(pairs, support, np.full(12, 1 / 12))


def signs_of_noise():
    """The class is drawn, the colour says the signs of the first two coordinates of the noise, "a:b" that of the third."""
    weights = np.zeros((NOISE_DIMENSION, domain_of(CLASSES).total_width))
    weights[0, 3:7] = 1e6 * np.array([-1, 1, -1, 1])
    weights[1, 3:7] = 1e6 * np.array([-1, -1, 1, 1])
    weights[2, -2:] = 1e6 * np.array([-1, 1])
    config = tiny_config(CLASSES, condition="class", frequencies=FREQUENCIES)
    return TableSampler.from_files(
        config, tiny_onnx(weights, np.zeros(weights.shape[1]), np.zeros((3, weights.shape[1])))
    )


COMBINATIONS = list(itertools.product([0, 1, 2], ["red", "green", "blue", None], [False, True]))
CHANCES = np.repeat(FREQUENCIES, 8) / 8


@pytest.mark.parametrize("rows", [100, 1_000, 4_096, 10_000])
def test_rows_are_spread_evenly_over_conditions_and_signs_of_the_noise(rows):
    for seed in range(5):
        drawn = [(row[0], row[1], row[3]) for row in rows_of(signs_of_noise(), rows, seed=seed)]
        counts = np.array([drawn.count(combination) for combination in COMBINATIONS])
        assert np.abs(counts - CHANCES * rows).max() <= 3
    some = [row[:2] for row in rows_of(signs_of_noise(), 10_000, seed=0)[:400]]  # the first rows are any rows
    fits(some, list(itertools.product([0, 1, 2], ["red", "green", "blue", None])), np.repeat(FREQUENCIES, 4) / 4)


def test_rows_alike_in_condition_and_signs_are_spread_evenly_over_the_cells_of_every_column():
    """A cell of probability p has k·p of a group's k rows, give or take one: so many thresholds lie in its interval."""
    bias = np.zeros(domain_of(CLASSES).total_width)
    bias[3:7] = np.log([0.4, 0.3, 0.2, 0.1])
    table = np.zeros((3, len(bias)))
    sampler = tiny_sampler(CLASSES, condition="class", frequencies=FREQUENCIES, bias=bias, table=table, noise_scale=0.0)
    groups, rows = 2**NOISE_DIMENSION, 1_000
    for seed in range(20):
        drawn = column(sampler, "colour", rows, seed=seed, where={"class": 1})
        counts = np.array([drawn.count(colour) for colour in ("red", "green", "blue", None)])
        assert np.abs(counts - rows * np.array([0.4, 0.3, 0.2, 0.1])).max() <= groups / 2


def test_thresholds_are_even_within_a_group_and_independent_between_columns():
    rng = np.random.default_rng(0)
    groups = rng.choice([0, 3, 4, 70_000], p=[0.5, 0.3, 0.19, 0.01], size=5_000)
    thresholds = even_thresholds(groups, 40, rng)
    assert 0 <= thresholds.min() < thresholds.max() <= 1
    for group in np.unique(groups):
        dealt = thresholds[:, groups == group]
        rows = dealt.shape[1]
        assert np.allclose(np.diff(np.sort(dealt, axis=1), axis=1), 1 / rows, atol=1e-6)
        correlations = np.corrcoef(dealt)[np.triu_indices(len(dealt), 1)]
        assert abs(correlations.mean()) < 5 / np.sqrt(rows * len(correlations))
        assert correlations.var() * rows == pytest.approx(1, abs=0.3)


def test_a_row_s_thresholds_are_uniform_whatever_its_place_and_group():
    groups = np.array([1, 0, 1, 1, 0, 2])
    rng = np.random.default_rng(1)
    dealt = np.array([even_thresholds(groups, 2, rng) for _ in range(4_000)])
    for place in range(len(groups)):
        cells = np.floor(4 * dealt[:, :, place]).astype(int)
        fits((4 * cells[:, 0] + cells[:, 1]).tolist(), range(16), np.full(16, 1 / 16))


@pytest.mark.slow
@pytest.mark.usefixtures("noise")
@pytest.mark.parametrize("place", [0, 5])
def test_a_row_for_itself_is_an_independent_draw(place):
    sampler = signs_of_noise()
    drawn = [next(sampler.draws(6, seed=seed)) for seed in range(4_000)]
    colours = ["red", "green", "blue", None]
    rows = [(int(c[0][place]), colours[int(c[1][place])], bool(c[3][place])) for c in drawn]
    fits(rows, COMBINATIONS, CHANCES)


@pytest.mark.parametrize(("resolution", "step"), [("minute", 60), ("hour", 3_600), ("day", 86_400)])
def test_moments_are_whole_steps_of_the_declared_resolution_and_all_of_them_alike(resolution, step):
    constraints = {"minimum": "2024-01-01T00:30:00", "maximum": "2024-01-09T23:59:59", "required": True}
    field = {"name": "at", "type": "datetime", "constraints": constraints, "resolution": resolution}
    sampler = tiny_sampler({"fields": [field]}, bias=np.zeros(8), noise_scale=0.0)
    seconds = np.array(column(sampler, "at", 40_000, seed=0), dtype="datetime64[s]").astype(np.int64)
    assert (seconds % step == 0).all()
    first, last = (
        np.datetime64(text).astype("datetime64[s]").astype(np.int64)
        for text in ("2024-01-01T00:30:00", "2024-01-09T23:59:59")
    )
    possible = np.arange(-(-first // step) * step, last + 1, step)
    assert set(seconds.tolist()) <= set(possible.tolist())
    if len(possible) < 1_000:
        assert set(seconds.tolist()) == set(possible.tolist())


def test_no_threshold_reaches_a_cell_without_weight():
    logits = np.repeat(np.array([[-1e4], [0.3], [0.1], [-1e4]], dtype=np.float32), 5_000, axis=1)
    logits[1:3] += np.linspace(-3, 3, 5_000, dtype=np.float32)
    for threshold in (0.0, 1.0 - 2.0**-24, 1.0):
        thresholds = np.full(5_000, threshold, dtype=np.float32)
        assert set(cells_reached(cumulative_weights(logits.copy()), thresholds)) <= {1, 2}


def test_huge_logits_do_not_overflow():
    bias = np.zeros(domain_of(CLASSES).total_width)
    bias[1], bias[3] = 1e5, -1e5
    classes, colours = zip(*(row[:2] for row in rows_of(tiny_sampler(CLASSES, bias=bias), 5_000)), strict=True)
    assert set(classes) == {1}
    assert "red" not in colours


def test_the_condition_is_drawn_from_its_frequencies_and_moves_the_rest():
    table = np.zeros((3, domain_of(CLASSES).total_width))
    table[:, 3:7] = np.log([[0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1], [0.1, 0.1, 0.7, 0.1]])
    sampler = conditional(table=table, bias=np.zeros(table.shape[1]), noise_scale=0.0)
    fits(column(sampler, "class", 50_000, seed=0), [0, 1, 2], FREQUENCIES)
    for wanted in (2, "2"):
        rows = rows_of(sampler, 20_000, seed=0, where={"class": wanted})
        assert {row[0] for row in rows} == {2}
        fits([row[1] for row in rows], ["red", "green", "blue", None], [0.1, 0.1, 0.7, 0.1])


def test_other_columns_are_conditioned_by_rejection():
    sampler = conditional()
    rows = rows_of(sampler, 2_000, seed=0, where={"colour": "blue", "class": 1, "a:b": "true"})
    assert len(rows) == 2_000
    assert {(row[0], row[1], row[3]) for row in rows} == {(1, "blue", True)}
    assert len({row[2] for row in rows}) > 5
    assert set(column(sampler, "age", 300, where={"age": 17})) == {17}
    assert set(column(sampler, "age", 300, where={"age": "17"})) == {17}
    assert set(column(sampler, "colour", 300, where={"colour": ""})) == {None}
    assert set(column(sampler, "colour", 300, where={"colour": None})) == {None}


EXCLUSIONS = [{"class": [0], "colour": ["red", None]}, {"age": {"maximum": 10}, "a:b": [True]}]


@pytest.mark.usefixtures("noise")
def test_where_a_row_is_excluded_the_last_column_gives_way():
    domain = domain_of(CLASSES)
    bias = np.random.default_rng(1).normal(size=domain.total_width)
    sampler = tiny_sampler(CLASSES | {"exclusions": EXCLUSIONS}, bias=bias, noise_scale=0.0)
    rows = rows_of(sampler, 60_000, seed=0)
    assert len(rows) == 60_000
    assert rows == rows_of(sampler, 60_000, seed=0)
    shares = [special.softmax(bias[start:stop]) for start, stop in itertools.pairwise(np.cumsum([0, *domain.widths]))]
    supports = [[0, 1, 2], ["red", "green", "blue", None], range(31), [False, True]]
    for first, excluded in ((0, (0, [0, 3])), (2, (slice(11), 1))):
        # The first column is as it was, the other what is left of it.
        other = np.outer(np.ones(len(shares[first])), shares[first + 1])
        other[excluded] = 0.0
        expected = (shares[first][:, None] * other / other.sum(axis=1, keepdims=True)).ravel()
        support = list(itertools.product(supports[first], supports[first + 1]))
        pairs = [row[first : first + 2] for row in rows]
        assert len(set(pairs)) == (expected > 0.0).sum()
        fits(pairs, list(itertools.compress(support, expected > 0.0)), expected[expected > 0.0])


RANGES = [
    {"name": "n", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "bins": 5},
    {"name": "n", "type": "number", "constraints": {"minimum": 0, "maximum": 10}, "bins": 5, "decimals": 0},
    {"name": "n", "type": "number", "constraints": {"minimum": 0, "maximum": 10}, "bins": 5, "decimals": 2},
    {"name": "n", "type": "date", "constraints": {"minimum": "1970-01-01", "maximum": "1970-01-10"}, "bins": 5},
]
BOUNDS = [{"minimum": 2}, {"maximum": 7}, {"maximum": 7.99}, {"minimum": "1970-01-03"}]


@pytest.mark.parametrize(("field", "bounds"), list(zip(RANGES, BOUNDS, strict=True)))
def test_cells_of_a_range_that_are_excluded_to_their_last_value_are_known(field, bounds):
    """So that only the range gives way, and its left cell takes all: nothing else of the row is drawn anew."""
    fields = [{"name": "a", "type": "boolean", "constraints": {"required": True}}, field]
    fields[1]["constraints"]["required"] = True
    schema = {"fields": fields, "exclusions": [{"a": [True], "n": bounds}]}
    left = 4 if "maximum" in bounds else 0
    bias = np.where(np.arange(5) == left, -9.0, 0.0)
    assert domain_of(schema, numeric_bins=5).widths == (2, 5)
    sampler = TableSampler.from_files(
        tiny_config(schema, numeric_bins=5),
        tiny_onnx(np.zeros((NOISE_DIMENSION, 7)), np.concatenate([np.zeros(2), bias])),
    )
    rows = rows_of(sampler, 20_000, seed=0)
    fits([row[0] for row in rows], [False, True], [0.5, 0.5])


def test_what_gives_way_stays_what_its_component_says():
    """Colour says two signs of the noise and "a:b" the third, whatever the class excludes."""
    exclusions = [{"class": [0], "a:b": [True]}, {"class": [1, 2], "a:b": [False], "age": {"maximum": 30}}]
    weights = np.zeros((NOISE_DIMENSION, domain_of(CLASSES).total_width))
    weights[0, 3:7] = 1e6 * np.array([-1, 1, -1, 1])
    weights[1, 3:7] = 1e6 * np.array([-1, -1, 1, 1])
    weights[0, 7:38] = np.where(np.arange(31) < 15, -1e6, 1e6)
    config = tiny_config(CLASSES | {"exclusions": exclusions})
    sampler = TableSampler.from_files(config, tiny_onnx(weights, np.zeros(weights.shape[1])))
    for rows in (60, 5_000):
        drawn = rows_of(sampler, rows, seed=0)
        assert {(row[0] > 0) == row[3] for row in drawn} == {True}
        assert {(row[1] in {"green", None}) == (row[2] >= 15) for row in drawn} == {True}


def test_rows_drawn_anew_keep_their_condition_where_they_can():
    exclusions = [{"class": [0], "colour": ["red", "green", None]}, {"class": [2], "age": {"minimum": 3}}]
    sampler = tiny_sampler(
        CLASSES | {"exclusions": exclusions}, condition="class", frequencies=FREQUENCIES, noise_scale=0.1
    )
    rows = rows_of(sampler, 5_000, seed=0)
    classes = [row[0] for row in rows]
    assert [classes.count(value) for value in (0, 1, 2)] == [3_000, 1_500, 500]
    assert {row[1] for row in rows if row[0] == 0} == {"blue"}
    assert {row[2] for row in rows if row[0] == 2} <= {0, 1, 2}
    assert {row[2] for row in rows_of(sampler, 500, seed=0, where={"class": 2, "a:b": True})} <= {0, 1, 2}


def test_a_condition_that_the_schema_excludes_is_not_drawn():
    exclusions = [{"class": [2], "colour": ["red", "green", "blue", None]}]
    sampler = tiny_sampler(CLASSES | {"exclusions": exclusions}, condition="class", frequencies=FREQUENCIES)
    classes = column(sampler, "class", 5_000, seed=0)
    assert len(classes) == 5_000
    fits(classes, [0, 1], [2 / 3, 1 / 3])
    with pytest.raises(SamplingError, match="excludes"):
        column(sampler, "class", 10, where={"class": 2})


def test_a_schema_that_excludes_everything_says_so():
    everything = [{"class": [0, 1, 2], "a:b": [True, False]}]
    with pytest.raises(SamplingError, match="excludes"):
        rows_of(tiny_sampler(CLASSES | {"exclusions": everything}), 10)


def test_rejection_has_the_right_distribution():
    domain = domain_of(CLASSES)
    bias = np.random.default_rng(1).normal(size=domain.total_width)
    sampler = tiny_sampler(CLASSES, bias=bias, noise_scale=0.0)
    fits(column(sampler, "class", 20_000, seed=0, where={"colour": "red"}), [0, 1, 2], special.softmax(bias[:3]))


@pytest.mark.parametrize(
    ("column_name", "value"),
    [
        ("flag", False),
        ("flag", "NA"),
        ("rank", "3"),
        ("rate", 1),
        ("rate", "2.50"),
        ("age", 40),
        ("age", None),
        ("day", "NA"),
        ('awk,ward "name"', "a,b"),
        ('awk,ward "name"', None),
    ],
)
def test_conditions_of_every_kind(column_name, value):
    values = column(tiny_sampler(), column_name, 50, where={column_name: value})
    texts = {"NA": None, "3": 3, "2.50": 2.5}
    assert values == [texts.get(value, value)] * 50


def test_a_date_is_a_condition():
    field = {"name": "day", "type": "date", "constraints": {"minimum": "2024-02-27", "maximum": "2024-03-01"}}
    sampler = tiny_sampler({"fields": [field]})
    assert set(column(sampler, "day", 20, where={"day": "2024-02-29"})) == {"2024-02-29"}


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"nobody": 1}, "no column"),
        ({"plain": "c"}, "its values are: a, b"),
        ({"plain": None}, "no value"),
        ({"rank": 4}, "its values are"),
        ({"age": 61}, "outside its declared range"),
        ({"age": 16}, "outside its declared range"),
        ({"age": "forty"}, "not a value"),
        ({"age": 17.5}, "between two of its values"),
        ({"day": "2024-13-01"}, "not a value"),
        ({"share": 1.5}, "outside its declared range"),
        ({"at": "2025-01-01T00:00:00"}, "outside its declared range"),
        ({"income": None}, "not a value"),
    ],
)
def test_a_wrong_condition_says_why_at_once(where, words):
    with pytest.raises(SamplingError, match=words):
        tiny_sampler().draws(10, where=where)


def test_a_missing_cell_without_a_word_is_not_named_among_the_values():
    field = {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}}
    with pytest.raises(SamplingError, match=r"its values are: F, M$"):
        tiny_sampler({"fields": [field]}).draws(10, where={"sex": "x"})


def test_a_condition_no_row_meets_ends_with_a_clear_error():
    bias = np.zeros(domain_of(CLASSES).total_width)
    bias[3] = -1e4
    sampler = tiny_sampler(CLASSES, bias=bias)
    with pytest.raises(SamplingError, match="fewer than 1 in 10,000"):
        rows_of(sampler, 1, where={"colour": "red"})


def test_no_rows_and_impossible_numbers():
    sampler = tiny_sampler()
    assert list(sampler.chunks(0)) == []
    assert len("".join(sampler.csv(0)).splitlines()) == 1
    assert "".join(sampler.jsonl(0)) == ""
    for options in ({"rows": -1}, {"rows": 1, "seed": -1}):
        with pytest.raises(SamplingError):
            sampler.draws(**options)


def test_an_unknown_format_is_refused():
    config, onnx_bytes = tiny_files()
    with pytest.raises(SamplingError, match="same ZIP"):
        TableSampler.from_files({**config, "format": 2}, onnx_bytes)


def allowed(value, field):
    constraints = field.get("constraints", {})
    if value is None:
        return not constraints.get("required", False)
    if "enum" in constraints:
        return value in constraints["enum"]
    return field["type"] == "boolean" or constraints["minimum"] <= value <= constraints["maximum"]


def test_all_rows_parse_under_the_declared_schema():
    sampler = tiny_sampler()
    header, rows = parse_csv("".join(sampler.csv(3_000, seed=0)))
    assert header == [field["name"] for field in MIXED["fields"]]
    assert rows == rows_of(sampler, 3_000, seed=0)
    for values, field in zip(zip(*rows, strict=True), MIXED["fields"], strict=True):
        assert all(allowed(value, field) for value in values)
        assert (None in values) is not field.get("constraints", {}).get("required", False)
        assert len(set(values)) > 1


def test_json_lines_hold_the_same_rows_with_their_types():
    sampler = tiny_sampler()
    lines = "".join(sampler.jsonl(1_000, seed=0)).splitlines()
    rows = [tuple(json.loads(line).values()) for line in lines]
    assert rows == rows_of(sampler, 1_000, seed=0)
    assert [[type(v) for v in row] for row in rows] == [
        [type(v) for v in row] for row in rows_of(sampler, 1_000, seed=0)
    ]
    assert list(json.loads(lines[0])) == [field["name"] for field in MIXED["fields"]]


def test_the_first_missing_value_is_written():
    field = {"name": "x", "type": "boolean"}
    bias = [-1e4, -1e4, 1e4]
    for missing_values, text in [(["NA", ""], "NA"), ([""], '""'), (['say "no"'], '"say ""no"""'), ([], '""')]:
        sampler = tiny_sampler({"fields": [field], "missingValues": missing_values}, bias=bias)
        assert "".join(sampler.csv(2)) == f"x\n{text}\n{text}\n"
    two = tiny_sampler({"fields": [field, {**field, "name": "y"}]}, bias=bias * 2)
    assert "".join(two.csv(1)) == "x,y\n,\n"


def test_numbers_are_short_and_uniform_in_their_cell():
    field = {"name": "x", "type": "number", "constraints": {"minimum": -0.3, "maximum": 0.7, "required": True}}
    sampler = tiny_sampler({"fields": [field]}, bias=np.zeros(8), noise_scale=0.0)
    values = np.array(column(sampler, "x", 50_000, seed=0))
    assert max(len(repr(abs(value))) for value in values.tolist()) <= 6
    assert stats.kstest(values, stats.uniform(-0.3, 1.0).cdf).pvalue > 1e-3


@pytest.mark.parametrize("low", [-20.0, 0.0])
def test_a_cell_next_to_nothing_holds_zero_alone(low):
    edges = [-20.0, 0.0, 1e-12, 50.0][-3 - (low < 0.0) :]
    field = {"name": "x", "type": "number", "constraints": {"minimum": low, "maximum": 50, "required": True}}
    sampler = tiny_sampler({"fields": [{**field, "edges": edges}]}, bias=np.zeros(len(edges) - 1), noise_scale=0.0)
    values = np.array(column(sampler, "x", 3_000, seed=0))
    assert ((values == 0.0) | (np.abs(values) > 1e-4)).all()
    assert 0.2 < (values == 0.0).mean() < 0.6
    assert "".join(sampler.csv(300)).count("\n0.0\n") > 10


def test_whole_numbers_are_uniform_in_their_cell_bounds_included():
    field = {"name": "x", "type": "integer", "constraints": {"minimum": -5, "maximum": 14, "required": True}, "bins": 2}
    sampler = tiny_sampler({"fields": [field]}, bias=np.zeros(2), noise_scale=0.0)
    fits(column(sampler, "x", 50_000, seed=0), range(-5, 15), np.full(20, 1 / 20))


@pytest.mark.parametrize(("low", "high"), [(0, 1e-30), (1e15, 1e15 + 0.25), (-(2.0**53), 2.0**53), (0, 1e-310)])
def test_extreme_ranges_stay_inside(low, high):
    field = {"name": "x", "type": "number", "constraints": {"minimum": low, "maximum": high, "required": True}}
    config = tiny_config({"fields": [field]})
    width = config["columns"][0]["size"]
    sampler = TableSampler.from_files(config, tiny_onnx(np.zeros((NOISE_DIMENSION, width)), np.zeros(width)))
    values = column(sampler, "x", 2_000, seed=0)
    assert low <= min(values) < max(values) <= high


def test_memory_does_not_grow_with_the_rows():
    sampler = conditional()

    def peak(chunks):
        tracemalloc.start()
        for _ in itertools.islice(sampler.draws(10**12, seed=0), chunks):
            pass
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return peak_bytes

    peak(2)
    assert peak(60) < 1.2 * peak(5)


SPENT = {
    "fields": [
        {
            "name": "paid",
            "type": "number",
            "decimals": 2,
            "constraints": {"minimum": 0, "maximum": 40, "required": True},
        },
        {"name": "hours", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
        {
            "name": "day",
            "type": "date",
            "constraints": {"minimum": "2024-01-01", "maximum": "2025-12-31", "required": True},
        },
    ]
}


def sharing(shared):
    """Eight even cells in each column; shared: pairs of a value and its part of the rows of its cell, by column."""
    domain = domain_of(SPENT)
    config = tiny_config(SPENT)
    for place, pairs in shared.items():
        config["columns"][place]["shared_values"] = pairs
    onnx = tiny_onnx(np.zeros((NOISE_DIMENSION, domain.total_width)), np.zeros(domain.total_width))
    return TableSampler.from_files(config, onnx)


def test_values_that_many_rows_share_are_drawn_as_often_and_others_evenly():
    may = (np.datetime64("2025-05-01") - np.datetime64("1970-01-01")).astype(int).item()
    sampler = sharing(
        {0: [[0.0, 0.1], [4.99, 0.75], [5.0, 1.0], [40.0, 0.2]], 1: [[40, 0.5], [42, 0.25]], 2: [[may, 0.5]]}
    )
    rows = 80_000
    paid, hours, day = (column(sampler, name, rows, seed=2) for name in ("paid", "hours", "day"))
    for values, value, cells, share in (
        (paid, 0.0, 8, 0.1 + 0.15 / 500), (paid, 4.99, 8, 0.75 + 0.15 / 500), (paid, 5.0, 8, 1.0), (paid, 40.0, 8, 0.2 + 0.8 / 501),
        (hours, 40, 9, 0.5 + 0.25 / 13), (hours, 42, 9, 0.25 + 0.25 / 13), (day, "2025-05-01", 8, 0.5 + 0.5 / 91),
    ):  # fmt: skip
        assert values.count(value) / rows == pytest.approx(share / cells, abs=0.006)
    assert not [value for value in paid if 5.0 < value < 10.0]  # all of its cell have one value
    within = [value for value in paid if 0.0 < value < 4.99]
    fits([int(value) for value in within], range(5), [99 / 498, *[100 / 498] * 3, 99 / 498])
    assert all(round(value, 2) == value for value in paid)
    assert hours.count(None) / rows == pytest.approx(1 / 9, abs=0.006)
    assert set(column(sampler, "hours", 50, seed=1, where={"hours": 42})) == {42}


def test_without_shared_values_rows_are_those_of_earlier_bundles():
    one, other = sharing({}), sharing({1: [[40, 0.5]]})
    drawn = [rows_of(sampler, 500, seed=3) for sampler in (one, other)]
    assert [(paid, day) for paid, _, day in drawn[0]] == [(paid, day) for paid, _, day in drawn[1]]
    assert drawn[0] != drawn[1]
