"""`imprimatur.publish`: a DataFrame of pandas or polars in, a synthetic one of the same library and dtypes out. Neither is required."""

from __future__ import annotations

import tempfile
import uuid
import warnings
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from imprimatur import sources
from imprimatur.client import Client
from imprimatur.datasets import refuse_unknown
from imprimatur.declarations import PURCHASE, epsilon_to_buy, is_open, says_what_it_buys
from imprimatur.errors import ApiError, DuplicateRows, NotPublished, OrderedNotDelivered, how_to_go_on
from imprimatur.formats import invalid
from imprimatur.frame_columns import frame_of
from imprimatur.frame_schemas import accepted, agreed_schema, ask_whose_rows, check_columns, refuse_draft, with_target
from imprimatur.order_checks import check_order
from imprimatur.person_columns import header_of
from imprimatur.preflight import check_before_paying, check_known_budget, check_name
from imprimatur.public_starts import CHOICE, IN_CANDIDATES, begun_by
from imprimatur.replies import Declaration
from imprimatur.tables import PANDAS, POLARS, read_parquet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from imprimatur.datasets import Where
    from imprimatur.objects import Dataset
    from imprimatur.replies import Json


class FrameOptions(Declaration, total=False):
    """Further keywords of `publish`."""

    public: Any
    budget_epsilon: float | None
    rows_are_units: bool
    accept_undeclared: Sequence[str]
    query: str | None
    source_table: str | None
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
    written: Callable[[Path], AbstractContextManager[Path]]
    """The file that is sent, as long as it is needed; a folder is there for it."""
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
    come in the same library, with the same dtypes (of a path: as polars has them, else pandas). Or where the table lives:
    `"s3://bucket/visits.parquet"`, `"postgresql://me@host/db"` with `query=` or `source_table=` (`imprimatur.sources`).
    `schema`: public knowledge about the columns; it is published. Without one, categorical and boolean columns
    declare themselves. For others there is no schema but one that was read from the rows, which `accept_draft=True` takes.
    `epsilon`: of this release; `order` has all knobs. `budget_epsilon`: of the table's whole budget, given **once and
    for ever**; default: this release's ε, so that nothing is left for a second one. Rows that were declared so before
    keep the budget that they have. What the schema leaves open (`infer`) is bought first, for an ε of its own.
    `privacy_unit`: where several rows belong to one person; `rows_are_units=True`: where none do. A column that looks like a
    person's id needs one of the two.
    `public`: another table of the same columns, or the path of a file, whose rows everybody may have. It is uploaded as public, for good, and trained
    on first, for free (`method="idpgan"`): synthetic rows may repeat its rows. `target`: what people will want to predict. `client`: or `Client()`.

    All that can be checked beforehand is checked before a charge. `OrderedNotDelivered` names the release if something
    fails after that. With an `idempotency_key` of your own, the same call after a crash finds its order again.
    """
    refuse_unknown(options, FrameOptions.__optional_keys__)
    wanted = _order(order, epsilon)
    asked = options.get("budget_epsilon")
    if asked is None and wanted.get("epsilon") is None:
        raise invalid("budget_epsilon", "give the ε of the table's budget as budget_epsilon=: the order names none")
    _refuse_misplaced(table, options, wanted)
    made = _table_of(table, schema, target, options, accept_draft=accept_draft)
    whole = asked or wanted["epsilon"] + epsilon_to_buy(made.schema)
    check_before_paying(made.schema, where=options.get("where"), rows=rows)
    with ExitStack() as opened:
        service = client or opened.enter_context(Client())
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="imprimatur-publish-")))
        wanted |= _public_start(service, made, folder, float(whole), options, wanted)
        dataset = _dataset_of(service, made, folder, float(whole), options)
        check_known_budget(dataset, asked, options.get("delta"))
        key = options.get("idempotency_key") or str(uuid.uuid4())
        _buy(dataset, made.schema, key, options)
        _warn(dataset, wanted)
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


def _public_start(
    service: Client, made: _Table, folder: Path, whole: float, options: FrameOptions, order: Json
) -> Json:
    """What an order says that begins from `public`, which is uploaded first; before that, the service is asked what it would refuse."""
    check_order(service, order, made.schema, brings_public=options.get("public") is not None)
    if options.get("public") is None:
        return {}
    begins = _dataset_of(service, _public_table(made, options), folder, whole, options, rows_are_public=True)
    return {"method": begun_by(order.get("method")), "public_dataset": begins.id}


def _buy(dataset: Dataset, schema: Mapping[str, Any], key: str, options: FrameOptions) -> None:
    """Bounds and categories that the schema leaves open, before anything else is ordered."""
    if not is_open(dataset):
        return
    warnings.warn(says_what_it_buys(schema), stacklevel=3)
    purchase = dataset.order(PURCHASE, idempotency_key=f"{key}-declaration"[-255:], priority=options.get("priority"))
    purchase.wait(timeout=options.get("timeout"), progress=options.get("progress"))


def _warn(dataset: Dataset, order: Json) -> None:
    """Of an order that buys next to nothing, before it is paid."""
    with suppress(
        ApiError
    ):  # an order that was placed before may have no price any more, and is still found by its key
        quoted = dataset.quote(order)
        for warning in quoted.warnings if quoted.fits else ():
            warnings.warn(warning, stacklevel=3)


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
    if _is_address(table):
        return _source(table, schema, target, options, accept_draft=accept_draft)
    if isinstance(table, str | Path):
        return _file(Path(table), schema, target, options, accept_draft=accept_draft)
    frame = frame_of(table)
    unit, rows_are_units = options.get("privacy_unit"), bool(options.get("rows_are_units"))
    ask_whose_rows(schema or {}, frame.names, unit, rows_are_units=rows_are_units)
    declared = agreed_schema(frame, schema, target, unit, accept_draft=accept_draft)
    ask_whose_rows(declared, frame.names, unit, rows_are_units=rows_are_units)
    check_columns(frame, declared, unit)

    def written(folder: Path) -> AbstractContextManager[Path]:
        file = folder / "table.parquet"
        frame.write(file)
        return nullcontext(file)

    return _Table(declared, written, frame.restored, "table")


def _public_table(private: _Table, options: FrameOptions) -> _Table:
    """Rows that everybody may have, by the schema of the private ones."""
    public = options["public"]
    if isinstance(public, str | Path):
        path = Path(public)
        if not path.is_file():
            raise invalid("public", f"there is no file {path}")
        return _Table(private.schema, lambda _: nullcontext(path), private.restored, path.stem)
    frame = frame_of(public)
    check_columns(frame, private.schema, options.get("privacy_unit"))

    def written(folder: Path) -> AbstractContextManager[Path]:
        file = folder / "public.parquet"
        frame.write(file)
        return nullcontext(file)

    return _Table(private.schema, written, private.restored, "public")


def _is_address(table: Any) -> bool:
    return isinstance(table, str) and "://" in table


def _refuse_misplaced(table: Any, options: FrameOptions, order: Json) -> None:
    if options.get("public") is not None and order.get("method") == CHOICE:
        raise invalid("public", f"{IN_CANDIDATES}; public= is for an order that is no choice")
    if not _is_address(table) and (options.get("query") or options.get("source_table")):
        raise invalid(
            "query", "query= and source_table= are for the address of a database, as in postgresql://me@host/db"
        )


def _source(
    address: str, schema: Mapping[str, Any] | None, target: str | None, options: FrameOptions, *, accept_draft: bool
) -> _Table:
    """A table of a database, or an object of a store."""
    query, table = options.get("query"), options.get("source_table")
    place = sources.place_of(address, query, table)
    declared, restored = _declared(place.shown, schema, target, options, accept_draft=accept_draft)

    @contextmanager
    def written(_: Path) -> Iterator[Path]:
        with sources.opened(address, query, table) as rows:
            _ask(declared, header_of(rows.path), options)
            yield rows.path

    return _Table(declared, written, restored, place.name(table))


def _file(
    path: Path, schema: Mapping[str, Any] | None, target: str | None, options: FrameOptions, *, accept_draft: bool
) -> _Table:
    """A file on the disk."""
    declared, restored = _declared(str(path), schema, target, options, accept_draft=accept_draft)
    if not path.is_file() and not path.is_dir():
        raise invalid("table", f"there is no file {path}")
    _ask(declared, header_of(path), options)
    return _Table(declared, lambda _: nullcontext(path), restored, path.stem)


def _declared(
    source: str, schema: Mapping[str, Any] | None, target: str | None, options: FrameOptions, *, accept_draft: bool
) -> tuple[Json, Callable[[bytes], Any]]:
    """The schema of rows that are not in memory, and how synthetic ones are read."""
    if schema is None:
        raise invalid(
            "schema",
            f"give the schema of {source} as schema=; `imprimatur schema draft FILE` makes a draft of a file to be corrected",
        )
    refuse_draft(schema, accepted=accept_draft)
    _ask(schema, [], options)
    library = POLARS if POLARS.is_installed else PANDAS
    library.check_installed()
    declared = with_target(schema, target)
    return accepted(declared) if accept_draft else declared, lambda rows: read_parquet(rows, library)


def _ask(schema: Mapping[str, Any], names: Sequence[str], options: FrameOptions) -> None:
    ask_whose_rows(schema, names, options.get("privacy_unit"), rows_are_units=bool(options.get("rows_are_units")))


def _dataset_of(
    client: Client,
    table: _Table,
    folder: Path,
    epsilon: float,
    options: FrameOptions,
    *,
    rows_are_public: bool = False,
) -> Dataset:
    """The dataset of these rows; rows that were declared so before are the same dataset."""
    known = client.datasets()
    named = None if rows_are_public else options.get("name")
    if named is not None:
        check_name(known, named, table.schema)
    try:
        with table.written(folder) as file:
            return client.create_dataset(
                file,
                table.schema,
                epsilon=epsilon,
                delta=options.get("delta"),
                name=named or _free(table.name, {each.name for each in known}),
                privacy_unit=options.get("privacy_unit"),
                distinct_from=() if rows_are_public else options.get("distinct_from") or (),
                rows_are_public=rows_are_public,
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
