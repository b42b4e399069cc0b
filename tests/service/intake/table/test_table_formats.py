"""Every format gives the same table and the same fingerprints; what is damaged or too large is refused."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import zipfile
from contextlib import suppress

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyreadstat
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.base.errors import ImprimaturError, InvalidFile, TooLarge
from service.domain.table_schema import parse_table_schema
from service.intake.image.draft import looks_like_images
from service.intake.ingest import ingest_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from service.intake.table import sheet_reading
from service.intake.table.draft import draft_schema, draft_table
from tests.service.intake.table import table_files as files

MARKER = "Zanzibar-90210.75"


@pytest.fixture(scope="module")
def forms(tmp_path_factory) -> dict[str, bytes]:
    return files.every_format(tmp_path_factory.mktemp("forms"))


def test_the_same_rows_are_the_same_table_in_every_format(forms, reader):
    answers = {}
    for name, content in forms.items():
        answer, table = reader.read(reader.write(content), files.SCHEMA)
        assert table.sort(table.columns).equals(files.FRAME.sort(files.FRAME.columns)), name
        answers[name] = (answer["rows"], answer["fingerprints"], answer["columns"])
    assert len(answers) > 20
    others = {name for name, answer in answers.items() if answer != answers["CSV"]}
    assert others == {"Spark's folder by town"}  # whose rows stand in another order, which a column's fingerprint sees
    assert answers["Spark's folder by town"][:2] == answers["CSV"][:2]


@pytest.mark.slow
def test_a_draft_reads_what_an_upload_reads(forms, reader):
    for name, content in forms.items():
        path = reader.write(content)
        assert not looks_like_images(path), name
        drafted = draft_schema(path)
        assert "dialect" not in drafted, name
        found = {field["name"]: field["type"] for field in drafted["fields"]}
        assert found["town"] == "string", name
        reader.read(path, parse_table_schema(drafted))


@pytest.mark.parametrize("name", ["gzip of two members", "Spark's folder in a tar", "workbook", "Stata", "JSON lines"])
def test_the_reading_process_can_read_it(forms, name, tmp_path):
    """With all that the sandbox takes away."""
    path = tmp_path / "upload"
    path.write_bytes(forms[name])
    with (
        SealedFile.in_the_clear(path) as upload,
        ingest_table(
            upload,
            files.SCHEMA,
            privacy_unit=None,
            limits=IngestLimits(),
            scratch_dir=tmp_path,
            fingerprint_key=b"k" * 32,
        ) as table,
    ):
        assert (table.rows, table.columns) == (5, files.SCHEMA.names)
        assert pl.read_parquet(table.canonical.reader()).height == 5


def _one(name: str, kind: str, **constraints):
    return parse_table_schema({"fields": [{"name": name, "type": kind, "constraints": constraints}]})


def test_value_labels_stand_for_their_codes(reader, tmp_path):
    frame = pl.DataFrame({"sex": [1, 2, 9, None], "age": [30, 40, 50, 60]})
    document = {
        "fields": [
            {"name": "sex", "type": "string", "constraints": {"enum": ["male", "female", "9"]}},
            {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}},
        ]
    }
    for write, ending in ((pyreadstat.write_dta, "dta"), (pyreadstat.write_sav, "sav")):
        content = files.statistics(
            write, tmp_path, frame, ending, variable_value_labels={"sex": {1: "male", 2: "female"}}
        )
        _, table = reader.read(reader.write(content), parse_table_schema(document))
        assert table["sex"].to_list() == ["male", "female", "9", None]
        assert table["age"].to_list() == [30, 40, 50, 60]


def test_numbers_of_json_never_pass_through_a_float(reader):
    lines = [{"x": 2**62 + 1}, {"x": -(2**63)}, {"x": None}, {}]
    content = "\n".join(map(json.dumps, lines)) + "\n\n"
    _, table = reader.read(reader.write(content), _one("x", "integer", enum=[2**62 + 1, -(2**63)]))
    assert table["x"].to_list() == [2**62 + 1, -(2**63), None, None]


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (f'{{"x": 1}}\n{{"x": ["{MARKER}"]}}\n', "'x': row 2 holds a list"),
        (f'{{"x": 1}}\n{{"x": "{MARKER}"\n', "Row 2 is not JSON"),
        (f'{{"x": 1}}\n["{MARKER}"]\n', "Row 2 is not an object"),
        (f'{{"x": 1}}\n{{"x": 1, "x": "{MARKER}"}}\n', "Row 2 names a member twice"),
        (f'[{{"x": "{MARKER}"}}]', "one JSON array"),
        ('{"x": "\\ud800"}\n', "half of a character"),
        ("{}\n{}\n", "no members"),
        ('{"x": ' + "[" * 100_000, "not JSON"),
    ],
)
def test_bad_json_lines_are_refused(content, match, reader, says_nothing):
    with pytest.raises(InvalidFile, match=match) as caught:
        reader.read(reader.write(content), _one("x", "integer", minimum=0, maximum=9))
    says_nothing(caught.value)


def test_a_sheet_of_several_is_named(reader):
    content = files.workbook({"Notes": [["hello"]], "People": files.sheet_of(files.FRAME)})
    path = reader.write(content)
    with pytest.raises(InvalidFile, match=r"2 sheets \('Notes', 'People'\).*\"sheet\": 1"):
        reader.read(path, files.SCHEMA)
    for sheet in (2, "People"):
        schema = parse_table_schema(files.DOCUMENT | {"dialect": {"sheet": sheet}})
        assert reader.read(path, schema)[1].equals(files.FRAME)
    with pytest.raises(InvalidFile, match="no sheet 'Peple'; it has 'Notes', 'People'"):
        reader.read(path, parse_table_schema(files.DOCUMENT | {"dialect": {"sheet": "Peple"}}))
    assert draft_schema(reader.write(files.workbook({"A": [["x"], [1], [2]], "B": []})))["dialect"] == {"sheet": "A"}


def test_a_sheet_with_a_title_above_its_header(reader):
    rows = [["Patients of 2024"], [], *files.sheet_of(files.FRAME)]
    path = reader.write(files.workbook({"People": rows}))
    schema = parse_table_schema(files.DOCUMENT | {"dialect": {"headerRows": [3]}})
    assert reader.read(path, schema)[1].equals(files.FRAME)


def test_words_of_text_have_no_use_for_other_formats(reader):
    schema = parse_table_schema(files.DOCUMENT | {"dialect": {"delimiter": ";", "encoding": "latin-1"}})
    answer, _ = reader.read(reader.write(files.parquet(files.FRAME)), schema)
    assert answer["notices"] == ["The dialect's delimiter, encoding had no use: the file is not text."]


BAD_PACKED = {
    "leads out": (files.zipped({"../t.csv": files.CSV.encode()}), "leads out of its folder"),
    "leads out of a tar": (files.tarred({"a/../../t.csv": files.CSV.encode()}), "leads out of its folder"),
    "absolute": (files.tarred({"/etc/t.csv": files.CSV.encode()}), "leads out of its folder"),
    "drive": (files.zipped({"C:t.csv": files.CSV.encode()}), "leads out of its folder"),
    "two tables": (files.zipped({"a.csv": b"x\n1\n", "b.csv": b"x\n1\n"}), "holds 2 files"),
    "other columns": (
        files.zipped({"a": files.parquet(files.FRAME), "b": files.parquet(files.FRAME.drop("town"))}),
        "do not have the same columns",
    ),
    "Delta": (
        files.zipped({"t/p.parquet": files.parquet(files.FRAME), "t/_delta_log/0.json": b"{}"}),
        "rows that were deleted",
    ),
    "images": (files.zipped({"a.png": b"x"}), "declare a schema of images"),
    "OpenDocument": (files.zipped({"mimetype": b"x", "content.xml": b"x"}), "OpenDocument"),
    "nothing": (files.zipped({"t/_SUCCESS": b""}), "holds no files"),
    "an empty file": (gzip.compress(b""), "holds an empty file"),
    "packed too often": (
        gzip.compress(gzip.compress(gzip.compress(gzip.compress(files.CSV.encode())))),
        "packed more than 3 times",
    ),
    "cut-off gzip": (gzip.compress(files.CSV.encode())[:-9], "damaged or cut off"),
    "cut-off Zstandard": (files.zstandard(files.CSV.encode() * 50)[:-9], "damaged or cut off"),
    "cut-off ZIP": (files.zipped({"t.csv": files.CSV.encode()})[:-30], "damaged or cut off"),
    "no sheet in a workbook": (files.zipped({"xl/workbook.xml": b"<workbook/>"}), "begins like a workbook"),
    "entities": (files.workbook({"A": [["x"], [1]]}, prolog='<!DOCTYPE a [<!ENTITY b "bb">]>'), "XML entities"),
    "cut-off Stata": (b"<stata_dta><header>", "begins like one of Stata"),
    "cut-off SPSS": (b"$FL2@(#) SPSS DATA FILE" + bytes(40), "begins like one of SPSS"),
    "cut-off Arrow": (files.arrow(files.FRAME)[:200], "begins like Arrow"),
    "bzip2": (bz2.compress(files.CSV.encode()), "bzip2; pack it with gzip"),
    "old Excel": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "save it as .xlsx"),
    "pickle": (b"\x80\x04\x95" + bytes(20), "write it as Parquet"),
}


@pytest.mark.parametrize("case", BAD_PACKED)
def test_what_is_no_table_in_a_pack_is_refused(case, reader):
    content, match = BAD_PACKED[case]
    with pytest.raises(InvalidFile, match=match):
        reader.read(reader.write(content), files.SCHEMA)


def _link() -> bytes:
    import tarfile

    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        info = tarfile.TarInfo("t.csv")
        info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(info)
    return buffer.getvalue()


def test_a_link_in_a_tar_is_refused(reader):
    with pytest.raises(InvalidFile, match="links or devices"):
        reader.read(reader.write(_link()), files.SCHEMA)


BOMB = b"x,y\n" + b"1,1\n" * 2_000_000


@pytest.mark.parametrize("pack", [gzip.compress, files.zstandard, lambda data: files.zipped({"t.csv": data})])
def test_a_small_file_that_unpacks_to_much_is_refused(pack, reader):
    content = pack(BOMB)
    limits = IngestLimits(unpacked_floor_bytes=1_000_000, unpacked_ratio=20)
    assert len(content) < 50_000
    with pytest.raises(TooLarge) as caught:
        reader.read(reader.write(content), files.SCHEMA, limits=limits)
    assert caught.value.values["limit_bytes"] == 1_000_000


def test_layers_of_packing_share_one_limit(reader):
    """Each layer alone would stay below it."""
    limits = IngestLimits(unpacked_floor_bytes=1_000_000, unpacked_ratio=1)
    content = gzip.compress(files.tarred({"t.csv": BOMB[:600_000]}))
    with pytest.raises(TooLarge) as caught:
        reader.read(reader.write(content), files.SCHEMA, limits=limits)
    assert caught.value.values["limit_bytes"] == 1_000_000
    with pytest.raises(InvalidFile, match="None of the declared columns"):  # one layer is within it
        reader.read(reader.write(gzip.compress(BOMB[:600_000])), files.SCHEMA, limits=limits)


def test_parts_of_a_table_share_one_limit(reader):
    """Each part alone would stay below it; in the pack they take little room."""
    part = files.parquet(pl.DataFrame({"x": [1] * 60_000}))
    content = files.zipped({f"part-{number}.parquet": part for number in range(4)})
    schema = _one("x", "integer", minimum=0, maximum=9)
    with pytest.raises(TooLarge) as caught:
        reader.read(
            reader.write(content), schema, limits=IngestLimits(unpacked_floor_bytes=1_000_000, unpacked_ratio=1)
        )
    assert caught.value.values["limit_bytes"] == 1_000_000


@pytest.mark.parametrize("name", ["PARENT", "PAR1", "ORCID", "FEA1", "ARROW1", "RDX", "PKs", "BZh9"])
def test_a_header_that_begins_like_another_format_is_text(name, reader):
    schema = parse_table_schema(
        {
            "fields": [
                {"name": name, "type": "string", "constraints": {"enum": ["ä", "b"]}},
                {"name": "x", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
            ]
        }
    )
    path = reader.write(f"{name},x\n" + "ä,1\nb,2\n" * 20)
    assert reader.read(path, schema)[0]["rows"] == 40
    assert [field["name"] for field in draft_schema(path)["fields"]] == [name, "x"]


def test_a_workbook_that_unpacks_to_much_is_refused_before_it_is_read(reader, monkeypatch):
    monkeypatch.setattr(sheet_reading, "_workbook", None)
    content = files.workbook({"A": [["x"], [1]]}, more={"xl/media/image.bin": bytes(3_000_000)})
    with pytest.raises(TooLarge) as caught:
        reader.read(
            reader.write(content), files.SCHEMA, limits=IngestLimits(unpacked_floor_bytes=1_000_000, unpacked_ratio=1)
        )
    assert caught.value.values["limit_bytes"] == 1_000_000


def test_a_cell_far_from_the_others_is_refused_before_it_is_read(reader, monkeypatch):
    content = files.workbook({"A": [["x"], [1]]})
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    held["xl/worksheets/sheet1.xml"] = held["xl/worksheets/sheet1.xml"].replace(b'r="A2"', b'r="XFD1048576"')
    monkeypatch.setattr(sheet_reading, "_workbook", None)
    with pytest.raises(TooLarge, match="so far from the first"):
        reader.read(reader.write(files.zipped(held)), files.SCHEMA)


def test_giant_cells_are_refused_in_every_text_format(reader):
    limits = IngestLimits(field_bytes=1_000, line_bytes=16_384)
    schema = _one("x", "string", enum=["a"])
    for content in (
        json.dumps({"x": "b" * 2_000}).encode(),
        files.workbook({"A": [["x"], ["b" * 2_000]]}),
        files.arrow(pl.DataFrame({"x": ["b" * 2_000]})),
        gzip.compress(b"x\n" + b"b" * 2_000 + b"\n"),
    ):
        with pytest.raises(InvalidFile, match="longer than 1000 bytes"):
            reader.read(reader.write(content), schema, limits=limits)
    with pytest.raises(TooLarge, match="line is longer"):
        reader.read(reader.write(json.dumps({"x": "b" * 20_000})), schema, limits=limits)


def test_arrow_text_that_is_not_utf8_is_refused(reader):
    buffer = io.BytesIO()
    table = pa.table({"x": pa.array([b"Ulm", b"Z\xfcrich"]).view(pa.string())})
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(InvalidFile, match="not UTF-8"):
        reader.read(reader.write(buffer.getvalue()), _one("x", "string", enum=["Ulm"]))


@given(
    name=st.sampled_from(
        ["workbook", "Arrow file", "Arrow stream", "Stata", "SPSS", "SAS transport", "Spark's folder in a ZIP"]
    ),
    places=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=3),
    cut=st.integers(0, 60),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_damaged_files_are_refused_or_read(name, places, cut, forms, reader):
    """Any changed byte ends in our own error or in a table, never in a library's exception."""
    content = bytearray(forms[name])
    for share, byte in places:
        content[int(share * (len(content) - 1))] = byte
    with suppress(ImprimaturError):
        reader.read(reader.write(bytes(content[: len(content) - cut])), files.SCHEMA)


