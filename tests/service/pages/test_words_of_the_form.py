"""What a draft says of a file, in the words of the page's form: it has no `dialect`, and asks for no schema."""

import json

import pytest

from service.base.carried import packed, unpacked
from service.base.errors import InvalidFile
from service.base.messages import said
from service.domain.table_schema import parse_table_schema
from service.intake.table.canonical import ColumnReader
from service.intake.table.draft import draft_table
from service.pages.findings import findings_of, notices_of, refusal_of
from service.pages.languages import language_named

ROWS = "".join(f"{'mf'[row % 2]};{row};a\n" for row in range(40))
TEXTS = {
    "a row of its own length": ("sex;age;k\n" + ROWS + "m;7\n", "(row 41 below the header). Correct these rows"),
    "nothing in common": ("a list;of\nsex;age;k\n" + ROWS + "all;40\n", "save it again as CSV."),
    "a last column without a name": ("sex;age;k;\n" + ROWS.replace("a\n", "a;b\n"), "Name it in the first line of the file"),
    "bytes of no encoding": (b"K\xc3\xb6ln,a\nK\xff\x81ln,b\n", "(the header is in line 1) holds bytes that no such text has. Save it in"),
    "quotes below a title": ("A list\n\nsex,age,k\n" + ROWS.replace(";", ",") + 'm,"7,a,"b"c"\n', "again as CSV."),
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_a_refusal_says_what_can_be_done_without_a_schema(tmp_path, name):
    text, words = TEXTS[name]
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InvalidFile) as refused:
        draft_table(path)
    told = refusal_of(refused.value)
    shown, german = (said(told.detail, language_named(code)) for code in ("en", "de"))
    assert words in shown
    assert not any(word in text for word in ("dialect", "schema") for text in (shown, german))
    assert german != shown
    assert told.values == refused.value.values


def test_notices_and_findings_name_no_words_of_a_schema(tmp_path):
    path = tmp_path / "table.csv"
    rows = "".join(f",{['Köln', 'Bonn', 'k.A.'][row % 3]},{'kg' if row == 0 else row}\n" for row in range(60))
    path.write_bytes(f",Ort,weight\n{rows}".encode("cp1252"))
    draft = draft_table(path)
    findings = {one.name: [packed(each.beside_the_column()) for each in one.findings] for one in draft.columns}
    shown = {"findings": findings, "notices": [packed(each) for each in draft.notices]}
    said_of_it = [*notices_of(shown), *(each for name in findings for each in findings_of(shown, name))]
    told = [said(each, language_named("en")) for each in said_of_it]
    assert any("save the file in UTF-8" in each for each in told)
    assert any("take them out of the other ways to write a missing value" in each for each in told)
    assert not any(word in each for each in told for word in ("dialect", "missingValues"))


@pytest.mark.parametrize(
    ("field", "english", "german"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 9}, "(whole numbers), spelled like 42", "(ganze Zahlen), "),
        ({"type": "number", "minimum": 0, "maximum": 9}, "(numbers with a fraction)", "(Kommazahlen)"),
        ({"type": "date", "minimum": "2020-01-01", "maximum": "2020-02-01"}, "(dates)", "(Tage)"),
        ({"type": "boolean"}, "(yes or no), spelled true or false", "(ja oder nein)"),
    ],
)
def test_a_refusal_of_cells_calls_a_column_what_the_form_does(field, english, german):
    """The API names the type of its schema, as before."""
    kind, bounds = field["type"], {word: end for word, end in field.items() if word != "type"}
    schema = {"fields": [{"name": "x", "type": kind, "constraints": {**bounds, "required": True}}]}
    reader = ColumnReader(parse_table_schema(schema).fields[0], [""])
    reader.wrong_type, reader.missing, reader.undeclared = 3, 1, 2
    told = [unpacked(json.loads(json.dumps(packed(each.what)))) for each in reader.problems()]  # out of its child
    assert str(told[0]).startswith(f"3 cells are not of type {kind}, spelled")
    shown, in_german = ([said(each, language_named(code)) for each in told] for code in ("en", "de"))
    assert shown[0].startswith("3 cells are not what the column holds (")
    assert english in shown[0]
    assert in_german[0].startswith("3 Zellen sind nicht, was die Spalte enthält (")
    assert german in in_german[0]
    assert not any(word in each for each in (*shown, *in_german) for word in ("of type", "enum", "required"))
