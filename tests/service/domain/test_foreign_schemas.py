"""Declarations of other tools become ours; what is not carried over, or is to be added, is said by column."""

import json

import pytest

from service.base.errors import InvalidSchema
from service.domain.foreign.converting import convert
from service.domain.table_schema import parse_table_schema

FRICTIONLESS = {
    "name": "visits",
    "resources": [
        {
            "name": "visits",
            "dialect": {"delimiter": ";"},
            "schema": {
                "primaryKey": "id",
                "missingValues": ["", {"value": "-", "label": "not asked"}],
                "fields": [
                    {"name": "born", "type": "year", "constraints": {"minimum": 1900, "exclusiveMaximum": 2025}},
                    {
                        "name": "seen",
                        "type": "date",
                        "format": "%d/%m/%Y",
                        "constraints": {"minimum": "2020-01-01", "maximum": "2024-12-31"},
                    },
                    {
                        "name": "paid",
                        "type": "number",
                        "decimalChar": ",",
                        "constraints": {"minimum": 0, "maximum": 10, "unique": True},
                    },
                    {"name": "ok", "type": "boolean", "trueValues": ["Yes"], "falseValues": ["No"]},
                    {"name": "sex", "type": "string", "categories": ["F", {"value": "M", "label": "male"}]},
                    {"name": "where", "type": "geopoint"},
                    {"name": "note", "type": "string", "format": "email"},
                ],
            },
        }
    ],
}
SDV = {
    "METADATA_SPEC_VERSION": "SINGLE_TABLE_V1",
    "primary_key": "guest_email",
    "columns": {
        "guest_email": {"sdtype": "email", "pii": True},
        "has_rewards": {"sdtype": "boolean"},
        "room_type": {"sdtype": "categorical"},
        "amenities_fee": {"sdtype": "numerical", "computer_representation": "Float"},
        "nights": {"sdtype": "numerical", "computer_representation": "Int64"},
        "checkin_date": {"sdtype": "datetime", "datetime_format": "%d %b %Y"},
    },
}
PANDERA = {
    "schema_type": "dataframe",
    "version": "0.20.4",
    "index": None,
    "columns": {
        "age": {
            "dtype": "int64",
            "nullable": False,
            "checks": {"in_range": {"min_value": 0, "max_value": 120, "include_min": True, "include_max": False}},
        },
        "rate": {
            "dtype": "float64",
            "nullable": True,
            "checks": [
                {"value": 0.5, "options": {"check_name": "greater_than_or_equal_to"}},
                {"value": 9, "options": {"check_name": "less_than"}},
            ],
        },
        "kind": {
            "dtype": "object",
            "nullable": False,
            "checks": {"isin": ["a", "b"], "str_length": {"min_value": 1, "max_value": 1}},
        },
        "flag": {"dtype": "bool", "nullable": False, "checks": None, "unique": True},
    },
}
CSVW = {
    "@context": "http://www.w3.org/ns/csvw",
    "url": "trees.csv",
    "tableSchema": {
        "columns": [
            {
                "name": "inv",
                "titles": "Inventory Date",
                "datatype": {"base": "date", "format": "dd.MM.yyyy", "minimum": "2020-01-01", "maximum": "2024-12-31"},
            },
            {
                "titles": ["Height", "H"],
                "datatype": {
                    "base": "decimal",
                    "format": {"decimalChar": ",", "groupChar": "."},
                    "minInclusive": "0",
                    "maxInclusive": 50,
                },
            },
            {"titles": "Alive", "datatype": {"base": "boolean", "format": "J|N"}, "null": ["?"], "required": True},
            {"titles": "Rings", "datatype": {"base": "integer", "minExclusive": 0, "maximum": 999}},
            {"titles": "Tags", "separator": ";"},
        ]
    },
}


def names(found):
    return [field["name"] for field in found.fields]


def test_a_data_package_keeps_its_words_and_says_what_it_loses():
    found = convert(FRICTIONLESS)
    fields = {field["name"]: field for field in found.fields}
    assert names(found) == ["born", "seen", "paid", "ok", "sex", "note"]
    assert fields["born"] == {"name": "born", "type": "integer", "constraints": {"minimum": 1900, "maximum": 2024}}
    assert (fields["seen"]["format"], fields["paid"]["decimalChar"]) == ("%d/%m/%Y", ",")
    assert fields["sex"]["constraints"] == {"enum": ["F", "M"]}
    assert found.table["missingValues"] == ["", "-"]
    said = "\n".join(found.notes)
    for word in (
        "'paid': constraints.unique",
        "'where': left out",
        "'note': format 'email'",
        "'note': to be added",
    ):
        assert word in said
    assert "column 'note'" in found.fault()
    found.fields.pop()
    assert found.fault() is None
    assert found.table["dialect"] == {"delimiter": ";"}
    assert convert(FRICTIONLESS["resources"][0]).fields == convert(FRICTIONLESS).fields
    assert convert(FRICTIONLESS["resources"][0]["schema"]).fields == convert(FRICTIONLESS).fields


