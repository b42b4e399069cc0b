"""Dialects of CSV: declared and read back, proposed by a draft, and refused with what to declare where none is said."""

from __future__ import annotations

import csv
import io
import json

import polars as pl
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from service.base.errors import InvalidFile, InvalidSchema
from service.domain.dialect import ENCODINGS, Dialect
from service.domain.table_schema import parse_table_schema
from service.intake.limits import IngestLimits
from service.intake.table.draft import draft_schema

MARKER = "Zanzibar-90210.75"
SCHEMA = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        {"name": "town", "type": "string", "constraints": {"enum": ["Ulm", "Bern", "Köln"]}},
    ]
}
ROWS = [["41", "Ulm"], ["65", "Bern"], ["30", "Köln"]]
AGES = [41, 65, 30]


def _schema(**dialect):
    return parse_table_schema(SCHEMA | ({"dialect": dialect} if dialect else {}))


def _csv(rows=ROWS, header=("age", "town"), **options) -> str:
    text = io.StringIO()
    csv.writer(text, **options).writerows([*([header] if header else []), *rows])
    return text.getvalue()


DIALECTS: dict[str, tuple[bytes, dict[str, object]]] = {
    "semicolons": (_csv(delimiter=";").encode(), {"delimiter": ";"}),
    "tabs": (_csv(delimiter="\t").encode(), {"delimiter": "\t"}),
    "bars": (_csv(delimiter="|").encode(), {"delimiter": "|"}),
    "single quotes": (_csv(quotechar="'", quoting=csv.QUOTE_ALL).encode(), {"quoteChar": "'"}),
    "UTF-16": (_csv().encode("utf-16"), {"encoding": "utf-16"}),
    "UTF-16, big end first": (b"\xfe\xff" + _csv().encode("utf-16-be"), {"encoding": "utf-16"}),
    "UTF-16 without a mark": (_csv().encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "UTF-32": (_csv().encode("utf-32"), {"encoding": "utf-32"}),
    "Windows-1252": (_csv().encode("cp1252"), {"encoding": "windows-1252"}),
    "Windows-1252 and semicolons": (
        _csv(delimiter=";").encode("cp1252"),
        {"encoding": "windows-1252", "delimiter": ";"},
    ),
    "UTF-16 and tabs": (_csv(delimiter="\t").encode("utf-16"), {"encoding": "utf-16", "delimiter": "\t"}),
    "comments": (f"# written\n# today, at noon\n{_csv()}".encode(), {"commentChar": "#"}),
    "a title": (f"Report of 2024\n\n{_csv()}".encode(), {"headerRows": [3]}),
    "a title and semicolons": (
        f"Report of 2024\n{_csv(delimiter=';')}".encode(),
        {"delimiter": ";", "headerRows": [2]},
    ),
    "Excel's first line": (f"sep=;\r\n{_csv(delimiter=';')}".encode(), {"delimiter": ";", "headerRows": [2]}),
    "line ends of old Macs": (_csv(delimiter=";", lineterminator="\r").encode(), {"delimiter": ";"}),
}


@pytest.mark.parametrize("case", DIALECTS)
def test_a_dialect_is_read_as_declared_and_proposed_by_a_draft(case, reader):
    content, words = DIALECTS[case]
    path = reader.write(content)
    answer, table = reader.read(path, _schema(**words))
    assert (table["age"].to_list(), table["town"].to_list()) == (AGES, ["Ulm", "Bern", "Köln"])
    usual, _ = reader.read(reader.write(_csv()), _schema())
    assert (answer["fingerprints"], answer["columns"]) == (usual["fingerprints"], usual["columns"])
    drafted = draft_schema(path)
    assert drafted["dialect"] == words
    assert reader.read(path, parse_table_schema(drafted))[0]["rows"] == 3


DECIMAL_COMMAS = {
    "two lines of titles": (
        "Klinik;;\nStand 2024;;\nage;town;cost\n41;Ulm;1,5\n65;Bern;2,5\n",
        {"delimiter": ";", "headerRows": [3]},
    ),
    "a comma in a name": ("age, years;cost\n41;1,5\n65;2,5\n", {"delimiter": ";"}),
    "tabs": ("age, years\tcost\n41\t1,5\n65\t2,5\n", {"delimiter": "\t"}),
}


@pytest.mark.parametrize("case", DECIMAL_COMMAS)
def test_a_comma_between_digits_is_no_delimiter_where_another_fits(case, reader):
    """Both cut every row into as many cells as the names."""
    content, words = DECIMAL_COMMAS[case]
    content += content.splitlines()[-1] + "\n" + content.splitlines()[-2] + "\n"
    drafted = draft_schema(reader.write(content))
    assert drafted["dialect"] == words
    assert [field.get("decimalChar") for field in drafted["fields"]][-1] == ","


@pytest.mark.parametrize("content", [",x\n0,5\n1,6\n", "Age,\n1,\n2,\n", "a,,\n1,2,3\n", "x\n1\n2\n", "a,b\n"])
def test_a_header_with_few_names_is_no_title(content, reader):
    """As pandas writes its index, and files whose rows end in a comma."""
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(content), _schema())
    assert "headerRows" not in caught.value.detail


