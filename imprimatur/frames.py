"""`imprimatur.publish`: a DataFrame of pandas or polars in, a synthetic one of the same library and dtypes out. Neither is required."""

from __future__ import annotations

import os
import tempfile
import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from imprimatur.client import Client
from imprimatur.datasets import refuse_unknown
from imprimatur.errors import DuplicateRows, NotPublished, OrderedNotDelivered, how_to_go_on
from imprimatur.formats import invalid
from imprimatur.frame_columns import frame_of
from imprimatur.frame_schemas import accepted, agreed_schema, ask_whose_rows, check_columns, is_draft, with_target
from imprimatur.person_columns import header_of
from imprimatur.preflight import check_before_paying, check_known_budget, check_name
from imprimatur.replies import Declaration
from imprimatur.tables import PANDAS, POLARS, read_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from imprimatur.datasets import Where
    from imprimatur.objects import Dataset
    from imprimatur.replies import Json


class FrameOptions(Declaration, total=False):
    """Further keywords of `publish`."""

    budget_epsilon: float | None
    rows_are_units: bool
    accept_undeclared: Sequence[str]
    where: Where | None
    seed: int | None
    idempotency_key: str | None
    priority: int | None
    timeout: float | None
    progress: bool | None


@dataclass(frozen=True)
class _Table:
    """What is published, and how rows that come back are made like it."""

    schema: Json
    write: Callable[[Path], Path]
    restored: Callable[[bytes], Any]
    name: str


def publish(
    table: Any,
    schema: Mapping[str, Any] | None = None,
    order: Mapping[str, Any] | None = None,
    *,
    epsilon: float | None = None,
    target: str | None = None,
    rows: int = 1_000,
    client: Client | None = None,
    accept_draft: bool = False,
    **options: Unpack[FrameOptions],
) -> Any:
    """Upload a table, order one release, wait for it, and draw rows.

    `table`: a DataFrame of pandas or polars, a table of Arrow, or the path of a CSV or Parquet file; the synthetic rows
    come in the same library, with the same dtypes (of a path: as polars has them, else pandas).
    `schema`: what everybody may know of the columns; it becomes public. Without one, categorical and boolean columns
    declare themselves. For others there is no schema but one that was read from the rows, which `accept_draft=True` takes.
    `epsilon`: of this release; `order` has all knobs. `budget_epsilon`: of the table's whole budget, given **once and
    for ever**; default: this release's ε, so that nothing is left for a second one. Rows that were declared so before
    keep the budget that they have.
    `privacy_unit`: where several rows are one person; `rows_are_units=True`: where none are. A column that looks like a
    person's id needs one of the two.
    `target`: the column that people will want to predict. `client`: default, the service of IMPRIMATUR_URL with the key
    of IMPRIMATUR_API_KEY.

    What can be known before is checked before anything is paid. `OrderedNotDelivered` names the release if something
    fails after that. With an `idempotency_key` of your own, the same call after a crash finds its order again.
    """
    refuse_unknown(options, FrameOptions.__optional_keys__)
    wanted = _order(order, epsilon)
    asked = options.get("budget_epsilon")
    whole = asked or wanted.get("epsilon")
    if whole is None:
        raise invalid("budget_epsilon", "give the ε of the table's budget as budget_epsilon=: the order names none")
    made = _table_of(table, schema, target, options, accept_draft=accept_draft)
    check_before_paying(made.schema, where=options.get("where"), rows=rows)
    with ExitStack() as opened:
        service = client or opened.enter_context(_client_of_the_environment())
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="imprimatur-publish-")))
        dataset = _dataset_of(service, made, folder, float(whole), options)
        check_known_budget(dataset, asked, options.get("delta"))
        key = options.get("idempotency_key") or str(uuid.uuid4())
        release = dataset.order(wanted, idempotency_key=key, priority=options.get("priority"))
        try:
            ended = release.wait(timeout=options.get("timeout"), progress=options.get("progress"))
            sample = service.sample(ended, rows, format="parquet", where=options.get("where"), seed=options.get("seed"))
            return made.restored(b"".join(sample.chunks()))
        except NotPublished:
            raise
        except Exception as error:
            raise OrderedNotDelivered(release.id, error) from error
        except BaseException as error:  # interrupted
            error.add_note(how_to_go_on(release.id))
            raise


