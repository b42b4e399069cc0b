"""What a draft protects, recognises and asks about. Each file is of a kind that once came out wrong."""

from __future__ import annotations

import json
import uuid

import pandas as pd
import polars as pl
import pytest

from imprimatur.personal_looks import INSIDE, look_of
from service.base.errors import InvalidFile
from service.domain.table_schema import parse_table_schema
from service.intake.table.draft import draft_table

ROWS = 400


def drafted(reader, columns, rows=ROWS, *, parquet=False):
    """A table of columns given as functions of the row, drafted; the schema must be one."""
    frame = pl.DataFrame({name: [make(row) for row in range(rows)] for name, make in columns.items()})
    return accepted(reader, reader.write(frame, parquet=parquet))


def accepted(reader, path):
    """The draft, by which the file that it was made of is read."""
    draft = draft_table(path)
    reader.read(path, parse_table_schema(json.loads(json.dumps(draft.schema))))
    return draft


def field(draft, name):
    """None where it has no domain: then it is not published as it is."""
    return next((one for one in draft.schema["fields"] if one["name"] == name and "role" not in one), None)


def said_of(draft, name):
    return " ".join(one.for_the_owner() for one in draft.findings if one.column == name)


SEX = {"sex": lambda row: "FM"[row % 2]}


# -- columns that stay out ---------------------------------------------------------------------------------------------

PERSONAL = {
    "mail": lambda row: f"person{row % 7}@example.org",
    "kontakt": lambda row: f"+49 30 {1000000 + row % 9}",
    "account": lambda row: f"DE89370400440532{row % 8:06}",
    "key": lambda row: str(uuid.UUID(int=row % 5)),
    "patient_id": lambda row: f"P{row % 40:03}",
    "subjectId": lambda row: row % 30,
    "badge": lambda row: f"AB-{row % 50:04}",
    "contract": lambda row: 181_516_234_200 + row * 1_979_190_211,
    "note": lambda row: f"came in with pain on the left side after a fall, seen by team {row % 19}",
    "name": lambda row: ["Anna Huber", "Max Gruber", "Eva Moser"][row % 3],
    "remark": lambda row: ["no complaints", "reports pain in the left knee since the fall on monday"][row % 5 == 1],
    "surname": lambda row: ["Kaya", "Weiss", "Moreau", "Olsen"][row % 4] + str(row % 30),
    "card": lambda row: f"{4_500_000_000_000_000 + row * 7_104_729_000_000}",
}


@pytest.mark.parametrize("rows", [40, ROWS])
@pytest.mark.parametrize("name", PERSONAL)
def test_what_points_to_a_person_is_left_out_and_none_of_it_is_in_the_draft(reader, name, rows):
    draft = drafted(reader, SEX | {name: PERSONAL[name]}, rows)
    assert field(draft, name) is None
    assert f"{name!r} (" in draft.schema["description"]
    assert all(
        str(PERSONAL[name](row)) not in json.dumps(draft.schema) for row in range(50) if row > 9 or name != "subjectId"
    )
    assert said_of(draft, name)


def test_a_persons_id_asks_whether_several_rows_are_one_person(reader):
    said = said_of(drafted(reader, SEX | {"customer": lambda row: row % 90}), "customer")
    assert "do several rows belong to one person?" in said.lower()
    assert "--privacy-unit" in said
    kinds = drafted(reader, {"customer": lambda row: ["business", "private"][row % 2]})
    assert field(kinds, "customer")["constraints"]["enum"] == ["business", "private"]


def test_a_value_that_occurs_once_is_not_listed_and_is_shown_to_the_owner_alone(reader):
    draft = drafted(reader, {"town": lambda row: "Zwiesel" if row == 3 else ["Ulm", "Bern"][row % 2]})
    assert field(draft, "town")["constraints"]["enum"] == ["Bern", "Ulm"]
    assert "'Zwiesel'" in said_of(draft, "town")
    assert "Zwiesel" not in json.dumps(draft.schema)
    few = drafted(reader, SEX | {"age": lambda row: 20 + row * 3}, rows=8)
    assert "enum" not in field(few, "age")["constraints"], "each number is of one row"


