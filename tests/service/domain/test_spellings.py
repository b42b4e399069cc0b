"""Every word of Table Schema is honoured, or refused in a sentence that names the column and says what to write."""

import pytest

from service.base.errors import InvalidSchema
from service.domain.spellings import Part, parts_of
from service.domain.table_schema import TableSchema, parse_table_schema
from service.domain.zones import offsets_of

RANGE = {"constraints": {"minimum": 0, "maximum": 9}}
DAYS = {"constraints": {"minimum": "2020-01-01", "maximum": "2030-01-01"}}


def parsed(field, **table):
    return parse_table_schema({"fields": [{"name": "Price, net", **field}], **table})


GOOD = [
    {"type": "number", "decimalChar": ",", "groupChar": ".", "suffix": " €", "decimals": 2, **RANGE},
    {"type": "number", "bareNumber": False, "prefix": "Fr. ", **RANGE},
    {"type": "integer", "groupChar": " ", "negative": "parentheses", **RANGE},
    {"type": "boolean", "trueValues": ["Yes", "Y"], "falseValues": ["No"]},
    {"type": "date", "format": "%d/%m/%Y", **DAYS},
    {"type": "date", "format": "%-d %B %y", **DAYS},
    {"type": "date", "format": "%Y-%j", **DAYS},
    {"type": "datetime", "format": "%m/%d/%Y %I:%M %p", **DAYS},
    {"type": "datetime", "format": "%F %T%z", "timezone": "Asia/Kolkata", **DAYS},
    {"type": "datetime", "format": "any", **DAYS},
    {"type": "string", "missingValues": [], "constraints": {"enum": ["", "NA"]}},
    {"type": "integer", "constraints": {"enum": [2**63 - 1, -(2**63)]}},
    {"type": "number", "decimals": 2, "suffix": " €", "constraints": {"enum": [0.5, 7, 1234.56, 1e-2]}},
    {"type": "string", "constraints": {"enum": ["ab", "abc"], "minLength": 2, "maxLength": 3, "unique": False}},
    {"type": "integer", "missingValues": ["5"], **RANGE},
    {"type": "number", "decimals": 2, "trailingZeros": True, **RANGE},
    {"type": "number", "trailingZeros": False, "decimalChar": ",", **RANGE},
    {"type": "integer", "decimals": 1, "trailingZeros": True, **RANGE},
    {
        "type": "integer",
        "decimals": 2,
        "decimalChar": ",",
        "trailingZeros": True,
        "constraints": {"enum": [2**63 - 1, -5]},
    },
]


@pytest.mark.parametrize("field", GOOD, ids=range(len(GOOD)))
def test_words_that_are_honoured_are_kept(field):
    schema = parsed(field)
    assert parse_table_schema(schema.as_json()) == schema
    kept = schema.as_json()["fields"][0]
    assert {word: said for word, said in field.items() if word != "constraints"}.items() <= kept.items()


BAD = {
    "any": ({"type": "any"}, "string"),
    "array": ({"type": "array"}, "leave the column out"),
    "categories": ({"type": "string", "categories": ["a"]}, "constraints.enum"),
    "categoriesOrdered": ({"type": "string", "categoriesOrdered": True}, "leave it out"),
    "decimals fewer than an enum has": (
        {"type": "number", "decimals": 1, "constraints": {"enum": [0.25]}},
        "more than 1 decimals: 0.25",
    ),
    "decimals of an integer": ({"type": "integer", "decimals": 1, **RANGE}, "no decimals"),
    "zeros of how many decimals": ({"type": "number", "trailingZeros": True, **RANGE}, "in decimals"),
    "zeros of a date": ({"type": "date", "trailingZeros": False, **DAYS}, "number columns"),
    "decimals of a date": ({"type": "date", "decimals": 1, **DAYS}, "number columns"),
    "decimalChar of an integer": ({"type": "integer", "decimalChar": ",", **RANGE}, "no decimals"),
    "duration": ({"type": "duration"}, '"number"'),
    "email": ({"type": "string", "format": "email", "constraints": {"enum": ["a"]}}, "leave 'email' out"),
    "exclusiveMaximum": (
        {"type": "date", "constraints": {"exclusiveMaximum": "2024-03-01"}},
        '"maximum": "2024-02-29"',
    ),
    "exclusiveMinimum": ({"type": "integer", "constraints": {"exclusiveMinimum": 0}}, '"minimum": 1'),
    "format without directives": ({"type": "date", "format": "DD/MM/YYYY", **DAYS}, "%d/%m/%Y"),
    "format without a year": ({"type": "date", "format": "%d/%m", **DAYS}, "needs the year"),
    "geojson": ({"type": "geojson"}, "longitude"),
    "geopoint": ({"type": "geopoint"}, "longitude"),
    "groupChar of text": ({"type": "string", "groupChar": ",", "constraints": {"enum": ["a"]}}, "number columns"),
    "jsonSchema": ({"type": "string", "constraints": {"jsonSchema": {}}}, "leave it out"),
    "length": ({"type": "string", "constraints": {"enum": ["a"], "minLength": 2}}, "minLength"),
    "list": ({"type": "list"}, "leave the column out"),
    "many years of two digits": (
        {"type": "date", "format": "%d.%m.%y", "constraints": {"minimum": "1900-01-01", "maximum": "2030-01-01"}},
        "100 years",
    ),
    "object": ({"type": "object"}, "leave the column out"),
    "one sign for both": ({"type": "number", "groupChar": ".", **RANGE}, "decimalChar"),
    "pattern": ({"type": "string", "constraints": {"pattern": "a+", "enum": ["a"]}}, "constraints.enum"),
    "same texts": ({"type": "boolean", "trueValues": ["x"], "falseValues": ["x"]}, "share a text"),
    "time": ({"type": "time"}, "minutes since midnight"),
    "time of a date": ({"type": "date", "format": "%d/%m/%Y %H:%M", **DAYS}, "type datetime"),
    "typing error": ({"type": "number", "decimlChar": ",", **RANGE}, "is decimalChar meant?"),
    "unique": ({"type": "integer", "constraints": {"unique": True, "minimum": 0, "maximum": 9}}, "leave it out"),
    "unknown directive": ({"type": "date", "format": "%d/%m/%Y %Q", **DAYS}, "%Q"),
    "unknown type": ({"type": "varchar"}, "'string'"),
    "year": ({"type": "year"}, '"integer"'),
    "yearmonth": ({"type": "yearmonth"}, "constraints.enum"),
    "zone": ({"type": "datetime", "timezone": "Mars/Olympus", **DAYS}, "Europe/Paris"),
    "large bounds": ({"type": "integer", "constraints": {"minimum": 0, "maximum": 2**60}}, "enum"),
    "large numbers": ({"type": "number", "constraints": {"enum": [2**60, 2**60 + 1]}}, "type integer"),
    "codes without quotes": ({"type": "string", "constraints": {"enum": [42]}}, '"0311"'),
}


