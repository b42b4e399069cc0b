"""What a draft says of a file, in the words of the page's form: it has no `dialect`, and asks for no schema."""

import pytest

from service.base.carried import packed
from service.base.errors import InvalidFile
from service.base.messages import said
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