@pytest.mark.parametrize(
    "text",
    ["call 0171 2345678", "see anna@example.org", "ask (Bob <b@x.de>)", "fax +49 30 1234567", "dial 555-123-4567"],
)
def test_a_comment_that_holds_a_number_or_an_address_is_not_listed(reader, text):
    draft = drafted(reader, SEX | {"remark": lambda row: ["none", "late", "early", "moved", text][row % 5]})
    assert field(draft, "remark")["constraints"]["enum"] == ["early", "late", "moved", "none"]
    assert text not in json.dumps(draft.schema)
    assert "1 of its values hold an e-mail address or a phone number" in said_of(draft, "remark")


def test_a_column_in_which_every_shared_value_holds_one_is_left_out(reader):
    contacts = ["call 0171 2345678", "see anna@example.org"]
    draft = drafted(reader, SEX | {"remark": lambda row: contacts[row % 2]})
    assert field(draft, "remark") is None
    assert "left out: all values that rows share hold" in said_of(draft, "remark").lower()
    assert not any(text in json.dumps(draft.schema) for text in contacts)


@pytest.mark.parametrize(
    "text",
    [
        *("+49 30 123456", "0049 30 123456", "0041443321234", "030/123456", "(030) 123456", "0171-2345678"),
        *("(212) 555-0100", "212-555-0100", "1-212-555-0100", "212.555.0100", "+1 212 555 0100"),
    ],
)
def test_usual_phone_numbers_are_known(text):
    assert look_of({text: 1}) == "phone numbers"
    assert INSIDE.search(f"call {text}, please")


@pytest.mark.parametrize(
    "text",
    [
        *("4006381333931", "12-345-678", "100-200-3000", "00123456", "0000012345", "4711-0815"),
        *("978-3-16-148410-0", "978-3-0369-5512-1", "3-0369-5512-1", "9783036955121", "0-306-40615-2", "0317-8471"),
    ],
)
def test_numbers_of_articles_and_books_are_no_phone_numbers(text):
    assert look_of({text: 1}) is None
    assert not INSIDE.search(f"order {text}, please")


def test_what_stands_around_an_address_is_looked_at_as_far_as_addresses_go():
    """A cell may have thousands of characters, and what is tried from each of them to the end costs a square of that."""
    found = INSIDE.search("a" * 500 + "@example.org")
    assert found is not None
    assert found.group() == "a" * 64 + "@example.org"
    assert INSIDE.search("a@" + "b" * 500 + ".org") is None


@pytest.mark.parametrize(
    "text", ["2019-2020", "12 to 14 h", "0.5 - 1.5 mg", "ICD 10-12", "@home", "120/80", "10 000 - 25 000"]
)
def test_other_digits_in_a_category_are_no_number_to_call(reader, text):
    draft = drafted(reader, SEX | {"remark": lambda row: ["none", "late", "early", "moved", text][row % 5]})
    assert text in field(draft, "remark")["constraints"]["enum"]


def test_cells_that_cannot_be_read_are_shown_to_the_owner_alone(reader):
    draft = drafted(reader, SEX | {"pay": lambda row: "two thousand" if row == 9 else str(row * 17.5)})
    assert "'two thousand'" in said_of(draft, "pay")
    assert "two thousand" not in json.dumps(draft.schema)


@pytest.mark.parametrize("start", [0, 1])
def test_row_numbers_and_an_index_of_pandas_are_left_out(reader, start):
    numbered = {"Unnamed: 0": lambda row: row * 3, "nr": lambda row: row + start, **SEX}
    draft = drafted(reader, numbered, rows=30)
    assert [one.name for one in draft.columns if one.field] == ["sex"]
    frame = pd.DataFrame({"sex": ["F", "M"] * 20, "row": [row * row for row in range(40)], "ward": [3, 4] * 20})
    for index, left_out in (("row", "row"), (None, "__index_level_0__")):
        indexed = frame.set_index("row") if index else frame.drop(columns="row").sort_values("ward")
        indexed.to_parquet(reader.folder / "t.parquet")
        assert f"{left_out!r} (it " in draft_table(reader.folder / "t.parquet").schema["description"]


# -- a first line that is a row ----------------------------------------------------------------------------------------

