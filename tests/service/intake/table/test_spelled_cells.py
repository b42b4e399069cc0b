"""Text in a declared spelling is read exactly; what does not follow it is counted, never guessed."""

import datetime as dt

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.base.errors import InvalidFile
from service.domain.table_schema import parse_table_schema
from service.intake.table.alike import FIRST_DERIVED_PLACE
from service.intake.table.cells import Cells
from service.intake.table.spelled import in_spelling_of

WIDE = {"minimum": -(2**40), "maximum": 2**40}
DAYS = {"minimum": "1950-01-01", "maximum": "2049-12-31"}


def field_of(kind, **words):
    constraints = {"integer": WIDE, "number": WIDE, "date": DAYS, "datetime": DAYS}.get(kind)
    return parse_table_schema(
        {"fields": [{"name": "x", "type": kind, "constraints": constraints or {}, **words}]}
    ).fields[0]


def meant(field, texts):
    cells = in_spelling_of(Cells(pl.Series("x", texts)), field)
    values = {"integer": "exact", "number": "number", "boolean": "boolean"}.get(field.type, "moment")
    found = getattr(cells, values).to_list()
    if values != "moment":
        return found
    moments = pl.Series(found, dtype=pl.Int64).cast(pl.Datetime("us")).to_list()
    return [None if moment is None else moment.isoformat() for moment in moments]


GERMAN = {"decimalChar": ",", "groupChar": "."}
NUMBERS = [
    (GERMAN, {"1.234,56": 1234.56, "1234,5": 1234.5, "-1.234.567,00": -1234567, "0,5": 0.5, "7": 7, ",5": 0.5}),
    (GERMAN, {"1.5": None, "1,234.56": None, "12.34,5": None, "1.2345": None, ",": None, "": None, "x": None}),
    ({"groupChar": ","}, {"1,234.50": 1234.5, "12,34.5": None, "1,5": None, "1234": 1234, "1e3": 1000}),
    ({"groupChar": "'"}, {"1'234.5": 1234.5}),
    ({"groupChar": " ", "decimalChar": ","}, {"1 234,5": 1234.5, "1\u00a0234,5": 1234.5, "1\u202f234": 1234}),
    ({"prefix": "$"}, {"$5": 5, "-$5.25": -5.25, "$-5": -5, "$ 5": 5, "5": None, "€5": None, "--$5": None}),
    ({"suffix": " €"}, {"5 €": 5, "5€": 5, "5\u00a0€": 5, "5": None}),
    ({"suffix": " %"}, {"12.5 %": 12.5, "12.5%": 12.5, "12.5": None}),
    ({"negative": "parentheses"}, {"(5.00)": -5, "-5": -5, "5.00": 5, "(-5)": None, "(5": None, "5)": None}),
    (
        {"negative": "parentheses", "prefix": "$", "groupChar": ","},
        {"($1,234.50)": -1234.5, "$(5)": -5, "$5": 5, "(5)": None},
    ),
    ({"bareNumber": False}, {"USD 5.5": 5.5, "5.5 kg": 5.5, "EUR -7": -7, "-€3": -3, "5 (6)": None, "none": None}),
    ({"bareNumber": False, "prefix": "$"}, {"$5": 5, "5": 5}),
]


@pytest.mark.parametrize(("words", "texts"), NUMBERS, ids=range(len(NUMBERS)))
def test_numbers(words, texts):
    assert meant(field_of("number", **words), list(texts)) == list(texts.values())


def test_whole_numbers_never_pass_through_a_float():
    large = 1582218195625938945
    texts = [str(large), f"+{large}", f"{large}.0", "1.582218195625938945e18", "9007199254740993.0", "3e0", "0042"]
    assert meant(field_of("integer"), texts) == [large, large, large, None, 9007199254740993, 3, 42]
    grouped = meant(field_of("integer", groupChar=","), [f"{large:,}", f"-{large:,}"])
    assert grouped == [large, -large]


