from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from service.base.errors import ImprimaturError, InvalidInput, TooLarge
from service.domain.privacy_unit import PrivacyUnit
from service.domain.table_schema import TableSchema
from service.intake.child import Job, read_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from service.intake.table.drafting.findings import Finding
from tests.service.untranslated import note_errors, untranslated

FINGERPRINT_KEY = b"k" * 32
MARKER = "Zanzibar-90210.75"
"""Planted as a cell of bad files; no error may quote it."""


class Reader:
    """Reads a file in this process, as the child does, and keeps the canonical table."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def write(self, content: bytes | str | pl.DataFrame, *, parquet: bool = False) -> Path:
        self._count += 1
        path = self.folder / f"upload-{self._count}"
        if isinstance(content, pl.DataFrame):
            content.write_parquet(path) if parquet else content.write_csv(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def read(
        self,
        path: Path,
        schema: TableSchema,
        *,
        privacy_unit: PrivacyUnit | None = None,
        limits: IngestLimits | None = None,
        key: bytes = FINGERPRINT_KEY,
        accept_undeclared: Collection[str] = (),
    ) -> tuple[dict[str, Any], pl.DataFrame]:
        with (
            SealedFile.in_the_clear(path) as upload,
            SealedFile.create(self.folder) as canonical,
            SealedFile.create(self.folder) as scratch,
        ):
            job = Job(
                upload,
                canonical,
                scratch,
                schema,
                privacy_unit,
                limits or IngestLimits(),
                key,
                frozenset(accept_undeclared),
            )
            answer = read_table(job)
            assert [left for notice in answer["notices"] for left in untranslated(notice)] == []
            return json.loads(json.dumps(answer)), pl.read_parquet(canonical.reader())


@pytest.fixture(autouse=True)
def every_sentence_can_be_said_in_german(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Refusals of files, and what a draft finds of a column. That a file has no column to draft is said on the command line alone."""
    noted, made = note_errors(monkeypatch, InvalidInput, TooLarge), Finding.__init__

    def noting(self: Finding, *parts: Any, **more: Any) -> None:
        made(self, *parts, **more)
        noted.append(self.beside_the_column())

    monkeypatch.setattr(Finding, "__init__", noting)
    yield
    on_the_page = [said for said in noted if not said.startswith("No column of the file looks like")]
    assert [left for said in on_the_page for left in untranslated(said)] == []


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path)


@pytest.fixture(scope="session")
def says_nothing() -> Callable[[ImprimaturError], None]:
    """The error has a sentence and holds no planted cell."""

    def check(error: ImprimaturError) -> None:
        text = f"{error} {error.detail} {json.dumps(error.values)}"
        assert len(error.detail) > 10
        for part in (MARKER, "Zanzibar", "90210"):
            assert part not in text
        assert error.__cause__ is None
        assert error.__suppress_context__ or error.__context__ is None

    return check