NO_HEADERS = {
    "numbers and categories": "39,State-gov,77516,Male\n50,Private,83311,Male\n38,Private,215646,Female\n28,State-gov,1,Male\n",
    "a name, a date, a sex": "Anna Schmidt,1984-03-02,F\nOle Berg,1990-11-12,M\nIda Holm,1985-01-30,F\n",
    "an e-mail address": "anna@example.org,Anna\nole@example.org,Ole\n",
    "numbers alone": "5.1,3.5,1.4\n4.9,3.0,1.4\n4.7,3.2,1.3\n",
    "categories alone": "M,Ulm\nF,Ulm\nM,Bern\nF,Bern\n",
    "local dates and money": '17/04/2023,"1.234,56 €"\n18/04/2023,"2.234,56 €"\n',
}
HEADERS = {
    "years of a wide table": "country,2019,2020\nChile,1.5,2.5\nPeru,3.5,4.5\n",
    "pixels": "label,0,1,2,3,4\na,0,0,1,3,4\nb,0,9,1,3,4\n",
    "a category named as its column": "other,age\nother,30\nnone,40\n",
    "names over texts": "sex,town\nM,Ulm\nF,Bern\n",
    "one strange name": "age,1\n30,4\n40,5\n",
}


@pytest.mark.parametrize("kind", NO_HEADERS)
def test_a_row_in_the_first_line_stops_the_draft_and_is_not_quoted(reader, kind):
    with pytest.raises(InvalidFile, match="first line looks like a row") as refused:
        draft_table(reader.write(NO_HEADERS[kind]))
    cells = NO_HEADERS[kind].splitlines()[0].replace('"', "").split(",")
    assert not any(cell in refused.value.detail for cell in cells if len(cell) > 2)


@pytest.mark.parametrize("kind", HEADERS)
def test_names_that_are_names_stay(reader, kind):
    header, *rows = HEADERS[kind].splitlines()
    draft = draft_table(reader.write("\n".join([header, *rows * 5])))
    assert len(draft.columns) == len(header.split(","))


# -- codes, sentinels, spellings ---------------------------------------------------------------------------------------


def test_whole_numbers_are_never_converted_through_a_float(reader):
    for parquet in (False, True):
        big = [2**53 + 1, 2**53 + 3, 2**62 + 7]
        draft = drafted(reader, SEX | {"code": lambda row, big=big: big[row % 3]}, parquet=parquet)
        assert sorted(map(int, field(draft, "code")["constraints"]["enum"])) == big
        draft = drafted(reader, SEX | {"x": lambda row, big=big: big[row % 3]}, parquet=parquet)
        assert field(draft, "x")["constraints"]["enum"] == big
        tiny = drafted(reader, {"x": lambda row: (row + 1) * 1e-12}, parquet=parquet)
        bounds = field(tiny, "x")["constraints"]
        assert 0 <= bounds["minimum"] < bounds["maximum"] <= 1e-9
        far = field(drafted(reader, {"x": lambda row: 10**14 + row * 3}, parquet=parquet), "x")["constraints"]
        assert (far["minimum"], far["maximum"]) == (10**14, 10**14 + 2000)


CODES = {
    "ward": (lambda row: f"{[7, 42, 311, 1200][row % 4]:04}", {"type": "string"}),
    "postcodes": (lambda row: f"{1067 + row % 60 * 13:05}", {"type": "string"}),
    "zip": (lambda row: 94100 + row % 25, {"type": "string"}),
    "months": (lambda row: 202001 + row % 12, {"type": "string"}),
    "days": (lambda row: f"{2019 + row % 5}{1 + row % 12:02}{1 + row % 28:02}", {"type": "date", "format": "%Y%m%d"}),
    "days the other way": (
        lambda row: f"{1 + row % 28:02}{1 + row % 12:02}{2019 + row % 5}",
        {"type": "date", "format": "%d%m%Y"},
    ),
    "moments": (
        lambda row: f"2023{1 + row % 12:02}{1 + row % 28:02}13{row % 60:02}00",
        {"type": "datetime", "format": "%Y%m%d%H%M%S"},
    ),
}


@pytest.mark.parametrize("name", CODES)
def test_codes_written_as_numbers_keep_their_spelling(reader, name):
    make, words = CODES[name]
    found = field(drafted(reader, SEX | {name: make}), name)
    assert found.items() >= words.items()
    if found["type"] == "string":
        assert set(found["constraints"]["enum"]) == {str(make(row)) for row in range(ROWS)}