MOMENTS = [
    ("date", {"format": "%d/%m/%Y"}, {"17/04/2023": "2023-04-17T00:00:00", "7/4/2023": "2023-04-07T00:00:00"}),
    ("date", {"format": "%d.%m.%Y"}, {"31.02.2023": None, "17/04/2023": None, "17.04.23": None, "17.04.2023x": None}),
    ("date", {"format": "%m/%d/%y"}, {"04/17/49": "2049-04-17T00:00:00", "04/17/50": "1950-04-17T00:00:00"}),
    ("date", {"format": "%Y%m%d"}, {"20211204": "2021-12-04T00:00:00", "2021124": None}),
    ("date", {"format": "%d %b %Y"}, {"3 Mar 2024": "2024-03-03T00:00:00", "03 MAR  2024": "2024-03-03T00:00:00"}),
    (
        "date",
        {"format": "%A, %B %d, %Y"},
        {"Friday, March 1, 2024": "2024-03-01T00:00:00", "Monday, March 1, 2024": None},
    ),
    ("date", {"format": "%Y-%j"}, {"2024-366": "2024-12-31T00:00:00", "2023-366": None, "2023-000": None}),
    (
        "datetime",
        {"format": "%Y-%m-%d %H:%M:%S %Z"},
        {
            "2025-02-09 00:00:00 UTC": "2025-02-09T00:00:00",
            "2025-02-06 13:00:00 CEST": "2025-02-06T11:00:00",
            "2025-02-06 13:00:00 EST": "2025-02-06T18:00:00",
            "2025-02-06 13:00:00 XYZ": None,
            "2025-02-06T13:00:00 UTC": None,
            "2025-02-06 13:00:00Z": "2025-02-06T13:00:00",
            "2025-02-06 13:00:00+01:00": "2025-02-06T12:00:00",
            "2025-02-06 13:00:00 -0530": "2025-02-06T18:30:00",
            "2025-02-06 13:00:00 +1:00": None,
            "2025-02-06 24:00:00 UTC": None,
        },
    ),
    (
        "datetime",
        {"format": "%Y-%m-%dT%H:%M%:z"},
        {"2024-02-01T10:30+05:30": "2024-02-01T05:00:00", "2024-02-01T10:30 Z": None},
    ),
    ("datetime", {"format": "%d.%m.%Y %H:%M:%S%z"}, {"01.02.2024 10:30:00+0530": "2024-02-01T05:00:00"}),
    (
        "datetime",
        {"format": "%m/%d/%Y %I:%M %p"},
        {
            "01/02/2024 12:05 AM": "2024-01-02T00:05:00",
            "01/02/2024 1:05 pm": "2024-01-02T13:05:00",
            "01/02/2024 13:05 PM": None,
        },
    ),
    (
        "datetime",
        {"timezone": "Europe/Berlin"},
        {
            "2024-07-01 12:00": "2024-07-01T10:00:00",
            "2024-01-01T12:00": "2024-01-01T11:00:00",
            "2024-03-31 02:30": None,
            "2024-10-27 02:30": "2024-10-27T00:30:00",
            "2024-07-01T12:00Z": "2024-07-01T12:00:00",
        },
    ),
    (
        "datetime",
        {"format": "%d/%m/%Y %H:%M:%S.%f", "timezone": "Asia/Kolkata"},
        {"01/02/2024 10:30:00.25": "2024-02-01T05:00:00.250000"},
    ),
]


@pytest.mark.parametrize(("kind", "words", "texts"), MOMENTS, ids=range(len(MOMENTS)))
def test_moments(kind, words, texts):
    assert meant(field_of(kind, **words), list(texts)) == list(texts.values())


def test_booleans():
    field = field_of("boolean", trueValues=["Yes", "Y"], falseValues=["No"])
    assert meant(field, ["Yes", " Y ", "No", "yes", "true", "1", None]) == [True, True, False, None, None, None, None]


SCHEMA = parse_table_schema(
    {
        "missingValues": ["", "-"],
        "fields": [
            {"name": "visit", "type": "date", "format": "%d/%m/%Y", "constraints": DAYS},
            {
                "name": "price",
                "type": "number",
                "suffix": " €",
                **GERMAN,
                "constraints": {"minimum": 0, "maximum": 1e6},
            },
            {"name": "ok", "type": "boolean", "trueValues": ["Ja"], "falseValues": ["Nein"]},
            {"name": "dept", "type": "integer", "constraints": {"minimum": 0, "maximum": 9999}},
            {"name": "land", "type": "string", "missingValues": [""], "constraints": {"enum": ["NA", "-"]}},
        ],
    }
)
HEADER = "visit,price,ok,dept,land\n"