@pytest.mark.parametrize("case", DIALECTS)
def test_without_the_dialect_the_refusal_says_what_to_declare(case, reader):
    content, words = DIALECTS[case]
    with pytest.raises(InvalidFile) as caught:
        reader.read(reader.write(content), _schema())
    assert f'"dialect": {json.dumps(words)}' in caught.value.detail


READ_ONLY: dict[str, tuple[str, dict[str, object]]] = {
    "escaped quotes": ('age,town\n"41","Ulm"\n65,"Be\\"rn"\n30,K\\,l\n', {"escapeChar": "\\", "doubleQuote": False}),
    "spaces before quotes": ('age, town\n41, "Ulm"\n65, "Be""rn"\n30, "K,l"\n', {"skipInitialSpace": True}),
    "no quotes": ('age;town\n41;Ulm\n65;Be"rn\n30;K,l\n', {"delimiter": ";", "quoteChar": ""}),
    "two rows of names": ('age,to\n,wn\n41,Ulm\n65,"Be""rn"\n30,"K,l"\n', {"headerRows": [1, 2], "headerJoin": ""}),
    "no header": ('41,Ulm\n65,"Be""rn"\n30,"K,l"\n', {"header": False, "names": ["age", "town"]}),
    "no header, comments": (
        '#x\n41,Ulm\n65,"Be""rn"\n#y\n30,"K,l"\n',
        {"header": False, "names": ["age", "town"], "commentChar": "#"},
    ),
    "other names": ('Age (years),\n41,Ulm\n65,"Be""rn"\n30,"K,l"\n', {"names": ["age", "town"]}),
}


@pytest.mark.parametrize("case", READ_ONLY)
def test_other_words_are_honoured(case, reader):
    content, words = READ_ONLY[case]
    document = json.loads(json.dumps(SCHEMA))
    document["fields"][1]["constraints"]["enum"] = ["Ulm", 'Be"rn', "K,l"]
    _, table = reader.read(reader.write(content), parse_table_schema(document | {"dialect": words}))
    assert (table["age"].to_list(), table["town"].to_list()) == (AGES, ["Ulm", 'Be"rn', "K,l"])


def test_comment_lines_within_a_quoted_cell_are_none(reader):
    schema = parse_table_schema(
        {
            "fields": [{"name": "x", "type": "string", "constraints": {"enum": ["a\n#b", "c"]}}],
            "dialect": {"commentChar": "#"},
        }
    )
    assert reader.read(reader.write('#z\nx\n"a\n#b"\n#d\nc\n'), schema)[1]["x"].to_list() == ["a\n#b", "c"]


def test_a_null_sequence_is_one_more_missing_value(reader):
    schema = _schema(nullSequence="\\N")
    assert schema.missing_values == ("", "\\N")
    answer, table = reader.read(reader.write("age,town\n41,\\N\n\\N,Ulm\n"), schema)
    assert table.rows() == [(41, None), (None, "Ulm")]
    declared = parse_table_schema(SCHEMA | {"missingValues": ["", "\\N"]})
    assert reader.read(reader.write("age,town\n41,\\N\n\\N,Ulm\n"), declared)[0] == answer
    assert parse_table_schema(schema.as_json()) == schema