def test_a_name_that_is_no_text_is_refused(forms, reader):
    buffer = io.BytesIO()
    pq.write_table(files.FRAME.to_arrow(), buffer, store_schema=False)
    for whole in (forms["Arrow file"], forms["Arrow stream"], buffer.getvalue()):
        content = whole.replace(b"town", b"t\x80wn")
        assert content != whole
        with pytest.raises(InvalidFile, match="damaged"):
            reader.read(reader.write(content), files.SCHEMA)


def test_a_notice_counts_what_spss_declares_missing(reader, tmp_path):
    frame = pl.DataFrame(
        {"sex": [1.0, 2, 9, None, 9], "wage": [1.0, 95, 99, 4, 5], "town": ["Ulm", "NA", "Ulm", "Ulm", ""]}
    )
    ranges = {"sex": [9], "wage": [{"lo": 90, "hi": 98}, 99], "town": ["NA", "X"]}
    path = reader.write(files.statistics(pyreadstat.write_sav, tmp_path, frame, "sav", missing_ranges=ranges))
    field = {"type": "number", "constraints": {"minimum": 0, "maximum": 120}}
    town = {"name": "town", "type": "string", "constraints": {"enum": ["Ulm"]}}
    document = {"fields": [{"name": "sex"} | field, {"name": "wage"} | field, town]}
    answer, table = reader.read(path, parse_table_schema(document))
    assert table["wage"].to_list() == [1, None, None, 4, 5]
    said = [notice for notice in answer["notices"] if "user-missing" in notice]
    assert [notice.partition(" hold")[0] for notice in said] == [
        "Column 'sex': 2 cells",
        "Column 'wage': 2 cells",
        "Column 'town': 1 cell",
    ]
    assert draft_table(path).notices == said


@pytest.mark.parametrize(
    ("code", "is_said"), [("00000", True), ("00000\\-0000", True), ("0.00", False), ("#,##0", False), ("00.0", False)]
)
def test_a_number_format_that_adds_zeros_is_said(code, is_said, reader):
    styles = f'<styleSheet><numFmts count="1"><numFmt numFmtId="164" formatCode="{code}"/></numFmts></styleSheet>'
    content = files.workbook({"A": [["x"], [1234], [2345]]}, more={"xl/styles.xml": styles.encode()})
    path = reader.write(content)
    answer, _ = reader.read(path, _one("x", "integer", minimum=0, maximum=9_999))
    for notices in (answer["notices"], draft_table(path).notices):
        assert any("format of zeros" in notice for notice in notices) is is_said


def test_a_draft_names_the_sheets_that_it_did_not_read(reader):
    path = reader.write(files.workbook({"A": [["x"], [1], [2]], "B": [], "C": []}))
    assert draft_table(path).notices == ["Sheet 'A' was read; the workbook has others: 'B', 'C'."]