def _order(order: Mapping[str, Any] | None, epsilon: float | None) -> Json:
    wanted = dict(order or {})
    if epsilon is not None and wanted.setdefault("epsilon", epsilon) != epsilon:
        raise invalid(
            "epsilon",
            f"the order says ε = {wanted['epsilon']} and epsilon= says {epsilon}; the table's whole budget is budget_epsilon=",
        )
    if "epsilon" not in wanted and "share" not in wanted:
        raise invalid("epsilon", "give the ε of the release as epsilon=")
    return wanted


def _table_of(
    table: Any, schema: Mapping[str, Any] | None, target: str | None, options: FrameOptions, *, accept_draft: bool
) -> _Table:
    if isinstance(table, str | Path):
        return _file(Path(table), schema, target, options, accept_draft=accept_draft)
    frame = frame_of(table)
    unit, rows_are_units = options.get("privacy_unit"), bool(options.get("rows_are_units"))
    ask_whose_rows(schema or {}, frame.names, unit, rows_are_units=rows_are_units)
    declared = agreed_schema(frame, schema, target, unit, accept_draft=accept_draft)
    ask_whose_rows(declared, frame.names, unit, rows_are_units=rows_are_units)
    check_columns(frame, declared, unit)

    def write(folder: Path) -> Path:
        file = folder / "table.parquet"
        frame.write(file)
        return file

    return _Table(declared, write, frame.restored, "table")


def _file(
    path: Path, schema: Mapping[str, Any] | None, target: str | None, options: FrameOptions, *, accept_draft: bool
) -> _Table:
    """A file on the disk."""
    if schema is None:
        raise invalid(
            "schema",
            f"give the schema of {path} as schema=; `imprimatur schema draft {path}` makes a draft to be corrected",
        )
    if is_draft(schema) and not accept_draft:
        raise invalid(
            "schema", "this schema is a draft that was read from the rows: correct it, or say accept_draft=True"
        )
    if not path.is_file():
        raise invalid("table", f"there is no file {path}")
    rows_are_units = bool(options.get("rows_are_units"))
    ask_whose_rows(schema, header_of(path), options.get("privacy_unit"), rows_are_units=rows_are_units)
    library = POLARS if POLARS.is_installed else PANDAS
    library.check_installed()
    declared = with_target(schema, target)
    if accept_draft:
        declared = accepted(declared)
    return _Table(declared, lambda _: path, lambda rows: read_parquet(rows, library), path.stem)


def _dataset_of(client: Client, table: _Table, folder: Path, epsilon: float, options: FrameOptions) -> Dataset:
    """The dataset of these rows; rows that were declared so before are the same dataset."""
    known = client.datasets()
    named = options.get("name")
    if named is not None:
        check_name(known, named, table.schema)
    try:
        return client.create_dataset(
            table.write(folder),
            table.schema,
            epsilon=epsilon,
            delta=options.get("delta"),
            name=named or _free(table.name, {each.name for each in known}),
            privacy_unit=options.get("privacy_unit"),
            distinct_from=options.get("distinct_from") or (),
            accept_undeclared=options.get("accept_undeclared") or (),
        )
    except DuplicateRows as error:
        if error.values.get("same_declaration"):
            return client.dataset(str(error.values["dataset_id"]))
        raise


def _free(name: str, taken: set[str]) -> str:
    """A name that no dataset has: afterwards it would name none of the two."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _client_of_the_environment() -> Client:
    url = os.environ.get("IMPRIMATUR_URL")
    if not url:
        raise invalid("client", "no service is named: give client=, or set IMPRIMATUR_URL and IMPRIMATUR_API_KEY")
    return Client(url, os.environ.get("IMPRIMATUR_API_KEY"))
