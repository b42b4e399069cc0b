"""A reader that is forked is the one that a service starts: the same answer, the same sandbox, and it ends when it is told to."""

import subprocess

import pytest

from service.base.errors import InvalidFile
from service.domain.table_schema import TableSchema
from service.intake import ingest
from service.intake.sealed import SealedFile
from tests.service.http.conftest import SCHEMA, TABLE


def _read(content):
    limits, schema = ingest.IngestLimits(), TableSchema.model_validate(SCHEMA)
    with SealedFile.create(None) as upload:
        upload.append(content.encode())
        with ingest.ingest_table(
            upload, schema, privacy_unit=None, limits=limits, scratch_dir=None, fingerprint_key=b"k" * 32
        ) as table:
            return table.rows, table.fingerprints, table.column_fingerprints, b"".join(table.canonical.pieces())


def test_it_is_the_reader_of_a_service(prepared_readers, monkeypatch):
    layers = []
    monkeypatch.setattr(ingest, "_notice_layers", layers.append)
    started = _read(TABLE)
    monkeypatch.setattr(ingest, "subprocess", prepared_readers)
    assert _read(TABLE) == started
    assert layers[1] == layers[0]
    with pytest.raises(InvalidFile, match="'age'"):
        _read(TABLE.replace("\n20,", "\nolder,"))


def test_it_can_be_ended(prepared_readers):
    files, command = [], ["python", "-m", "service.intake.sandboxed", "service.intake.child"]
    reader = prepared_readers.Popen(command, env=ingest._environment(), pass_fds=files)  # it waits for its job
    reader.kill()
    assert reader.wait() == -9
    reader.kill()
    for pipe in (reader.stdin, reader.stdout):
        pipe.close()


def test_anything_else_is_started_as_ever(prepared_readers):
    command = ["true", "service.intake.sandboxed", "tests.service.intake.probe_child"]
    with prepared_readers.Popen(command) as process:
        assert isinstance(process, subprocess.Popen)
