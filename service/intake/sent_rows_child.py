"""The child process that reads rows to be completed from Parquet. Run by `service.intake.sandboxed`."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.base.errors import InvalidFile, TooLarge
from service.intake import child
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from service.intake import sandbox


def read_sent_rows(document: dict[str, Any]) -> dict[str, Any]:
    """What is to be done, in the sandbox."""
    most_rows = document["most_rows"]
    try:
        file = pq.ParquetFile(SealedFile.handed_over(document["upload"]).reader(), pre_buffer=False)
        if file.metadata.num_rows > most_rows:
            raise TooLarge(f"{file.metadata.num_rows} rows; {most_rows} may be completed at once", limit_rows=most_rows)
        rows = file.read(use_threads=False).to_pylist()
    except (pa.ArrowException, OSError):
        raise InvalidFile("the rows cannot be read as Parquet") from None
    return {"rows": [{name: _plain(value) for name, value in row.items()} for row in rows]}


def _plain(value: Any) -> Any:
    """As JSON has it: dates and times as ISO text, what else there is as text. Times without a zone are UTC, as in samples."""
    if isinstance(value, dt.datetime):
        return (value if value.tzinfo else value.replace(tzinfo=dt.UTC)).isoformat()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def main(begun: sandbox.Begun) -> None:
    """One job in, one answer out."""
    child.main(begun, read_sent_rows)
