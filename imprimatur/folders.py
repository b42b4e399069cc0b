"""A folder of Parquet files, as Spark writes a table, packed on its way: a service takes files."""

from __future__ import annotations

import tarfile
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def as_file(path: Path) -> Iterator[Path]:
    """The file itself; of a folder a tar, in a folder that only this user can read and that is gone when the block ends.

    Links are left out: they may lead anywhere.
    """
    if not path.is_dir():
        yield path
        return
    with tempfile.TemporaryDirectory(prefix="imprimatur-") as folder:
        packed = Path(folder) / f"{path.resolve().name}.tar"
        with tarfile.open(packed, "w") as archive:
            for file in sorted(path.rglob("*")):
                if file.is_file() and not file.is_symlink():
                    archive.add(file, arcname=str(file.relative_to(path)), recursive=False)
        yield packed
