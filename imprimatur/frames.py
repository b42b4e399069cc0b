"""`imprimatur.publish`: a table of polars or pandas in, a synthetic one of the same library out. Neither is required."""

from __future__ import annotations

import importlib
import importlib.util
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from imprimatur.client import Client
from imprimatur.errors import ApiError, NotPublished

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imprimatur.replies import Declaration


def publish(
    table: Any,
    schema: Mapping[str, Any],
    order: Mapping[str, Any],
    *,
    epsilon: float | None = None,
    rows: int = 1_000,
    client: Client | None = None,
    **declared: Unpack[Declaration],
) -> Any:
    """Upload a table, order one release, wait for it, and draw rows.

    `table`: a DataFrame, or the path of a CSV or Parquet file, whose synthetic rows come as polars has them, else pandas.
    `epsilon`: of the table's whole budget, given once; default: the order's. The same rows, declared as before, keep the
    budget they have. `client`: default, the service of IMPRIMATUR_URL with the key of IMPRIMATUR_API_KEY.
    """
    whole = order.get("epsilon") if epsilon is None else epsilon
    if whole is None:
        raise ValueError("give the ε of the table's budget: the order names none")
    with ExitStack() as opened:
        service = client or opened.enter_context(_client_of_the_environment())
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="imprimatur-publish-")))
        file, library = _file_of(table, folder)
        declared.setdefault("name", "table" if file.parent == folder else file.stem)
        dataset_id = _dataset_of(service, file, schema, float(whole), declared)
        release = service.wait(service.create_release(dataset_id, order)["id"])
        if release["state"] != "published":
            raise NotPublished(release)
        service.save_sample(release["id"], folder / "rows.parquet", rows, format="parquet")
        return library.read_parquet(folder / "rows.parquet")


def _dataset_of(client: Client, file: Path, schema: Mapping[str, Any], epsilon: float, declared: Declaration) -> str:
    try:
        return client.create_dataset(file, schema, epsilon=epsilon, **declared)["id"]
    except ApiError as error:
        if error.code == "duplicate_rows" and error.values.get("same_declaration"):
            return str(error.values["dataset_id"])
        raise


def _client_of_the_environment() -> Client:
    url = os.environ.get("IMPRIMATUR_URL")
    if not url:
        raise ValueError("no service is named: give a client, or set IMPRIMATUR_URL and IMPRIMATUR_API_KEY")
    return Client(url, os.environ.get("IMPRIMATUR_API_KEY"))


def _file_of(table: Any, folder: Path) -> tuple[Path, Any]:
    """The table as a file, and the library that reads the rows that come back."""
    if isinstance(table, str | Path):
        return Path(table), _library()
    file = folder / "table.parquet"
    if hasattr(table, "write_parquet"):
        table.write_parquet(file)
    else:
        table.to_parquet(file, index=False)
    return file, importlib.import_module(type(table).__module__.partition(".")[0])


def _library() -> Any:
    for name in ("polars", "pandas"):
        if importlib.util.find_spec(name) is not None:
            return importlib.import_module(name)
    raise ModuleNotFoundError("synthetic rows are given as a DataFrame: install polars or pandas", name="polars")