def test_a_schema_without_a_dialect_is_stored_as_before():
    assert _schema().as_json() == SCHEMA


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"delimeter": ";"}, "there is no word 'delimeter'; the words are"),
        ({"sheetName": "a"}, "write it as sheet"),
        ({"commentRows": [1]}, "headerRows"),
        ({"property": "a"}, "JSON lines"),
        ({"delimiter": "||"}, "one ASCII character"),
        ({"delimiter": ""}, "one character"),
        ({"delimiter": '"'}, "different characters"),
        ({"lineTerminator": ";"}, "found by reading"),
        ({"encoding": "rot13"}, "is not one of utf-8"),
        ({"doubleQuote": False}, "escapeChar must say"),
        ({"header": False}, "names must list"),
        ({"headerRows": [2, 1]}, "must increase"),
        ({"headerRows": []}, "header: false"),
        ({"names": ["a", "a"]}, "must be different"),
        ({"names": [" a"]}, "not begin or end"),
    ],
)
def test_words_that_mean_nothing_are_refused_in_a_sentence(words, sentence):
    with pytest.raises(InvalidSchema, match=sentence):
        _schema(**words)


def test_annotations_and_line_ends_may_stand_in_a_dialect():
    dialect = Dialect.model_validate(
        {"$schema": "x", "csvddfVersion": 1.2, "lineTerminator": "\r\n", "encoding": "Latin1"}
    )
    assert dialect.as_json() == {"encoding": "iso-8859-1"}


def test_every_encoding_of_the_list_can_be_read(reader):
    for encoding in ENCODINGS:
        path = reader.write(_csv([["41", "Ulm"], ["65", "Bern"]]).encode(encoding.replace("windows-", "cp")))
        assert reader.read(path, _schema(encoding=encoding))[0]["rows"] == 2, encoding


def test_text_that_may_be_of_many_encodings_is_not_proposed(reader, says_nothing):
    """Cyrillic in Windows-1251 is Western gibberish in Windows-1252."""
    path = reader.write("age,town\n41,Москва\n65,Казань\n".encode("cp1251"))
    with pytest.raises(InvalidFile, match=r"line 2.*Declare its encoding") as caught:
        reader.read(path, _schema())
    says_nothing(caught.value)
    assert caught.value.values["line"] == 2


def test_bytes_that_the_declared_encoding_has_not_are_named_by_line(reader):
    content = "age,town\n41,Ulm\n65,Bern\n".encode("cp1252") + b"30,K\x81ln\n"
    with pytest.raises(InvalidFile, match="not WINDOWS-1252 text: line 4"):
        reader.read(reader.write(content), _schema(encoding="windows-1252"))


