"""Answers are shown to people as numbers and tables, and the rows that they are of in the words of conditions."""

import re

import pytest

from service.pages.answered import MOST_LINES, conditions_of, counts_of
from service.pages.rendering import templates
from service.pages.words import KINDS
from tests.service.pages.spoken import english_in

WHERE = [
    {"column": "day", "values": None, "minimum": "1980-01-01", "maximum": None},
    {"column": "age", "values": None, "minimum": 5, "maximum": 90},
    {"column": "sex", "values": ["f"], "minimum": None, "maximum": None},
    {"column": "rank", "values": [1, None], "minimum": None, "maximum": None},
]
DAYS = {"column": "day", "edges": [0.0, 31.0, 59.0], "missing": True}
SEX = {"column": "sex", "values": ["f", "m"], "missing": False}
SIZE = {"column": "size", "edges": [0.5, 1.75], "missing": False}


def shown(answer, language):
    template = templates(language).get_template("answers.html")
    values = {"kinds": KINDS, "conditions_of": conditions_of, "counts_of": lambda one: counts_of(one, {"day": "date"})}
    page = template.render(answers=[answer], **values)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.partition("<details")[0])), page


def test_a_number_is_written_to_the_digits_that_a_person_reads():
    answer = {"question": {"kind": "mean", "column": "age", "where": []}, "value": 2136.129716157205}
    words, _ = shown(answer | {"interval": [1621.5851436031332, 3000]}, "de")
    assert " 2136,13 " in words
    assert "1621,59 und 3000" in words
    assert " 12345678 " in shown(answer | {"value": 12_345_678}, "en")[0]  # a count is exact


def test_which_rows_it_is_of_is_said_as_a_condition():
    assert conditions_of({"where": WHERE}) == "day>=1980-01-01 & age>=5 & age<=90 & sex=f & rank in [1, missing]"
    assert conditions_of({"where": [{"column": "age", "values": [None]}]}) == "age missing"
    assert conditions_of({}) == ""
    words, _ = shown({"question": {"kind": "count", "where": WHERE[:1]}, "value": 7}, "en")
    assert "day&gt;=1980-01-01" in words


@pytest.mark.parametrize("language", ["en", "de"])
def test_counts_stand_beside_what_they_are_counts_of(language):
    question = {"kind": "cross_table", "columns": ["day", "sex"], "where": []}
    answer = {"question": question, "axes": [DAYS, SEX], "shape": [3, 2], "value": [1, 2, 3, 4, 5, -6]}
    words, page = shown(answer | {"within": 9}, language)
    january = {"en": "1970-01-01 – 1970-02-01", "de": "01.01.1970 – 01.02.1970"}[language]
    assert f" {january} f 1 {january} m 2 " in words
    assert words.rstrip().endswith("– f 5 – m -6")
    assert language == "en" or english_in(page) == []
    assert "<details>" in page


def test_ranges_of_numbers_have_commas_in_german():
    answer = {"question": {"kind": "histogram", "column": "size"}, "axes": [SIZE], "value": [3]}
    assert " 0,5 – 1,75 3 " in shown(answer, "de")[0]


def test_of_many_counts_the_first_are_shown_and_what_is_no_counts_has_no_table():
    axis = {"column": "x", "values": list(range(300)), "missing": False}
    answer = {"question": {"kind": "histogram", "column": "x"}, "axes": [axis], "value": [0] * 300}
    words, page = shown(answer, "en")
    assert f"The first {MOST_LINES}; all of them stand below." in words
    assert page.count("<td") == MOST_LINES
    keys = {"question": {"kind": "keys", "columns": ["x"]}, "value": [{"values": ["a"], "count": 9}]}
    assert "<table" not in shown(keys, "en")[1]
