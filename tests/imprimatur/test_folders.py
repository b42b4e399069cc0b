"""A folder of Parquet files on its way to a service."""

from __future__ import annotations

import tarfile
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from imprimatur.cli.application import app
from imprimatur.errors import InvalidInput
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


@pytest.mark.parametrize(
    ("mark", "what"),
    [
        ("_delta_log/00000000000000000000.json", "Delta Lake"),
        ("metadata/v1.metadata.json", "Iceberg"),
        (".hoodie/hoodie.properties", "Hudi"),
    ],
)
def test_a_folder_that_also_holds_deleted_rows_is_refused_by_name(tmp_path: Path, mark: str, what: str):
    table = _spark_folder(tmp_path)
    (table / mark).parent.mkdir()
    (table / mark).write_text("{}")
    refused = CliRunner().invoke(app, ["schema", "draft", str(table)])
    said = f"people.parquet is a table of {what}: its folder also holds rows that were deleted"
    assert said in str(refused.exception)
    with pytest.raises(InvalidInput, match=f"table of {what}"), as_file(table):
        pass


def test_a_folder_without_parquet_is_refused_by_name(tmp_path: Path):
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("x\n1\n")
    with pytest.raises(InvalidInput, match="folder without a Parquet file"), as_file(tmp_path):
        pass
