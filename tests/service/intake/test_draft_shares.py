"""A draft says what share of the file it has read; of CSV, too, of which the parser reads far ahead."""

import polars as pl
import pytest

from service.intake.limits import IngestLimits
from service.intake.room import Room
from service.intake.sealed import SealedFile
from service.intake.table.draft import draft_upload


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_shares_grow_to_the_whole(tmp_path, kind):
    path = tmp_path / f"many.{kind}"
    frame = pl.DataFrame({"town": ["Bonn", "Köln"] * 200_000, "age": list(range(100)) * 4_000})
    getattr(frame, f"write_{kind}")(path)
    limits, shares = IngestLimits(line_bytes=1 << 18, field_bytes=1 << 16), []
    with SealedFile.in_the_clear(path) as file, Room.of_its_own(limits.unpacked_limit(file.size)) as room:
        draft_upload(file, limits, room, report=shares.append)
    assert len(set(shares)) > 2
    assert shares == sorted(shares)
    assert 0.0 < shares[0] < 0.5
    assert shares[-1] == 1.0