@pytest.mark.parametrize("header", ["age,town,", "age,town"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_delimiter_at_the_end_of_every_row_is_dropped_with_a_notice(header, end, reader):
    path = reader.write(end.join([header, "41,Ulm,", "65,Bern,", "30,Köln,", ""]))
    answer, table = reader.read(path, _schema())
    assert table["age"].to_list() == AGES
    assert [notice for notice in answer["notices"] if "ends in a delimiter" in notice]
    assert [field["name"] for field in draft_schema(path)["fields"]] == ["age", "town"]
    assert answer["fingerprints"] == reader.read(reader.write(_csv()), _schema())[0]["fingerprints"]


def test_a_last_column_without_a_name_but_with_values_is_not_dropped(reader, says_nothing):
    path = reader.write(f"age,town,\n41,Ulm,\n65,Bern,{MARKER}\n30,Köln,\n1,Ulm,{MARKER}\n")
    with pytest.raises(InvalidFile, match=r"Column 3, the last.*in 2 rows \(rows 2, 4 below the header\)") as caught:
        reader.read(path, _schema())
    says_nothing(caught.value)


def test_rows_of_another_length_are_named(reader, says_nothing):
    rows = [f"{i % 100},Ulm" for i in range(300_000)]
    for place in (7, 100, 250_000):
        rows[place - 1] = f"1,Ulm,{MARKER}"
    with pytest.raises(InvalidFile, match=r"3 rows do not.*\(rows 7, 100, 250000 below the header\)") as caught:
        reader.read(reader.write("\n".join(["age,town", *rows, ""])), _schema(), limits=IngestLimits(line_bytes=65_536))
    says_nothing(caught.value)
    assert caught.value.values["rows"] == [7, 100, 250_000]


def test_wrong_cells_are_named_by_row(reader, says_nothing):
    rows = [f"{i % 100},Ulm" for i in range(300_000)]
    rows[4], rows[299_999] = f"{MARKER},Ulm", f"{MARKER},Ulm"
    with pytest.raises(InvalidFile, match=r"'age': 2 cells are not of type integer.*\(rows 5, 300000 below") as caught:
        reader.read(reader.write("\n".join(["age,town", *rows, ""])), _schema())
    says_nothing(caught.value)


def test_many_wrong_cells_are_named_by_the_first(reader):
    with pytest.raises(InvalidFile, match=r"8 cells are not.*\(rows 1, 2, 3, 4, 5, … below"):
        reader.read(reader.write("age,town\n" + "x,Ulm\n" * 8), _schema())


ODD = 'a b,"a\nb",\xa0Net\xa0amount,a b,{},'.format("x" * 210)


def test_names_that_no_schema_can_declare_are_given_by_position(reader):
    path = reader.write(f"{ODD}y\n" + "\n".join(["u,v,u,v,u,w", "v,u,v,u,v,w"] * 20))
    drafted = draft_schema(path)
    names = drafted["dialect"]["names"]
    assert names[:4] == ["a b", "a b 2", "Net amount", "a b 3"]
    assert (len(set(names)), max(map(len, names))) == (6, 190)
    answer, table = reader.read(path, parse_table_schema(drafted))
    assert table.columns == names
    assert answer["rows"] == 40
    del drafted["dialect"]
    with pytest.raises(InvalidFile, match=r'"dialect": \{"names": \["age", "sex"\]\}'):
        reader.read(path, parse_table_schema(drafted))


@pytest.mark.parametrize("names", [["age"], ["age", "town", "x"]])
def test_as_many_names_as_columns(names, reader):
    with pytest.raises(InvalidFile, match=f"names are {len(names)}, but the file has 2 columns"):
        reader.read(reader.write("a,b\n1,Ulm\n"), _schema(names=names))


def test_a_comma_in_names_of_a_file_with_semicolons(reader):
    path = reader.write("Age, in years;Region;Comment, if any\n" + "41;north;late, paid\n65;south;none\n" * 30)
    drafted = draft_schema(path)
    assert drafted["dialect"] == {"delimiter": ";"}
    assert [field["name"] for field in drafted["fields"]] == ["Age, in years", "Region", "Comment, if any"]


_TEXT = st.text(st.sampled_from("abü€ ,;|\t'\"\\#\n0"), min_size=1, max_size=8).map(str.strip).filter(bool)
"""Surrounding spaces are no part of a value."""


@st.composite
def _tables(draw: st.DrawFn) -> list[list[str]]:
    width = draw(st.integers(2, 4))
    row = st.lists(_TEXT, min_size=width, max_size=width)
    return draw(st.lists(row, min_size=2, max_size=8))


@pytest.mark.slow
@given(
    rows=_tables(),
    delimiter=st.sampled_from(",;\t|:~"),
    quote=st.sampled_from("\"'"),
    escapes=st.booleans(),
    everything=st.booleans(),
    comments=st.booleans(),
    header=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-le", "utf-32", "iso-8859-15", "windows-1252"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_table_in_any_dialect_reads_back_equal(
    rows, delimiter, quote, escapes, everything, comments, header, encoding, end, reader
):
    assume(not (comments and any(row[0].startswith("#") for row in rows) and not everything))
    names = [f"column {place}" for place in range(len(rows[0]))]
    text = io.StringIO(newline="")
    writer = csv.writer(
        text,
        delimiter=delimiter,
        quotechar=quote,
        doublequote=not escapes,
        escapechar="\\" if escapes else None,
        quoting=csv.QUOTE_ALL if everything else csv.QUOTE_MINIMAL,
        lineterminator=end,
    )
    for row in [*([names] if header else []), *rows]:
        writer.writerow(row)
        if comments:
            text.write(f'#no row, {quote} and "{end}')
    words = {"delimiter": delimiter, "quoteChar": quote, "encoding": encoding, "doubleQuote": not escapes}
    words |= {"escapeChar": "\\"} if escapes else {}
    words |= {"commentChar": "#"} if comments else {}
    words |= {} if header else {"header": False, "names": names}
    fields = [
        {"name": name, "type": "string", "constraints": {"enum": sorted({row[place] for row in rows})}}
        for place, name in enumerate(names)
    ]
    schema = parse_table_schema({"fields": fields, "missingValues": [], "dialect": words})
    path = reader.write(text.getvalue().encode(encoding.replace("windows-", "cp")))
    _, table = reader.read(path, schema)
    assert table.rows() == [tuple(row) for row in rows]


@pytest.mark.slow
@given(rows=_tables(), delimiter=st.sampled_from(",;\t|"), encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-le"]))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_draft_proposes_is_right_or_nothing_is_read(rows, delimiter, encoding, reader):
    """With a plain header and enough rows, the proposed delimiter and encoding are those the file was written with."""
    names = [f"column{place}" for place in range(len(rows[0]))]
    text = _csv(rows * 30, names, delimiter=delimiter, quoting=csv.QUOTE_ALL)
    words = draft_schema(reader.write(text.encode(encoding))).get("dialect", {})
    assert words.get("delimiter", ",") == delimiter
    assert words.get("encoding", "utf-8") == encoding


def test_a_dialect_takes_no_other_way_in_the_reading_process(reader):
    """The frame of a usual file is the same with every word of the dialect written out."""
    path = reader.write(_csv())
    words = {
        "delimiter": ",",
        "quoteChar": '"',
        "doubleQuote": True,
        "header": True,
        "headerRows": [1],
        "encoding": "utf-8",
    }
    assert reader.read(path, _schema(**words))[1].equals(reader.read(path, _schema())[1])
    assert isinstance(reader.read(path, _schema())[1], pl.DataFrame)


@pytest.mark.parametrize(
    "dialect",
    [
        {"delimiter": ";", "encoding": "windows-1252"},
        {"delimiter": "\t", "encoding": "utf-16"},
        {"quoteChar": "'", "delimiter": "|"},
        {"headerRows": [3]},
        {"headerRows": [1, 2]},
        {"header": False, "names": ["age", "town"]},
        {"header": False, "names": ["age", "town"], "delimiter": ";"},
    ],
)
def test_a_plain_file_of_all_declared_columns_is_read_beside_the_dialect(dialect, reader):
    """As samples are written."""
    usual, _ = reader.read(reader.write(_csv()), _schema())
    answer, table = reader.read(reader.write(_csv()), _schema(**dialect))
    assert (table["age"].to_list(), table["town"].to_list()) == (AGES, ["Ulm", "Bern", "Köln"])
    assert (answer["fingerprints"], answer["columns"]) == (usual["fingerprints"], usual["columns"])
    assert any("read as plain CSV" in notice for notice in answer["notices"])


@pytest.mark.parametrize("header", [["age", "town", "more"], ["age"], ["age", "Town"]])
def test_a_plain_file_of_other_columns_is_not(header, reader):
    rows = [(["41", "Ulm", "x"])[: len(header)]] * 3
    with pytest.raises(InvalidFile):
        reader.read(reader.write(_csv(rows, header)), _schema(delimiter=";", headerRows=[1]))


def test_what_the_dialect_finds_is_read_by_it(reader):
    """A name with a comma is a name of the dialect, and no plain header."""
    fields = [{**field, "name": name} for field, name in zip(SCHEMA["fields"], ["a,b", "c"], strict=True)]
    schema = parse_table_schema({"fields": fields, "dialect": {"delimiter": ";"}})
    answer, table = reader.read(reader.write("a,b;c\n41;Ulm\n65;Bern\n"), schema)
    assert (table["a,b"].to_list(), answer["notices"]) == ([41, 65], [])


@pytest.mark.parametrize(
    "dialect",
    [
        {"encoding": "windows-1252", "delimiter": ";"},
        {"encoding": "utf-16"},
        {"names": ["row", "town", "age"], "encoding": "utf-16"},
    ],
)
def test_json_lines_are_utf8_and_have_their_own_names_under_any_dialect(dialect, reader):
    lines = "".join(json.dumps({"age": int(age), "town": town}, ensure_ascii=False) + "\n" for age, town in ROWS)
    answer, table = reader.read(reader.write(lines), _schema(**dialect))
    assert (table["age"].to_list(), table["town"].to_list()) == (AGES, ["Ulm", "Bern", "Köln"])
    assert any("JSON lines are always UTF-8" in notice for notice in answer["notices"])


SINGLE_BYTES = ["windows-1252", "windows-1250", "iso-8859-1", "iso-8859-15", "mac-roman", "cp437", "koi8-r"]
TOWNS = ("Ulm", "Bern", "Köln")


@pytest.mark.parametrize("encoding", [*SINGLE_BYTES, "shift_jis", "gb18030", "utf-16", "utf-16-le"])
def test_plain_utf8_under_another_encoding_is_read_as_what_it_is(reader, encoding):
    """As our own samples are written. Every byte is a letter of most of these, so nothing would have been refused."""
    towns = [*TOWNS, "東京"]
    schema = parse_table_schema(
        {
            "fields": [{"name": "town", "type": "string", "constraints": {"enum": towns}}],
            "dialect": {"encoding": encoding},
        }
    )
    for mark in ("", "\ufeff"):
        answer, canonical = reader.read(reader.write("\n".join([f"{mark}town", *towns * 8, ""])), schema)
        assert canonical["town"].to_list() == towns * 8
        assert any("read as plain CSV" in notice for notice in answer["notices"])


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        *(
            (encoding, text)
            for encoding in SINGLE_BYTES
            for text in ("age;town\n41;Köln\n", "\ufeffage;town\n41;Ulm\n")
        ),
        *(("gb18030", text) for text in ("\ufeffage;town\n41;Ulm\n", "age;town\n41;東京\n")),
    ],
)
def test_utf8_in_the_dialect_but_for_its_encoding_is_refused_with_what_to_write(reader, encoding, content):
    with pytest.raises(InvalidFile, match=r'The file is UTF-8 text.*"encoding": "utf-8"'):
        reader.read(reader.write(content), _schema(encoding=encoding, delimiter=";"))


def test_utf16_under_an_encoding_of_single_bytes_is_refused_with_what_to_write(reader):
    content = _csv(delimiter=";").encode("utf-16")
    with pytest.raises(InvalidFile, match='"encoding": "utf-16"'):
        reader.read(reader.write(content), _schema(encoding="windows-1252", delimiter=";"))


def test_windows_text_declared_as_that_of_iso_is_refused_with_the_line(reader):
    content = "age;town\n41;Köln\n30;5 €\n".encode("cp1252")
    with pytest.raises(InvalidFile, match=r"line 3 .*windows-1252") as refused:
        reader.read(reader.write(content), _schema(encoding="iso-8859-1", delimiter=";"))
    assert refused.value.values["line"] == 3
    kept = "age;town\n41;Köln\n30;Bern\n".encode("iso-8859-1")
    assert reader.read(reader.write(kept), _schema(encoding="iso-8859-1", delimiter=";"))[1]["town"][0] == "Köln"


def test_a_name_that_a_schema_can_have_stays_in_a_draft(reader):
    """Two spaces, and letters of two characters: the file has them, so the schema must."""
    names = ["net  amount", "Gro\u0308\u00dfe"]
    path = reader.write("\n".join([",".join(names), *["1,a", "2,b"] * 40]) + "\n")
    drafted = draft_schema(path)
    assert [field["name"] for field in drafted["fields"]] == names
    reader.read(path, parse_table_schema(drafted))
