"""The child process that reads rows to be completed from Parquet. Run by `service.intake.sandboxed`."""

from __future__ import annotations

import datetime as dt
import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from service.base.errors import InvalidFile, TooLarge
from service.base.messages import Message
from service.intake import child
from service.intake.sealed import SealedFile

if TYPE_CHECKING:
    from service.intake import sandbox


def read_sent_rows(document: dict[str, Any]) -> dict[str, Any]:
    """What is to be done, in the sandbox."""
    most_rows, most_cells = document["most_rows"], document["most_cells"]
    try:
        file = pq.ParquetFile(SealedFile.handed_over(document["upload"]).reader(), pre_buffer=False)
        if file.metadata.num_rows > most_rows:
            raise TooLarge(
                Message(
                    "%(found)s rows; %(most)s may be completed at once", found=file.metadata.num_rows, most=most_rows
                ),
                limit_rows=most_rows,
            )
        if file.metadata.num_rows * file.metadata.num_columns > most_cells:
            raise TooLarge(
                Message("too many cells: %(most)s may be completed at once; send fewer rows", most=most_cells),
                limit_cells=most_cells,
            )
        table = file.read(use_threads=False)
    except (pa.ArrowException, OSError):
        raise InvalidFile(Message("the rows cannot be read as Parquet")) from None
    if len(set(table.column_names)) < table.num_columns:
        raise InvalidFile(Message("the rows name a column twice"))
    columns = {
        name: [_plain(value) for value in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    if len(json.dumps(columns)) > document["most_bytes"]:
        most = document["most_bytes"]
        raise TooLarge(
            Message("too many cells: their text has more than %(most)s bytes; send fewer rows", most=most),
            limit_bytes=most,
        )
    return {"columns": columns}


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