def test_a_file_becomes_typed_columns_and_notices_say_what_was_lost_by_column(reader):
    lines = '17/04/2023,"1.234,50 €",Ja,0311,NA\n-,"5,5 €",Nein,42,-\n01/02/2024,-,-,-,\n'
    answer, canonical = reader.read(reader.write(HEADER + lines), SCHEMA)
    assert canonical.rows() == [
        (dt.date(2023, 4, 17), 1234.5, True, 311, "NA"),
        (None, 5.5, False, 42, "-"),
        (dt.date(2024, 2, 1), None, None, None, None),
    ]
    assert answer["notices"] == [
        *(
            f"Column {name!r}: 1 cell is read as missing: their text is among missingValues."
            for name in ("visit", "price", "ok", "dept")
        ),
        (
            "Column 'dept': 1 cell is written with zeros before other digits, as codes are, and numbers lose them. If"
            " these are codes, declare type string and list them in constraints.enum."
        ),
    ]


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ('2023-04-17,"1,0 €",Ja,1,NA', "visit"),
        ('17/04/2023,"1.5 €",Ja,1,NA', "price"),
        ('17/04/2023,"1 €",yes,1,NA', "ok"),
    ],
)
def test_another_spelling_is_refused_with_the_declared_one(reader, line, column):
    with pytest.raises(InvalidFile, match=f"Column '{column}': 1 cell is not of type .*, as declared by "):
        reader.read(reader.write(f'{HEADER}{line}\n01/01/2020,"1 €",Ja,1,NA\n'), SCHEMA)


@pytest.mark.parametrize("words", [{}, {"format": "%Y-%m-%d %H:%M"}])
def test_a_time_that_clocks_skip_is_refused_with_that_reason(reader, words):
    """It looks as declared, so that the spelling alone would not say what is wrong."""
    schema = parse_table_schema(
        {"fields": [{"name": "at", "type": "datetime", "timezone": "Europe/Berlin", "constraints": DAYS, **words}]}
    )
    with pytest.raises(InvalidFile, match=r"of type datetime, .*, or lie in an hour that clocks skip in Europe/Berlin"):
        reader.read(reader.write("at\n2024-03-31 02:30\n2024-03-31 03:30\n"), schema)


def test_the_same_values_spelled_otherwise_are_the_same_columns(reader):
    """A second budget must not be a new spelling away."""
    count = 60
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=37 * i % 900) for i in range(count)]
    prices = [(i * i * 7919) % 100_000 / 4 for i in range(count)]
    fields = [
        {"name": "visit", "type": "date", "constraints": DAYS},
        {"name": "price", "type": "number", "constraints": {"minimum": 0, "maximum": 1e6}},
    ]
    plain = parse_table_schema({"fields": fields})
    spelled = parse_table_schema({"fields": [fields[0] | {"format": "%d.%m.%Y"}, fields[1] | {"decimalChar": ","}]})
    iso = pl.DataFrame({"visit": days, "price": prices})
    local = pl.DataFrame(
        {"visit": [f"{day:%d.%m.%Y}" for day in days], "price": [str(price).replace(".", ",") for price in prices]}
    )
    first, typed = reader.read(reader.write(iso), plain)
    second, canonical = reader.read(reader.write(local), spelled)
    assert canonical.equals(typed)
    prints = [
        {digest for place, digest, _ in answer["columns"] if 0 < place < FIRST_DERIVED_PLACE}
        for answer in (first, second)
    ]
    assert len(prints[0] & prints[1]) == 2