SENTINELS = {
    "9999-12-31": lambda row: f"{2015 + row % 9}-{1 + row % 12:02}-17",
    "1900-01-01": lambda row: f"{1960 + row % 50}-{1 + row % 12:02}-17",
    "99991231": lambda row: f"{2015 + row % 9}{1 + row % 12:02}17",
    "31.12.9999": lambda row: f"17.{1 + row % 12:02}.{2015 + row % 9}",
    "-1": lambda row: 18 + row % 70,
    "999": lambda row: 18 + row % 70,
    "9999": lambda row: round(row * 0.37 + 5, 2),
    "99": lambda row: row % 5,
    "-999.0": lambda row: row % 40 + 0.5,
}


@pytest.mark.parametrize("sentinel", SENTINELS)
@pytest.mark.parametrize("share", [3, 40])
def test_a_sentinel_is_proposed_as_missing_and_is_no_bound(reader, sentinel, share):
    draft = drafted(reader, SEX | {"x": lambda row: sentinel if row % share == 1 else str(SENTINELS[sentinel](row))})
    found = field(draft, "x")
    assert sentinel in found["missingValues"]
    assert sentinel not in draft.schema["missingValues"]
    constraints = found["constraints"]
    assert "required" not in constraints
    if "enum" in constraints:
        assert constraints["enum"] == [0, 1, 2, 3, 4]
    else:
        assert str(constraints["maximum"])[:4] not in {"9999", "999", "1000"}
        assert str(constraints["minimum"])[:4] != "1900"
        assert constraints["minimum"] != -1
    assert repr(sentinel) in said_of(draft, "x")


@pytest.mark.parametrize(
    "values",
    [
        [-1, 0, 1],
        list(range(-2, 26)),
        list(range(1, 10)),
        list(range(6, 10)),
        [-1, 0, 1, 2, 3],
        [70, 72, 74, 76, 77],
        list(range(100)),
        [0, 5, 10],
        [7, 8, 9],
        list(range(90, 110)),
    ],
)
def test_what_lies_among_the_others_is_no_sentinel(reader, values):
    found = field(drafted(reader, SEX | {"x": lambda row: values[row % len(values)]}), "x")
    assert "missingValues" not in found


