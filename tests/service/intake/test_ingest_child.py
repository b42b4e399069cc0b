"""The real child process: its limits, its silence, and what its parent makes of it."""

from __future__ import annotations

import io
import json
import logging
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from service.base.errors import InvalidFile, InvalidInput, TooLarge, Unavailable
from service.domain.privacy_unit import PrivacyUnit
from service.domain.table_schema import parse_table_schema
from service.intake import ingest
from service.intake.ingest import IngestLimits, _environment, ingest_table
from service.intake.sealed import SealedFile
from service.intake.table.detecting import DETECTED

EXAMPLES = Path(__file__).parents[3] / "examples"
MARKER = "Zanzibar-90210.75"
MiB = 1024 * 1024
SCHEMA = parse_table_schema(
    {
        "fields": [
            {"name": "x", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
            {"name": "town", "type": "string", "constraints": {"enum": ["Ulm", "Bern"], "required": True}},
        ]
    }
)


def _ingest(path: Path, schema=SCHEMA, *, unit: PrivacyUnit | None = None, **limits: int):
    workdir = path.parent / "work"
    workdir.mkdir(exist_ok=True)
    path.touch()
    with SealedFile.in_the_clear(path) as upload:
        return ingest_table(
            upload,
            schema,
            privacy_unit=unit,
            limits=IngestLimits(**limits),
            scratch_dir=workdir,
            fingerprint_key=b"k" * 32,
        )


def test_the_poker_hand_example(tmp_path: Path):
    path = tmp_path / "upload"
    path.write_bytes((EXAMPLES / "poker_hand.csv").read_bytes())
    schema = parse_table_schema(json.loads((EXAMPLES / "poker_hand.schema.json").read_text()))
    table = _ingest(path, schema)
    assert (table.rows, table.units, table.notices) == (25_010, 25_010, ())
    assert table.columns == schema.names
    assert [(one[0], len(one)) for one in table.fingerprints] == [(2, 33)]  # the version, and 256 bits
    canonical = pl.read_parquet(table.canonical.reader())
    assert canonical.equals(pl.read_csv(path))
    assert list((tmp_path / "work").iterdir()) == []


def test_a_privacy_unit_and_notices_come_through(tmp_path: Path):
    path = tmp_path / "upload"
    path.write_text("who,x,town\nb,1,Ulm\na,77,Bern\nb,3,Ulm\n")
    table = _ingest(path, unit=PrivacyUnit(column="who", max_rows_per_unit=1))
    assert (table.rows, table.units, table.columns) == (3, 2, ("x", "town"))
    assert pl.read_parquet(table.canonical.reader())["__unit__"].to_list() in ([0, 0, 1], [0, 1, 1])
    assert len(table.notices) == 2


def test_errors_come_through_with_their_values_and_leave_nothing(tmp_path: Path, says_nothing):
    path = tmp_path / "upload"
    path.write_text(f"x,town\n1,Ulm\n{MARKER},Bern\n")
    with pytest.raises(InvalidFile) as caught:
        _ingest(path)
    says_nothing(caught.value)
    assert caught.value.values["column"] == "x"
    assert caught.value.values["count"] == 1
    assert list((tmp_path / "work").iterdir()) == []


def test_a_unit_column_among_the_fields_is_refused(tmp_path: Path):
    with pytest.raises(InvalidInput, match="must not be a field"):
        _ingest(tmp_path / "none", unit=PrivacyUnit(column="x", max_rows_per_unit=1))


def test_a_reserved_field_name_is_refused(tmp_path: Path):
    schema = parse_table_schema({"fields": [{"name": "__unit__", "type": "boolean"}]})
    with pytest.raises(InvalidInput, match="reserved"):
        _ingest(tmp_path / "none", schema)


def test_a_file_that_needs_too_much_memory(tmp_path: Path):
    """One text of 60 kB in a dictionary, 65,000 times: 4 GB in the first batch, 70 kB on disk."""
    buffer = io.BytesIO()
    indices = pa.array([0] * 65_000, pa.int32())
    town = pa.DictionaryArray.from_arrays(indices, pa.array([MARKER * 3_500]))
    pq.write_table(pa.table({"x": [1] * 65_000, "town": town}), buffer)
    path = tmp_path / "upload"
    path.write_bytes(buffer.getvalue())
    assert path.stat().st_size < MiB
    with pytest.raises(TooLarge) as caught:
        _ingest(path, memory_bytes=256 * MiB)
    assert caught.value.values == {"limit_bytes": 256 * MiB}
    assert "Zanzibar" not in str(caught.value)
    assert list((tmp_path / "work").iterdir()) == []


def test_a_file_that_takes_too_long(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(ingest, "_CHILD", "tests.service.intake.slow_child")
    with pytest.raises(TooLarge) as caught:
        _ingest(tmp_path / "upload", seconds=1)
    assert caught.value.values == {"limit_seconds": 1}


def test_a_child_that_fails_in_an_unforeseen_way(tmp_path: Path, caplog, monkeypatch):
    """The owner gets a plain sentence, the operator the kind of error and a line, no one its text."""
    path = tmp_path / "upload"
    path.write_text(MARKER)
    monkeypatch.setattr(ingest, "_CHILD", "tests.service.intake.failing_child")
    with caplog.at_level(logging.ERROR), pytest.raises(InvalidFile) as caught:
        _ingest(path)
    assert "Zanzibar" not in str(caught.value) + caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_the_child_gets_no_secrets(monkeypatch):
    monkeypatch.setenv("IMPRIMATUR_DATABASE_URL", "postgresql://user:password@host/db")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "password")
    assert "password" not in json.dumps(_environment())


def test_the_child_says_nothing_on_rubbish():
    found = subprocess.run(
        [sys.executable, "-m", "service.intake.sandboxed", "service.intake.child"],
        input=b'{"path": "Zanzibar"}',
        capture_output=True,
        env=_environment(),
        check=True,
    )
    assert json.loads(found.stdout)["error"]["code"] == "unexpected"
    assert b"Zanzibar" not in found.stdout + found.stderr


def test_the_api_process_loads_no_table_library():
    code = "import sys, service.intake.ingest; print([m for m in ('polars', 'pyarrow', 'numpy', 'PIL') if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.slow
@pytest.mark.parametrize("delimiter", [",", ";"])
@pytest.mark.parametrize("encoding", [*DETECTED, "iso-8859-1"])
def test_text_in_an_undeclared_encoding_is_told_what_to_declare(encoding, delimiter, tmp_path: Path):
    """What detection looks up must be there before the sandbox closes: nothing can be imported behind it."""
    path = tmp_path / "upload"
    schema = SCHEMA.as_json()
    town = "Wąsosz" if encoding == "windows-1250" else "Köln"
    schema["fields"][1]["constraints"]["enum"].append(town)
    path.write_bytes(f"x{delimiter}town\n1{delimiter}{town}\n2{delimiter}Ulm\n3{delimiter}Bern\n".encode(encoding))
    if (encoding, delimiter) == ("utf-8", ","):
        assert _ingest(path, parse_table_schema(schema)).rows == 3
        return
    expected = "windows-1252" if encoding == "iso-8859-1" else encoding
    words = ([] if encoding == "utf-8" else [f'"encoding": "{expected}"']) + ['"delimiter": ";"'] * (delimiter == ";")
    with pytest.raises(InvalidFile) as caught:
        _ingest(path, parse_table_schema(schema))
    assert f'"dialect": {{{", ".join(words)}}}' in caught.value.detail


def test_a_child_that_does_not_start_is_no_fault_of_the_file(tmp_path: Path, monkeypatch, caplog):
    path = tmp_path / "upload"
    path.write_text("x,town\n1,Ulm\n2,Bern\n")
    monkeypatch.setattr(ingest, "_CHILD", "service.intake.no_such_child")
    with pytest.raises(Unavailable, match="Nothing of the file was read"):
        _ingest(path)
    assert caplog.text.count("did not start: ModuleNotFoundError: service.intake.no_such_child") == 2  # tried once more


def test_a_child_that_is_gone_before_its_job_is_written_did_not_start(tmp_path: Path, monkeypatch):
    """Closing the pipe writes what is left in it, and fails as well."""
    path = tmp_path / "upload"
    path.write_text("x,town\n1,Ulm\n2,Bern\n")
    begin = subprocess.Popen

    def gone(_command, **how):
        child = begin(["/bin/false"], **how)
        child.wait()
        return child

    monkeypatch.setattr(ingest.subprocess, "Popen", gone)
    with pytest.raises(Unavailable):
        _ingest(path)


@pytest.mark.parametrize("said", ["Zanzibar 90210", ["ValueError"], "ValueError\nforged"])
def test_of_a_child_that_a_file_has_taken_over_no_text_is_logged(said, caplog):
    with pytest.raises(InvalidFile):
        ingest._answer({"error": {"code": "unexpected", "kind": said, "line": said}}, 0, IngestLimits())
    assert caplog.messages == ["reading failed unexpectedly: ? at ?"]