def booleans(true, false, rows=400):
    truths = [[(row * 7919 + row // 3 * place) % 5 < 2 for place in range(3)] for row in range(rows)]
    said = {} if true == "true" else {"trueValues": [true], "falseValues": [false]}
    schema = {"fields": [{"name": name, "type": "boolean", **said} for name in "pqr"]}
    lines = [",".join(true if truth else false for truth in row) for row in truths]
    return "p,q,r\n" + "\n".join(lines), schema


def amounts(*, is_local, last="5"):
    """Days, and amounts of 0 to 4, of which one may be out of range."""
    days = [dt.date(2024, 4, 1 + row * 7 % 4) for row in range(60)]
    prices = [f"{row * 3 % 4}.50" for row in range(59)] + [last]
    fields = [
        {"name": "d", "type": "date", "constraints": DAYS},
        {"name": "a", "type": "number", "decimals": 2, "constraints": {"minimum": 0, "maximum": 4}},
    ]
    if not is_local:
        return "d,a\n" + "\n".join(map(",".join, zip(map(str, days), prices, strict=True))), {"fields": fields}
    words = {"format": "%d/%m/%Y"}, {"decimalChar": ",", "suffix": " EUR"}
    rows = [f"{day:%d/%m/%Y};{price.replace('.', ',')} EUR" for day, price in zip(days, prices, strict=True)]
    document = {"fields": [one | more for one, more in zip(fields, words, strict=True)], "dialect": {"delimiter": ";"}}
    return "d;a\n" + "\n".join(rows), document


def test_rows_that_say_little_have_one_budget_in_every_spelling(reader):
    def prints(text, document):
        answer, _ = reader.read(reader.write(text), parse_table_schema(document))
        return set(answer["fingerprints"]), {digest for place, digest, _ in answer["columns"] if not place}

    for files in (
        [booleans("Yes", "No"), booleans("Ja", "Nein"), booleans("true", "false")],
        [amounts(is_local=True), amounts(is_local=False)],
    ):
        plain = prints(*files[-1])
        assert [len(one) for one in plain] == [1, 1], "what is not spelled has the fingerprints that it had"
        for file in files[:-1]:
            found = prints(*file)
            assert plain[0] < found[0], "with the names of columns"
            assert plain[1] < found[1], "without"
    one, other, changed = (amounts(is_local=True, last=last) for last in ("5", "6", "2"))
    assert prints(*one)[1] & prints(*other)[1], "out of range, both are the end of the range"
    assert not prints(*one)[1] & prints(*changed)[1]


def test_columns_that_have_a_type_are_not_spelled(reader):
    frame = pl.DataFrame(
        {
            "visit": [dt.date(2023, 4, 17)] * 2,
            "price": [1.5, float("nan")],
            "ok": [True, False],
            "dept": [1, 2],
            "land": ["NA", None],
        }
    )
    with pytest.raises(InvalidFile, match="NaN"):
        reader.read(reader.write(frame, parquet=True), SCHEMA)
    frame = frame.with_columns(price=pl.Series([1.5, None]))
    _, canonical = reader.read(reader.write(frame, parquet=True), SCHEMA)
    assert canonical.rows()[0] == (dt.date(2023, 4, 17), 1.5, True, 1, "NA")


def test_parquet_moments_beyond_what_nanoseconds_hold_stay_what_they_are(reader):
    moments = [*pl.Series(["9999-12-31T00:00", "1600-02-29T12:00"]).str.to_datetime(), None]
    path = reader.folder / "int96.parquet"
    table = pa.table({"at": pa.array(moments, pa.timestamp("us"))})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)
    constraints = {"minimum": "0001-01-01", "maximum": "9999-12-31"}
    schema = parse_table_schema({"fields": [{"name": "at", "type": "datetime", "constraints": constraints}]})
    answer, canonical = reader.read(path, schema)
    assert canonical["at"].to_list() == moments
    assert answer["notices"] == []


@pytest.mark.parametrize(("words", "unit", "count"), [({}, "second", 1), ({"resolution": "minute"}, "minute", 3)])
def test_moments_between_two_that_synthetic_rows_have_are_counted(reader, words, unit, count):
    times = ["10:00", "10:00:30", "10:00:31", "10:00:00.000000001", "11:00"]
    constraints = {"minimum": "2023-01-01", "maximum": "2023-12-31"}
    schema = parse_table_schema({"fields": [{"name": "at", "type": "datetime", "constraints": constraints, **words}]})
    answer, _ = reader.read(reader.write("\n".join(["at", *(f"2023-04-17T{time}" for time in times), ""])), schema)
    cells = "1 cell is" if count == 1 else f"{count} cells are"
    assert answer["notices"] == [f"Column 'at': {cells} no whole {unit}, which synthetic ones are."]
