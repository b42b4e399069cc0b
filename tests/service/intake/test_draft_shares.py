"""A draft says what share of the file it has read; of CSV, too, of which the parser reads far ahead."""

import gzip

import polars as pl
import pytest

from service.intake.limits import IngestLimits
from service.intake.room import Room
from service.intake.sealed import SealedFile
from service.intake.table.draft import draft_upload


def shares_of(path, look=lambda _: None):
    limits, shares = IngestLimits(line_bytes=1 << 18, field_bytes=1 << 16), []
    with SealedFile.in_the_clear(path) as file, Room.of_its_own(limits.unpacked_limit(file.size)) as room:
        draft_upload(file, limits, room, look=lambda _columns: look(list(shares)), report=shares.append)
    return shares


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_shares_grow_to_the_whole(tmp_path, kind):
    path = tmp_path / f"many.{kind}"
    frame = pl.DataFrame({"town": ["Bonn", "Köln"] * 200_000, "age": list(range(100)) * 4_000})
    getattr(frame, f"write_{kind}")(path)
    shares = shares_of(path)
    assert len(set(shares)) > 2
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 0.5
    assert shares[-1] == 1.0


@pytest.mark.parametrize("kind", ["jsonl", "csv", "csv.gz"])
def test_shares_grow_before_the_first_row_is_looked_at(tmp_path, kind):
    """Opening reads all of such a file: for the names, the encoding, or to unpack it."""
    path = tmp_path / f"many.{kind}"
    rows = [f'{{"town": "Bonn", "age": {n % 90}, "note": "{n:032x}"}}' for n in range(30_000)]
    if kind != "jsonl":
        rows = ["town,age,note", *(f"Bonn,{n % 90},{(n * 7919) ** 9:064x}" for n in range(30_000))]
    text = ("\n".join(rows) + "\n").encode()
    path.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    before = []
    shares = shares_of(path, before.extend)
    assert len(set(before)) > 2
    assert before[-1] == pytest.approx(1 / 3)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0


def test_shares_grow_with_every_column_of_a_chunk(tmp_path):
    path = tmp_path / "few.parquet"
    pl.DataFrame({f"c{n}": ["a", "b"] * 50 for n in range(20)}).write_parquet(path)
    assert len(set(shares_of(path))) >= 20
