"""Numbers in conditions: a point that may part thousands is never taken for one before a fraction on a page that writes them so.

And what is refused names bounds as the column is spelled, or as the page's language writes numbers, and types in its words.
"""

import pytest
from fastapi import Request

from service.base.messages import fault_of, said
from service.base.text import TypedText
from service.domain.table_schema import parse_table_schema
from service.pages.languages import language_named, typed_condition
from service.pages.questions import question_of
from service.queries.conditions import conditions_of_order
from service.samples.table.base import SamplingError
from service.samples.table.conditions import Conditions
from service.samples.table.written import modelled_columns

GERMAN = language_named("de")
SPELLING = {"decimal": ",", "group": "", "prefix": "", "suffix": "", "parentheses": False, "decimals": 2}
POINTS = SPELLING | {"group": "."}
REAL = {"type": "number", "size": 2, "edges": [0.5, 2.5, 10_000], "missing": False}
WHOLE = {"type": "integer", "size": 2, "edges": [0, 10, 2_000_000], "missing": False}
CONDITIONS = Conditions(
    modelled_columns(
        {
            "missing_value": "",
            "columns": [
                WHOLE | {"name": "Kinder"},
                WHOLE | {"name": "Einwohner", "spelling": POINTS | {"decimals": None}},
                REAL | {"name": "Preis"},
                REAL | {"name": "Betrag", "decimals": 2, "spelling": SPELLING},
                REAL | {"name": "Summe", "decimals": 2, "spelling": POINTS},
                {"name": "Rang", "type": "integer", "size": 2, "values": [1, 1000]},
                {"name": "Maß", "type": "number", "size": 2, "values": [1.5, 1000.0]},
                {"name": "day", "type": "date", "size": 1, "edges": [18_000, 19_000], "missing": False},
            ],
        }
    )
)
API, ENGLISH, ON_A_GERMAN_PAGE = None, False, True


def read(text, has_comma):
    return CONDITIONS.selections(text if has_comma is None else TypedText(text, has_comma=has_comma))


def least(text, has_comma):
    ((place, selection),) = read(text, has_comma).items()
    if place in {5, 6}:
        return [value for value, met in zip(selection.column.values, selection.allowed, strict=True) if met]
    return selection.intervals.lows[0]


@pytest.mark.parametrize(
    ("text", "api", "english", "german"),
    [
        ("Kinder>=1000", 1000, 1000, 1000),
        ("Kinder>=1.000", "1000 or 1:", "1000 or 1:", "1000 or 1:"),
        ("Kinder>= 1.000 ", "1000 or 1:", "1000 or 1:", "1000 or 1:"),
        ('Kinder>="1.000"', "1000 or 1:", "1000 or 1:", "1000 or 1:"),
        ("Kinder in [1.000]", "1000 or 1:", "1000 or 1:", "1000 or 1:"),
        ('{"Kinder": {"minimum": 1.000}}', 1, 1, 1),
        ("Kinder>=0.500", 0.5, 0.5, 0.5),
        ("Kinder>=1.000.000", "is not a value", "is not a value", "is not a value"),
        ("Einwohner>=1.000", 1000, 1000, 1000),
        ("Preis>=1.234", 1.234, 1.234, "1234 or 1,234:"),
        ("Preis>=1,234", "is not a value", "is not a value", 1.234),
        ("Preis>=1,5", "is not a value", "is not a value", 1.5),
        ("Betrag>=1.234", 1.234, "1234 or 1,234:", "1234 or 1,234:"),
        ("Betrag>=1,234", 1.234, 1.234, 1.234),
        ("Summe>=1.234", 1.234, 1234, 1234),
        ("Rang=1.000", "1000 or 1:", "1000 or 1:", "1000 or 1:"),
        ("Rang>=1.000", "1000 or 1:", "1000 or 1:", "1000 or 1:"),
        ("Maß=1,5", "has no value", "has no value", [1.5]),
        ("Maß>=1.000", [1.5, 1000.0], [1.5, 1000.0], "1000 or 1,000:"),
    ],
)
def test_a_point_between_thousands_is_not_read_as_one_before_a_fraction(text, api, english, german):
    for has_comma, meant in ((API, api), (ENGLISH, english), (ON_A_GERMAN_PAGE, german)):
        if isinstance(meant, str):
            with pytest.raises(SamplingError, match=meant):
                read(text, has_comma)
        else:
            assert least(text, has_comma) == meant


@pytest.mark.parametrize(
    ("text", "english", "german"),
    [
        ("Preis>=20000", "it holds numbers from 0.5 to 10000.0", "sie enthält Zahlen von 0,5 bis 10000,0"),
        ("Summe>=20000", "it holds numbers from 0.5 to 10000.0", "sie enthält Zahlen von 0,50 bis 10.000,00"),
        ("Preis>=x", "of type number, like 1234.5;", "vom Typ Kommazahlen, wie etwa 1234,5;"),
        ("Kinder>=x", "of type integer, like 1234;", "vom Typ ganze Zahlen, wie etwa 1234;"),
        ("day>=x", "of type date, like 2024-03-01;", "vom Typ Tage, wie etwa 2024-03-01;"),
        ("Maß=7", "its values are: 1.5, 1000.0", "ihre Werte sind: 1,5, 1000,0"),
        ("Preis in [1, 20000]", "20000.0 is not one of its values", "20000,0 ist keiner ihrer Werte"),
    ],
)
def test_bounds_and_types_are_said_as_the_page_writes_them(text, english, german):
    with pytest.raises(SamplingError) as refused:
        read(text, ENGLISH)
    fault = fault_of(refused.value)
    assert english in fault
    assert german in said(fault, GERMAN)


@pytest.mark.parametrize(("language", "least_number"), [("de", 1.5), ("en", None)])
def test_a_question_reads_its_condition_in_the_language_of_its_page(language, least_number):
    request = Request({"type": "http", "headers": [(b"accept-language", language.encode())]})
    schema = parse_table_schema(
        {"fields": [{"name": "Preis", "type": "number", "constraints": {"minimum": 0, "maximum": 9_000}}]}
    )
    asked = question_of(request, {"kind": "count", "epsilon": "1", "where": " Preis>=1,5 "})["where"]
    assert asked.has_comma == typed_condition(request, "x").has_comma == (language == "de")
    if least_number is None:
        with pytest.raises(Exception, match="is not a value of a column of type number"):
            conditions_of_order(asked, schema, "questions.0")
    else:
        assert conditions_of_order(asked, schema, "questions.0") == [{"column": "Preis", "minimum": least_number}]
