"""A folder of Parquet files, as Spark writes a table, packed on its way: a service takes files."""

from __future__ import annotations

import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from imprimatur.formats import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator


PARQUET_ENDINGS = (".parquet", ".pq")


def table_format_of(name: str) -> str | None:
    """Which format of tables keeps a file of this path beside its Parquet files, if any does."""
    first, file = name.split("/", maxsplit=1)[0], PurePosixPath(name)
    if first == "_delta_log":
        return "Delta Lake"
    if first == ".hoodie":
        return "Hudi"
    return "Iceberg" if first == "metadata" and file.name.endswith(".metadata.json") else None


def not_a_folder_of_parts(place: str, table_format: str) -> str:
    """What to say of such a folder."""
    return (
        f"{place} is a table of {table_format}: its folder also holds rows that were deleted. Write the table as plain Parquet, or query it"
        " with DuckDB"
    )


@contextmanager
def as_file(path: Path) -> Iterator[Path]:
    """The file itself; of a folder a tar, in a folder that only this user can read and that is gone when the block ends.

    Links are left out: they may lead anywhere.
    """
    if not path.is_dir():
        yield path
        return
    files = sorted(file for file in path.rglob("*") if file.is_file() and not file.is_symlink())
    for file in files:
        if (lake := table_format_of(file.relative_to(path).as_posix())) is not None:
            raise invalid("file", not_a_folder_of_parts(str(path), lake))
    if not any(file.suffix in PARQUET_ENDINGS for file in files):
        raise invalid(
            "file",
            f"{path} is a folder without a Parquet file (.parquet). Folders are read as Spark writes one table; name one file instead",
        )
    with tempfile.TemporaryDirectory(prefix="imprimatur-") as folder:
        packed = Path(folder) / f"{path.resolve().name}.tar"
        with tarfile.open(packed, "w") as archive:
            for file in files:
                archive.add(file, arcname=str(file.relative_to(path)), recursive=False)
        yield packed
