"""How conditions are written, and what they mean."""

import pytest
from tiny_generators import MIXED
from tiny_mixtures import tiny_mixture

from service.samples.table.base import SamplingError

SCHEMA = {
    "fields": [
        *MIXED["fields"],
        {"name": "income class", "type": "string", "constraints": {"enum": [">50K", "<=50K", "R&D", "a:b=c", "=1"]}},
        {"name": "a", "type": "string", "constraints": {"enum": ["x", "b:x"], "required": True}},
        {"name": "a:b", "type": "string", "constraints": {"enum": ["x", "y"], "required": True}},
    ],
    "missingValues": ["NA", ""],
}
NAMES = [field["name"] for field in SCHEMA["fields"]]


@pytest.fixture(scope="module")
def sampler():
    return tiny_mixture(SCHEMA, components=8)


def drawn(sampler, name, where, rows=60):
    return {value for chunk in sampler.chunks(rows, seed=0, where=where) for value in chunk[name]}


@pytest.mark.parametrize(
    ("where", "name", "values"),
    [
        ("rank>=2&rank<3", "rank", {2}),
        ("rank != 2 & plain=a", "rank", {1, 3}),
        (["rank>1", "rank<3"], "rank", {2}),
        ("rank in [1, 3]", "rank", {1, 3}),
        ("rank in (1)", "rank", {1}),
        ("rank not in [1, 3]", "rank", {2}),
        ("rank missing", "rank", {None}),
        ("rank is not missing", "rank", {1, 2, 3}),
        ("rate<=1", "rate", {1.0, -0.125}),
        ("flag=true", "flag", {True}),
        ({"flag": True}, "flag", {True}),
        ('{"flag": true, "rank": [1, 2], "age": {"minimum": 20, "maximum": 20}}', "age", {20}),
        ({"age": {"exclusiveMinimum": 20, "exclusiveMaximum": 22}}, "age", {21}),
        ({"rank": {"not": 2, "missing": False}}, "rank", {1, 3}),
        ({"rank": {"not": None}}, "rank", {1, 2, 3}),
        ("income class=>50K", "income class", {">50K"}),
        ("income class:<=50K", "income class", {"<=50K"}),
        ("income class=<=50K&rank=1", "income class", {"<=50K"}),
        ("income class!=>50K", "income class", {"<=50K", "R&D", "a:b=c", "=1"}),
        ("income class=R&D", "income class", {"R&D"}),
        ("income class=R&D&rank=2", "rank", {2}),
        ("rank=2&income class=R&D", "income class", {"R&D"}),
        ('income class="R&D"&rank=2', "income class", {"R&D"}),
        ('"income class" in ["R&D", ">50K"]', "income class", {"R&D", ">50K"}),
        ("income class:a:b=c", "income class", {"a:b=c"}),
        ("income class==1", "income class", {"=1"}),
        ("a:b:x", "a", {"b:x"}),
        ("a:b=y", "a:b", {"y"}),
        ('awk,ward "name":say "hi"', 'awk,ward "name"', {'say "hi"'}),
        ('awk,ward "name": x ', 'awk,ward "name"', {" x "}),
        ('awk,ward "name"=" x "', 'awk,ward "name"', {" x "}),
        ("day>=2024-02-28", "day", {"2024-02-28", "2024-02-29"}),
        ("at=2020-01-01T00:00:00", "at", {"2020-01-01T00:00:00"}),
        ("share=0.5", "share", {0.5}),
        ("age in [17, NA]", "age", {17, None}),
        ("age:", "age", {None}),
    ],
)
def test_what_is_drawn_is_what_was_asked_for(sampler, where, name, values):
    if where == "age:":  # the first of the missing values stands for all
        where = "age:NA"
    assert drawn(sampler, name, where, 400) == values


def test_a_missing_value_meets_no_comparison(sampler):
    for where in ("age!=40", "age<=60", "age>=17"):
        assert None not in drawn(sampler, "age", where, 400)


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("colour=red", "there is no column 'colour'"),
        ("ranks=1", "did you mean 'rank'"),
        ("rank=2&ranks=1", "did you mean 'rank'"),
        ("plain=a&flga=true", "did you mean 'flag'"),
        ("income class=>60K", "did you mean '>50K'.*its values are"),
        ("rank", "is not a condition.*COLUMN>=NUMBER"),
        ("", "is not a condition"),
        ("age>=61", "from 17 to 60"),
        ("age>=40 and rank=1", "not a value of a column of type integer"),
        ("age<20&age>30", "age: no value meets all conditions on it; it holds whole numbers from 17 to 60"),
        ("rank>3", "rank: no value is > 3; its values are: 3, 1, 2"),
        ("rank=2&rank=3", "rank: no value meets all"),
        ("plain>a", "plain=>a if >a is the value"),
        ("plain missing", "plain is required"),
        ("income missing", "income is required"),
        ("day=29.2.2024", "like 2024-03-01"),
        ("at>=yesterday", "like 2024-03-01T12:00:00"),
        ("age in [17, 99]", "99 is not one of its values"),
        ({"age": {"min": 3}}, "'min' is not a condition.*minimum"),
        ({"age": {"minimum": None}}, "not a value"),
        ("rank=1&" * 300 + "rank=1", "conditions at once"),
    ],
)
def test_a_refusal_says_what_would_be_accepted(sampler, where, words):
    with pytest.raises(SamplingError, match=words):
        sampler.draws(10, where=where)


def test_a_mapping_as_text_is_refused_for_what_is_wrong_with_it(sampler):
    with pytest.raises(SamplingError) as caught:
        sampler.draws(5, where='{"a": ["x", "nowhere"]}')
    assert "nowhere" in str(caught.value)
    assert "no column" not in str(caught.value)


@pytest.mark.parametrize(
    "where",
    [
        "plain in " + "[" * 3_900,
        '{"plain":' + "[" * 3_900,
        "plain in [a\rb]",
        {"age": {"in": 5}},
        {"age": {"in": None}},
    ],
)
def test_no_text_of_a_caller_ends_in_another_error(sampler, where):
    with pytest.raises(SamplingError):
        sampler.draws(5, where=where)


@pytest.mark.parametrize("weight", [1e308, 10**400, float("nan")])
def test_weights_have_a_largest(sampler, weight):
    with pytest.raises(SamplingError, match="not a number from 0 to"):
        sampler.draws(5, weights={"plain": {"a": weight, "b": 1}})