def test_sdv_metadata_says_types_and_leaves_domains_to_be_added():
    found = convert(SDV)
    assert [(field["name"], field["type"], field.get("format")) for field in found.fields] == [
        ("guest_email", "string", None),
        ("has_rewards", "boolean", None),
        ("room_type", "string", None),
        ("amenities_fee", "number", None),
        ("nights", "integer", None),
        ("checkin_date", "date", "%d %b %Y"),
    ]
    said = "\n".join(found.notes)
    for word in (
        "'guest_email': it is a key",
        "'room_type': to be added: constraints.enum",
        "'nights': to be added: constraints.minimum",
    ):
        assert word in said
    assert convert({"tables": {"guests": SDV, "hotels": SDV}}, table="hotels").fields == found.fields
    with pytest.raises(InvalidSchema, match="--table: guests, hotels"):
        convert({"tables": {"guests": SDV, "hotels": SDV}})


def test_pandera_keeps_bounds_lists_and_nullable():
    found = convert(PANDERA)
    schema = parse_table_schema(found.as_json())
    assert [(f.name, f.type, f.constraints.required) for f in schema.fields] == [
        ("age", "integer", True),
        ("rate", "number", False),
        ("kind", "string", True),
        ("flag", "boolean", True),
    ]
    assert schema.fields[0].bounds == (0, 119)
    assert schema.fields[1].bounds == (0.5, 9)
    assert schema.fields[2].categories == ("a", "b")
    assert [
        note for note in found.notes if "str_length" in note or "exclusive" in note or "unique" in note
    ] == found.notes
    assert len(found.notes) == 3


def test_csvw_keeps_titles_formats_and_nulls():
    found = convert(CSVW)
    schema = parse_table_schema(found.as_json())
    assert schema.names == ("Inventory Date", "Height", "Alive", "Rings")
    assert schema.fields[0].format == "%d.%m.%Y"
    assert (schema.fields[1].decimal_char, schema.fields[1].group_char, schema.fields[1].bounds) == (",", ".", (0, 50))
    assert (schema.fields[2].true_values, schema.fields[2].missing_values) == (("J",), ("?",))
    assert schema.fields[3].bounds == (1, 999)
    assert found.notes == ["column 'Tags': left out: its cells hold lists"]


def test_a_key_of_one_column_is_an_identifier_and_a_dialect_stays():
    fields = [
        {"name": "id", "type": "integer"},
        {"name": "mail", "type": "string", "constraints": {"unique": True}},
        {"name": "ok", "type": "boolean"},
    ]
    package = {
        "encoding": "latin1",
        "dialect": {"csv": {"delimiter": ";", "quoteChar": "'", "header": False, "delimiterX": "?"}},
        "schema": {"primaryKey": ["id"], "fields": fields},
    }
    found = convert(package)
    schema = parse_table_schema(found.as_json())
    assert [field.role for field in schema.fields] == ["identifier", "identifier", None]
    assert found.table["dialect"] == {
        "encoding": "iso-8859-1",
        "delimiter": ";",
        "quoteChar": "'",
        "header": False,
        "names": ["id", "mail", "ok"],
    }
    assert "dialect.delimiterX is not carried over" in found.notes
    both = convert({"primaryKey": ["id", "ok"], "fields": fields})
    assert any("primaryKey" in note for note in both.notes)
    assert "role" not in both.fields[0]
    keyed = CSVW["tableSchema"] | {"primaryKey": "inv"}
    assert convert(CSVW | {"tableSchema": keyed}).fields[0] == {
        "name": "Inventory Date",
        "type": "string",
        "role": "identifier",
    }
    said = convert(CSVW | {"dialect": {"delimiter": ";"}}).notes[0]
    assert "into the schema" in said
    assert "upload" not in said


@pytest.mark.parametrize("constraints", ['{"minimum": 0, "maximum": 1e400}', '{"enum": [1, -1e400]}'])
def test_a_number_beyond_all_is_left_out(constraints):
    found = convert({"fields": [{"name": "x", "type": "number", "constraints": json.loads(constraints)}]})
    json.dumps(found.as_json(), allow_nan=False)
    assert any("not a finite number" in note for note in found.notes)
    assert any("to be added" in note for note in found.notes)


@pytest.mark.parametrize(
    "document", [[], {}, {"fields": 3}, {"columns": {"a": 1}}, {"tables": [3]}, {"resources": [{}]}]
)
def test_what_is_none_of_them_is_refused(document):
    with pytest.raises(InvalidSchema, match="schema: "):
        convert(document)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("0.00", {"decimals": 2, "trailingZeros": True}),
        ("#,##0.000", {"decimals": 3, "trailingZeros": True, "groupChar": ","}),
        ({"pattern": "#0.0", "decimalChar": ","}, {"decimals": 1, "trailingZeros": True, "decimalChar": ","}),
        ("0.###", {}),
    ],
)
def test_decimals_that_are_always_written_are_carried_over(written, words):
    datatype = {"base": "decimal", "format": written, "minimum": 0, "maximum": 9}
    found = convert({**CSVW, "tableSchema": {"columns": [{"titles": "net", "datatype": datatype}]}})
    field = {"name": "net", "type": "number", **words, "constraints": {"minimum": 0, "maximum": 9}}
    assert found.fields == [field]
    assert bool(found.notes) == (not words)
    assert convert({"fields": [field]}).fields == [field], "our own words are kept"
    assert found.fault() is None