SPELLINGS = {
    "17/04/2023": (lambda row: f"{1 + row % 28:02}/{1 + row % 12:02}/{2019 + row % 5}", {"type": "date", "format": "%d/%m/%Y"}),
    "04/17/2023": (lambda row: f"{1 + row % 12:02}/{1 + row % 28:02}/{2019 + row % 5}", {"type": "date", "format": "%m/%d/%Y"}),
    "17.04.2023": (lambda row: f"{1 + row % 28:02}.{1 + row % 12:02}.{2019 + row % 5}", {"type": "date", "format": "%d.%m.%Y"}),
    "17 Apr 2023": (lambda row: f"{1 + row % 28:02} {['Apr', 'Oct'][row % 2]} 2023", {"type": "date", "format": "%d %b %Y"}),
    "17.04.2023 08:30": (lambda row: f"{1 + row % 28:02}.04.2023 {row % 24:02}:30", {"type": "datetime", "format": "%d.%m.%Y %H:%M"}),
    "a zone's name": (lambda row: f"2025-02-{1 + row % 28:02} {row % 24:02}:00:00 {['UTC', 'CEST'][row % 2]}", {"type": "datetime", "format": "%Y-%m-%d %H:%M:%S %Z"}),
    "1.234,56": (lambda row: f"{1 + row % 9}.{row % 900 + 100},5{row % 10}", {"type": "number", "decimalChar": ",", "groupChar": ".", "decimals": 2}),
    "1,234.50": (lambda row: f"{1 + row % 9},{row % 900 + 100}.5{row % 10}", {"type": "number", "groupChar": ",", "decimals": 2}),
    "0,75": (lambda row: f"{row % 9},{row % 90 + 10}", {"type": "number", "decimalChar": ",", "decimals": 2}),
    "1 234,5": (lambda row: f"{1 + row % 9} {row % 900 + 100},5", {"type": "number", "decimalChar": ",", "groupChar": " "}),
    "$ and group": (lambda row: f"${1 + row % 9},{row % 900 + 100}.00", {"type": "number", "prefix": "$", "groupChar": ","}),
    "euros": (lambda row: f"{row + 3},5{row % 10} €", {"type": "number", "suffix": " €", "decimalChar": ","}),
    "12.5 %": (lambda row: f"{row % 97}.{row % 10} %", {"type": "number", "suffix": " %", "decimals": 1}),
    "(5.00)": (lambda row: f"({row % 90}.{row % 9}0)" if row % 3 else f"{row % 90}.50", {"type": "number", "negative": "parentheses"}),
    "Yes/No": (lambda row: ["Yes", "No"][row % 2], {"type": "boolean", "trueValues": ["Yes"], "falseValues": ["No"]}),
    "ja/nein": (lambda row: ["ja", "nein"][row % 2], {"type": "boolean", "trueValues": ["ja"], "falseValues": ["nein"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_local_spellings_are_recognised(reader, name):
    make, words = SPELLINGS[name]
    found = field(drafted(reader, SEX | {"x": make}), "x")
    assert found.items() >= words.items()


def test_a_date_that_could_be_either_is_said_to_be(reader):
    either = drafted(reader, SEX | {"x": lambda row: f"{1 + row % 12:02}/{1 + row % 7:02}/2023"})
    assert "whether the day or the month comes first" in said_of(either, "x")
    assert '"%m/%d/%Y"' in said_of(either, "x")
    clear = drafted(reader, SEX | {"x": lambda row: f"{1 + row % 28:02}/{1 + row % 7:02}/2023"})
    assert said_of(clear, "x") == ""


MOMENTS = {
    "9/25/2021": (lambda row: f"{1 + row % 12}/{1 + row % 28}/2021", {"type": "date", "format": "%-m/%-d/%Y"}),
    "25.9.2021": (lambda row: f"{1 + row % 28}.{1 + row % 12}.2021", {"type": "date", "format": "%-d.%-m.%Y"}),
    "9/05/2021": (lambda row: f"{1 + row % 12}/{1 + row % 28:02}/2021", {"type": "date", "format": "%-m/%d/%Y"}),
    "10/25/2021": (lambda row: f"{10 + row % 3}/{13 + row % 9}/2021", {"type": "date", "format": "%m/%d/%Y"}),
    "both": (lambda row: ["9/25/2021", "09/25/2021"][row % 2], {"type": "date", "format": "%m/%d/%Y"}),
    "a place": (
        lambda row: f"2025-05-{1 + row % 28:02} {row % 24:02}:00 Europe/Paris",
        {"type": "datetime", "format": "%Y-%m-%d %H:%M Europe/Paris", "timezone": "Europe/Paris", "resolution": "hour"},
    ),
    "half an hour": (
        lambda row: f"2025-05-{1 + row % 28:02} {row % 24:02}:00 Asia/Kolkata",
        {"type": "datetime", "timezone": "Asia/Kolkata", "resolution": "minute"},
    ),
    "no space": (
        lambda row: f"{1 + row % 28:02}.02.2025 {row % 24:02}:00UTC",
        {"type": "datetime", "format": "%d.%m.%Y %H:%M%Z"},
    ),
}


@pytest.mark.parametrize("name", MOMENTS)
def test_moments_are_drafted_as_they_are_written(reader, name):
    make, words = MOMENTS[name]
    assert field(drafted(reader, SEX | {"x": make}), "x").items() >= words.items()


@pytest.mark.parametrize("zones", [["Europe/Paris", "Europe/Berlin"], ["AEST", "UTC"], ["Nowhere/Town"]])
def test_zones_that_no_field_can_say_are_no_moments(reader, zones):
    draft = drafted(
        reader, SEX | {"x": lambda row: f"2025-05-{1 + row % 28:02} {row % 24:02}:00 {zones[row % len(zones)]}"}
    )
    assert field(draft, "x") is None
    assert said_of(draft, "x")


def test_what_is_left_out_of_the_domain_is_not_required(reader):
    found = field(drafted(reader, {"town": lambda row: "Zwiesel" if row == 3 else ["Ulm", "Bern"][row % 2]}), "town")
    assert "required" not in found["constraints"]


def test_minus_one_next_to_zero_is_a_value_and_asked_about(reader):
    assert "if it means not known" in said_of(drafted(reader, SEX | {"x": lambda row: row % 30 - 1}), "x").lower()


def test_a_column_named_as_a_person_may_say_yes_or_no(reader):
    assert field(drafted(reader, {"phone": lambda row: ["yes", "no"][row % 2]}), "phone")["type"] == "boolean"


@pytest.mark.parametrize("rows", [4, 40])
def test_an_index_without_a_name_is_named_and_ignored(reader, rows):
    lines = [",sex,age", *(f"{row},{'FM'[row % 2]},{20 + row % 2}" for row in range(rows))]
    draft = accepted(reader, reader.write("\n".join(lines)))
    assert draft.schema["dialect"] == {"names": ["column 1", "sex", "age"]}
    assert draft.schema["fields"][0]["role"] == "ignore"
    assert "it has no name" in said_of(draft, "column 1")


def test_names_that_no_schema_can_have_are_made_usable(reader):
    header = '"a\nb",a\u00a0b,' + "x" * 210 + ",c"
    draft = draft_table(reader.write("\n".join([header, *["u,u,u,u", "v,v,v,v"] * 20])))
    parse_table_schema(draft.schema)
    names = [one["name"] for one in draft.schema["fields"]]
    assert names == ["a b", "a b 2", "x" * 190, "c"]
    assert draft.schema["dialect"] == {"names": names}, "so that the file may stay as it is"


# -- codes next to a scale, decimals of categories, parts of a second ---------------------------------------------------


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 9], "'9'"),
        ([1, 2, 9], "'9'"),
        ([1, 2, 3, 4, 5, 8, 9], "'8', '9'"),
        ([0, 1, 2, 97, 98, 99], "'97', '98', '99'"),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], ""),
        ([5, 7, 9], ""),
    ],
)
def test_a_code_just_above_a_scale_is_asked_about_and_kept(reader, values, codes):
    draft = drafted(reader, {"answer": lambda row: values[row % len(values)], **SEX})
    assert field(draft, "answer")["constraints"]["enum"] == values
    said = said_of(draft, "answer")
    assert bool(said) == bool(codes)
    assert not codes or (f"Cells: {codes}." in said and "`missingValues`" in said)


