"""Sealed files: any place can be read and written, and what lies on disk says nothing."""

import io
import os
import zipfile
from pathlib import Path

import pytest

from service.intake.sealed import PIECE_BYTES, SealedFile

MARKER = b"Zanzibar-90210.75,"
CONTENT = MARKER * 60_000


@pytest.fixture
def sealed(tmp_path):
    with SealedFile.create(tmp_path) as file:
        yield file


def on_disk(file):
    """What a thief of the disk reads."""
    return os.pread(file.descriptor, file.size, 0)


def test_what_is_written_is_read_and_nothing_of_it_lies_on_disk(sealed, tmp_path):
    with sealed.writer() as writer:
        for start in range(0, len(CONTENT), 1_013):
            writer.write(CONTENT[start : start + 1_013])
    assert b"".join(sealed.pieces()) == CONTENT
    assert sealed.reader().read() == CONTENT
    assert sealed.size == len(CONTENT)
    disk = on_disk(sealed)
    assert MARKER not in disk
    assert len({disk[i : i + 16] for i in range(0, 160_000, 16)}) == 10_000, "no block occurs twice"
    assert list(tmp_path.iterdir()) == [], "nor has it a name"


@pytest.mark.parametrize(("place", "size"), [(0, 1), (1, 15), (15, 2), (16, 16), (1_000_003, 77), (PIECE_BYTES - 1, 2)])
def test_any_place_can_be_read(sealed, place, size):
    sealed.append(CONTENT)
    assert sealed.read_at(place, size) == CONTENT[place : place + size]
    reader = sealed.reader()
    reader.seek(place)
    assert reader.read(size) == CONTENT[place : place + size]


def test_places_can_be_written_in_any_order(sealed):
    starts = [(i * 7_919) % 100 * 786 for i in range(100)]
    for start in starts:
        sealed.write_at(start, CONTENT[start : start + 786])
    assert sealed.read_at(0, 100 * 786) == CONTENT[: 100 * 786]


def test_two_files_have_two_keys(sealed, tmp_path):
    with SealedFile.create(tmp_path) as other:
        sealed.append(CONTENT)
        other.append(CONTENT)
        assert on_disk(sealed) != on_disk(other)
        assert sealed.handle()["key"] != other.handle()["key"]


def test_libraries_read_it_as_a_file(sealed):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for i in range(50):
            archive.writestr(f"{i}", CONTENT[: i * 100])
    sealed.append(buffer.getvalue())
    with zipfile.ZipFile(sealed.reader()) as archive:
        assert archive.testzip() is None
        assert archive.read("7") == CONTENT[:700]


def test_the_owners_own_file_is_read_as_it_is(tmp_path: Path):
    path = tmp_path / "table.csv"
    path.write_bytes(CONTENT)
    with SealedFile.in_the_clear(path) as file:
        assert b"".join(file.pieces()) == CONTENT
        assert file.handle()["key"] is None


def test_handed_over_it_is_the_same_file(sealed):
    sealed.append(CONTENT)
    assert SealedFile.handed_over(sealed.handle()).read_at(5, 100) == CONTENT[5:105]