@pytest.mark.parametrize("case", BAD)
def test_other_words_are_refused_by_column_and_say_what_to_write(case):
    field, said = BAD[case]
    with pytest.raises(InvalidSchema) as caught:
        parsed(field)
    sentence = caught.value.detail
    assert "column 'Price, net'" in sentence
    assert said in sentence
    assert "fields." not in sentence
    assert "Extra inputs" not in sentence


@pytest.mark.parametrize("word", ["primaryKey", "foreignKeys", "uniqueKeys", "fieldsMatch", "resources", "colour"])
def test_words_of_a_table_are_refused_in_a_sentence(word):
    with pytest.raises(InvalidSchema, match=f"schema: {word}: .*leave it out|data package"):
        parse_table_schema({"fields": [{"name": "x", "type": "boolean"}], word: ["x"]})
    assert parse_table_schema({"fields": [{"name": "x", "type": "boolean"}], "fieldsMatch": "equal"}).names == ("x",)


SWALLOWED = [
    ({"type": "string", "constraints": {"enum": ["NA", "ZA"]}}, ["", "NA"]),
    ({"type": "string", "constraints": {"enum": [" NA ", "ZA"]}}, ["NA"]),
    ({"type": "string", "constraints": {"enum": ["", "ZA"]}}, [""]),
    ({"type": "integer", "constraints": {"enum": [1, 99]}}, ["99.0"]),
    ({"type": "number", "constraints": {"enum": [1.5, -1]}}, ["-1"]),
    ({"type": "integer", "constraints": {"minimum": 0, "maximum": 999}}, ["999"]),
    ({"type": "integer", "constraints": {"minimum": 0, "maximum": 1000}}, ["999"]),
    ({"type": "integer", "missingValues": ["0"], "constraints": {"minimum": 0, "maximum": 1000}}, [""]),
    ({"type": "boolean", "trueValues": ["Yes"], "falseValues": ["No"]}, ["No"]),
    ({"type": "boolean"}, ["0"]),
    ({"type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "9999-12-31"}}, ["9999-12-31"]),
]


@pytest.mark.parametrize(("field", "markers"), SWALLOWED, ids=range(len(SWALLOWED)))
def test_a_marker_that_is_a_declared_value_is_refused_but_old_declarations_still_load(field, markers):
    with pytest.raises(
        InvalidSchema, match=r"column 'Price, net': .* makes it missing: give this column missingValues"
    ):
        parsed(field, missingValues=markers)
    assert TableSchema.model_validate({"fields": [{"name": "x", **field}], "missingValues": markers}).names == ("x",)


def test_a_field_s_own_markers_stand_in_place_of_the_table_s():
    schema = parsed({"type": "string", "missingValues": [""], "constraints": {"enum": ["NA"]}}, missingValues=["NA"])
    assert schema.missing_values_of(schema.fields[0]) == ("",)
    labelled = parsed({"type": "boolean"}, missingValues=[{"value": "-", "label": "not asked"}, ""])
    assert labelled.missing_values == ("-", "")


def test_a_pattern_falls_into_directives_and_texts():
    assert parts_of("%-d.%m.%Y") == [Part("d", "-"), Part(None, "."), Part("m", ""), Part(None, "."), Part("Y", "")]
    assert parts_of("%T%%") == [*parts_of("%H:%M:%S"), Part(None, "%")]


def test_clocks_of_a_zone_are_set_when_it_says():
    berlin = {offset.start: (offset.seconds, offset.name) for offset in offsets_of("Europe/Berlin")}
    assert berlin[1_711_846_800] == (7_200, "CEST")  # 2024-03-31T01:00:00Z
    assert berlin[1_729_990_800] == (3_600, "CET")  # 2024-10-27T01:00:00Z