def test_amounts_that_are_categories_keep_their_decimals(reader):
    columns = {"price": lambda row: ["7,00 €", "3,50 €", "0,99 €"][row % 3], "rate": lambda row: ["1,5", "2"][row % 2]}
    draft = drafted(reader, columns)
    assert (field(draft, "price")["constraints"]["enum"], field(draft, "price")["decimals"]) == ([0.99, 3.5, 7.0], 2)
    assert "decimals" not in field(draft, "rate"), "not all of them are written alike"


PADDED = {
    "money": (lambda row: f"{row % 97}.{row % 10}0", {"type": "number", "decimals": 2, "trailingZeros": True}),
    "few": (lambda row: ["0.50", "2.25", "3.00"][row % 3], {"type": "number", "decimals": 2, "trailingZeros": True}),
    "coordinates": (lambda row: f"8.{row * 997:06}", {"type": "number", "decimals": 6, "trailingZeros": True}),
    "whole, of pandas": (lambda row: f"{row % 300}.0", {"type": "integer", "decimals": 1, "trailingZeros": True}),
    "few whole": (lambda row: ["1.0", "2.0"][row % 2], {"type": "integer", "decimals": 1, "trailingZeros": True}),
    "not all": (lambda row: repr(row % 300 / 20), {"type": "number", "decimals": 2}),
    "whole without a point": (
        lambda row: f"{row % 300 / 4:g}",
        {"type": "number", "decimals": 2, "trailingZeros": False},
    ),
    "whole without a comma": (
        lambda row: f"{row % 300 / 4:g}".replace(".", ","),
        {"type": "number", "decimals": 2, "trailingZeros": False},
    ),
    "no zero": (lambda row: f"{row % 97}.{1 + row % 9}", {"type": "number", "decimals": 1}),
    "exponents": (lambda row: f"{row % 97}.{row % 10}0e-3", {"type": "number"}),
}
"""How every cell of a column is written, and the words for it."""


