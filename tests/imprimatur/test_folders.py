"""A folder of Parquet files on its way to a service."""

from __future__ import annotations

import tarfile
from pathlib import Path

import polars as pl
from typer.testing import CliRunner

from imprimatur.cli.application import app
from imprimatur.folders import as_file


def _spark_folder(folder: Path) -> Path:
    table = folder / "people.parquet"
    for year in (2023, 2024):
        part = table / f"year={year}"
        part.mkdir(parents=True)
        pl.DataFrame({"sex": ["M", "F"] * 20, "age": [30, 40] * 20}).write_parquet(part / "part-00000.snappy.parquet")
    (table / "_SUCCESS").touch()
    return table


def test_a_file_stays_what_it_is(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("x\n1\n")
    with as_file(path) as found:
        assert found == path


def test_a_folder_becomes_a_tar_that_is_gone_afterwards(tmp_path: Path):
    table = _spark_folder(tmp_path)
    (table / "link.parquet").symlink_to("/etc/passwd")
    with as_file(table) as packed:
        with tarfile.open(packed) as archive:
            names = archive.getnames()
        assert packed.name == "people.parquet.tar"
        assert packed.stat().st_mode & 0o077 == 0 or packed.parent.stat().st_mode & 0o077 == 0
    assert names == ["_SUCCESS", *(f"year={year}/part-00000.snappy.parquet" for year in (2023, 2024))]
    assert not packed.exists()


def test_a_folder_is_drafted_and_checked(tmp_path: Path):
    table, schema = _spark_folder(tmp_path), tmp_path / "schema.json"
    drafted = CliRunner().invoke(app, ["schema", "draft", str(table), "-o", str(schema)])
    assert drafted.exit_code == 0, drafted.output
    checked = CliRunner().invoke(app, ["schema", "check", str(schema), str(table)])
    assert checked.exit_code == 0, checked.output
    assert "80 rows follow the schema" in checked.output
