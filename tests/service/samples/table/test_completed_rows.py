"""Rows of the caller's own get what they lack, as the generator says, given what they have."""

import numpy as np
import pytest
from test_conditional_draws import EXCLUSIONS, FREQUENCIES, SHARED, TABLE, coarse, rows_of, same_distribution
from tiny_generators import tiny_sampler
from tiny_mixtures import tiny_mixture

from service.samples.table.base import SamplingError
from service.samples.table.completing import Most, TooManyCells, rows_of_csv, rows_of_jsonl


@pytest.fixture(scope="module")
def sampler():
    return tiny_mixture(TABLE, frequencies=FREQUENCIES, shared=SHARED, spread=0.8)


def completed(sampler, rows, seed=1):
    return [tuple(row.values()) for row in sampler.complete(rows, seed=seed)]


@pytest.mark.parametrize(
    "known", [{"colour": "blue", "age": 5}, {"class": "c"}, {"size": 3, "rate": 0.25, "class": "a"}, {}]
)
def test_what_is_filled_in_is_drawn_given_what_is_known(sampler, known):
    where = {name: value for name, value in known.items() if name != "rate"}
    if "rate" in known:  # given its bin, a number says nothing of the other columns
        edges = sampler.columns[4].edges
        low, high = edges[np.searchsorted(edges, 0.25, side="right") - 1 :][:2]
        where["rate"] = {"minimum": low, "exclusiveMaximum": high}
    expected = rows_of(sampler, 6_000, seed=2, where=where or None)
    expected = [(*row[:4], known.get("rate", row[4])) for row in expected]
    drawn = completed(sampler, [known] * 6_000)
    names = [column.name for column in sampler.columns]
    assert all(row[names.index(name)] == value for row in drawn for name, value in known.items())
    same_distribution([coarse(row) for row in drawn], [coarse(row) for row in expected])


def test_what_is_null_is_imputed_and_what_is_not_there_may_be_missing(sampler):
    rows = sampler.complete([{"class": "a", "age": None, "colour": None}] * 2_000, seed=0)
    assert all(row["age"] is not None and row["colour"] is not None for row in rows)
    same_distribution(
        [coarse(tuple(row.values())) for row in rows],
        [coarse(row) for row in rows_of(sampler, 6_000, seed=1, where="class=a&age not missing&colour not missing")],
    )
    assert any(row["age"] is None for row in sampler.complete([{"class": "a"}] * 500, seed=0))


def test_rows_keep_their_order_and_a_seed_repeats(sampler):
    rows = [{"size": 1 + number % 4, "age": number % 30} for number in range(9_000)]
    drawn = sampler.complete(rows, seed=4)
    assert [(row["size"], row["age"]) for row in drawn] == [(row["size"], row["age"]) for row in rows]
    assert drawn == sampler.complete(rows, seed=4)
    assert drawn != sampler.complete(rows, seed=5)


def test_no_completed_row_is_excluded():
    sampler = tiny_mixture(TABLE | {"exclusions": EXCLUSIONS}, frequencies=FREQUENCIES)
    rows = sampler.complete([{"colour": "red"}, {"class": "a"}, {"size": 1}] * 500, seed=0)
    assert not any(row["colour"] == "red" and row["age"] is not None and row["age"] <= 9 for row in rows)
    assert not any(row["class"] == "a" and row["size"] > 2 for row in rows)
    assert not any(row["size"] == 1 and row["colour"] in {"blue", None} for row in rows)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"colour": "rad"}, "row 3: colour has no value 'rad'.*did you mean 'red'"),
        ({"colr": "red"}, "there is no column 'colr'.*did you mean 'colour'"),
        ({"age": 31}, "row 3: age: 31 is outside its declared range; it holds whole numbers from 0 to 30"),
        ({"age": 3.5}, "row 3: age: 3.5 is not of type integer"),
        ({"age": "x"}, "row 3: age: 'x' is not of type integer"),
        ({"class": "a", "size": 3}, "row 3: the schema excludes its values of class and size"),
    ],
)
def test_a_row_that_the_generator_cannot_make_is_named_by_its_number(row, words):
    sampler = tiny_mixture(TABLE | {"exclusions": EXCLUSIONS}, frequencies=FREQUENCIES)
    with pytest.raises(SamplingError, match=words):
        sampler.complete([{"class": "b"}, {}, row])


def test_a_condition_of_no_share_is_a_row_that_cannot_be():
    sampler = tiny_mixture(TABLE, frequencies=[0.5, 0.5, 0.0])
    with pytest.raises(SamplingError, match="row 2: the generator makes no row with these values"):
        sampler.complete([{"class": "a"}, {"class": "c"}])


def test_a_network_is_completed_by_draws_that_stand_for_its_noise():
    sampler = tiny_sampler(TABLE, condition="class", frequencies=FREQUENCIES)
    drawn = completed(sampler, [{"colour": "green"}] * 6_000)
    expected = rows_of(sampler, 6_000, seed=2, where="colour=green")
    same_distribution([row[0] for row in drawn], [row[0] for row in expected])
    same_distribution([row[2] for row in drawn], [row[2] for row in expected])


def test_files_of_rows():
    assert rows_of_csv(b'\xef\xbb\xbfa,"b,c"\n1,\n"x\ny","2"\n') == [{"a": "1", "b,c": None}, {"a": "x\ny", "b,c": "2"}]
    assert rows_of_jsonl(b'{"a": 1}\n\n{"a": null, "b": "x"}') == [{"a": 1}, {"a": None, "b": "x"}]
    for content, words in (
        (b"a,b\n1\n", "row 1 has 1 cells, the header has 2"),
        (b"a,a\n1,2\n", "twice"),
        (b"\xff\xfe", "UTF-8"),
        (b'a\n"x', "not CSV"),
    ):
        with pytest.raises(SamplingError, match=words):
            rows_of_csv(content)
    for content in (b"[1]", b"{", b'{"a": 1}\n3'):
        with pytest.raises(SamplingError, match=r"row \d is not a JSON object"):
            rows_of_jsonl(content)


@pytest.mark.parametrize(
    ("read", "head", "row"), [(rows_of_csv, b"a,b\n", b",\n"), (rows_of_jsonl, b"", b'{"a": null, "b": null}\n')]
)
def test_reading_ends_at_the_limit_of_rows_and_of_cells(read, head, row):
    """What stands behind the limit is not even looked at: it would be refused otherwise."""
    assert len(read(head + row * 3, Most(rows=3, cells=8))) == 3
    with pytest.raises(TooManyCells, match="more than 3 rows"):
        read(head + row * 4 + b'"', Most(rows=3, cells=100))
    with pytest.raises(TooManyCells, match="too many cells: 5 may be"):
        read(head + row * 3 + b'"', Most(rows=100, cells=5))


def test_a_header_of_too_many_columns_is_too_many_cells():
    with pytest.raises(TooManyCells):
        rows_of_csv(b"a,b,c\n", Most(rows=9, cells=2))