@pytest.mark.parametrize("case", PADDED)
def test_plain_decimals_that_are_all_written_stay_so(reader, case):
    value_of, words = PADDED[case]
    said = field(drafted(reader, {"x": value_of, **SEX}), "x")
    assert {word: said.get(word) for word in ("type", "decimals", "trailingZeros") if word in said} == words


@pytest.mark.parametrize(
    ("value_of", "what"),
    [
        (lambda row: f"{row % 97 - 40:+d}", "a plus sign"),
        (lambda row: f"{row % 97}.5e-7", "an exponent"),
        (lambda row: f".{row % 97 + 1:02}", "no digit before"),
        (lambda row: f"{row % 97:03}.5", "zeros before"),
    ],
)
def test_spellings_that_numbers_lose_are_said(reader, value_of, what):
    assert what in said_of(drafted(reader, {"x": value_of, **SEX}), "x")


@pytest.mark.parametrize("marker", ["k.A.", "k. A.", "keine Angabe", "n.v.", "entfällt", "non renseigné", "s/d"])
def test_words_that_say_that_nothing_is_known_are_missing_and_are_said(reader, marker):
    """Also where a column is of numbers; the owner may take them back."""
    columns = {
        "wage": lambda row: marker if row % 3 else f"{row % 97}.5",
        "kind": lambda row: ["a", "b", marker][row % 3],
    }
    draft = drafted(reader, columns)
    assert draft.schema["missingValues"] == sorted(["", marker])
    assert field(draft, "wage")["type"] == "number"
    assert field(draft, "kind")["constraints"] == {"enum": ["a", "b"]}
    for name, count in (("wage", 2 * ROWS // 3), ("kind", ROWS // 3)):
        assert f"{count} cells are taken as missing that may be an answer" in said_of(draft, name)
        assert f"Cells: {marker!r}." in said_of(draft, name)


@pytest.mark.parametrize("answer", ["unbekannt", "keine", "Keine", "aucun", "ninguno"])
def test_words_that_may_be_an_answer_stay_one(reader, answer):
    draft = drafted(reader, {"kind": lambda row: ["a", "b", answer][row % 3]})
    assert draft.schema["missingValues"] == [""]
    assert answer in field(draft, "kind")["constraints"]["enum"]


@pytest.mark.parametrize(("marker", "name"), [(".", "wage"), (":", "2021 rate"), ("..", "growth")])
def test_marks_of_statistics_are_missing(reader, marker, name):
    draft = drafted(reader, {name: lambda row: marker if row % 2 else f"{row % 97}.5", **SEX})
    assert field(draft, name)["type"] == "number"
    assert marker in draft.schema["missingValues"]


def test_a_dash_among_amounts_is_asked_about(reader):
    draft = drafted(reader, {"debit": lambda row: "-" if row % 3 else f"{row % 97 + 1},000.50", **SEX})
    assert "stands for zero" in said_of(draft, "debit")


def test_days_of_a_spreadsheet_are_asked_about(reader):
    columns = {"admitted": lambda row: 43_831 + row * 11 % 997, "wage": lambda row: 43_831 + row * 7 % 997, **SEX}
    draft = drafted(reader, columns)
    assert "Excel counts" in said_of(draft, "admitted")
    assert "Excel" not in said_of(draft, "wage")


def test_quarters_are_categories_and_no_identifiers(reader):
    draft = drafted(reader, {"TIME_PERIOD": lambda row: f"{2010 + row % 9}-Q{1 + row % 4}", **SEX})
    assert "2012-Q3" in field(draft, "TIME_PERIOD")["constraints"]["enum"]


def test_a_row_of_units_is_pointed_out(reader):
    path = reader.write("depth,temp\nm,°C\n" + "".join(f"{row}.25,{row % 31}.5\n" for row in range(ROWS)))
    draft = draft_table(path)
    assert all('"headerRows": [1, 2]' in said_of(draft, name) for name in ("depth", "temp"))


def test_where_cells_would_hold_tabs_the_tab_parts_them(reader):
    lines = [f"A,PC,{['AT', 'DE'][row % 2]}\t{row % 61}.5\t{row % 7}.1" for row in range(ROWS)]
    draft = draft_table(reader.write("\n".join(["freq,unit,geo\t2020\t2021", *lines])))
    assert draft.schema["dialect"] == {"delimiter": "\t"}
    assert field(draft, "freq,unit,geo")["constraints"]["enum"] == ["A,PC,AT", "A,PC,DE"]


def test_notes_below_a_table_are_named(reader):
    text = "country,year,gdp\n" + "A,2001,1.5\n" * ROWS + "\nSource: accounts\nDownloaded 2024-01-05\n"
    with pytest.raises(InvalidFile, match=rf"rows {ROWS + 1}, {ROWS + 2}.* below the table, take them out"):
        draft_table(reader.write(text))


def test_rows_that_stand_in_bars_are_read(reader):
    """As SAP lists them, with a title above; its numbers of materials are codes, and no phone numbers."""
    lines = [f"|{1000 + row % 3}|{row % 30:018}|{row % 97},50|" for row in range(ROWS)]
    draft = draft_table(reader.write("\n".join(["Stock list", "", "|Plant|Material|Value|", *lines])))
    assert draft.schema["dialect"]["headerRows"] == [3]
    assert field(draft, "Material")["constraints"]["enum"][1] == f"{1:018}"
    assert field(draft, "Value")["decimalChar"] == ","
    assert "it has no name" in said_of(draft, "column 1")


@pytest.mark.parametrize(
    ("encoding", "words"), [("windows-1250", ["Kłodzko", "śląskie"]), ("windows-1252", ["Köln", "11 m³", "¿qué"])]
)
def test_an_encoding_that_bytes_do_not_tell_is_said(reader, encoding, words):
    text = "woj;n\n" + "".join(f"{words[row % len(words)]};{row % 9}\n" for row in range(ROWS))
    draft = draft_table(reader.write(text.encode(encoding)))
    assert draft.schema["dialect"]["encoding"] == encoding
    assert field(draft, "woj")["constraints"]["enum"] == sorted(words)
    assert any(f"was read as {encoding}, as in {words[0]!r}" in notice for notice in draft.notices)


@pytest.mark.parametrize("parts", [".5", ".000000001"])
def test_parts_of_a_second_are_said(reader, parts):
    columns = {"at": lambda row: f"2024-01-01T00:00:{row % 60:02}{parts if row % 2 else ''}", **SEX}
    assert f"{ROWS // 2} cells have parts of a second" in said_of(drafted(reader, columns), "at")


def test_a_finding_says_what_becomes_of_a_column(reader):
    """As an identifier it is in synthetic rows, with other values; free text and what is ignored is not."""
    draft = drafted(reader, {"mail": PERSONAL["mail"], "note": PERSONAL["note"], "empty": lambda _: "", **SEX})
    assert said_of(draft, "mail").startswith("'mail': Made anew in synthetic rows: ")
    assert "to have no such column" in said_of(draft, "mail")
    for name in ("note", "empty"):
        assert said_of(draft, name).startswith(f"{name!r}: Left out: ")


REPEATING = {
    "patient_id": lambda row: f"P{row % 40:03}",
    "case_id": lambda row: row // 3,
    "badge": lambda row: f"AB-{row % 50:04}",
    "Patientennummer": lambda row: 4_000 + row % 60,
    "FALLNR": lambda row: f"{row % 70:06}",
    "Haushaltskennung": lambda row: f"H{row % 80:03}",
}
APART = {
    "unique_id": lambda row: f"P{row:04}",
    "region_id": lambda row: row % 10,
    "town": lambda row: f"town {row % 90}",
    "has_id": lambda row: ("yes", "no")[row % 2],
    "index": lambda row: row,
}


def test_which_columns_may_say_whose_row_it_is_and_repeat(reader):
    draft = drafted(reader, {**REPEATING, **APART})
    found = {one.name: one.repeats for one in draft.columns}
    assert found == {**dict.fromkeys(REPEATING, True), **dict.fromkeys(APART, False)}


def test_of_too_many_different_values_it_is_not_known_whether_one_repeats(reader):
    draft = drafted(reader, {"patient_id": lambda row: f"P{row:06}", **SEX}, rows=10_001)
    assert [one.repeats for one in draft.columns] == [None, False]
