"""`imprimatur publish`: the whole way in one command."""

from __future__ import annotations

import shlex
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect_or_start, find_target
from imprimatur.cli.datasets import privacy_unit, refuse_both_units
from imprimatur.cli.drafts import ask_whose_rows, refuse_draft
from imprimatur.cli.explaining import check_page, page_beside, save_page
from imprimatur.cli.failures import expected
from imprimatur.cli.known_rows import upload_or_find
from imprimatur.cli.options import (
    REFUSE,
    AcceptDraft,
    AcceptUndeclared,
    Again,
    Delta,
    DistinctFrom,
    Explanation,
    ForExcel,
    Format,
    FromPlace,
    FromTable,
    MaxImages,
    MaxRows,
    MaybeFile,
    MissingUnits,
    Name,
    Output,
    Query,
    ReleaseName,
    Rows,
    RowsAreUnits,
    SaveCertificate,
    SaveGenerator,
    SchemaFile,
    Seed,
    To,
    UnitColumn,
    Where,
    WholeEpsilon,
    Yes,
)
from imprimatur.cli.order_options import (
    ConditionOn,
    Epsilon,
    Method,
    OrderFile,
    Priority,
    PublicStart,
    Purpose,
    Set,
    ShareOf,
    Steps,
    build_order,
    check_epsilon,
    read_json,
)
from imprimatur.cli.ordering import place
from imprimatur.cli.output import Failure, echo, note, print_json, print_next, print_pairs, rounded_down
from imprimatur.cli.places import check_place, draw_to, name_of_source, opened, read_from
from imprimatur.cli.progress import byte_count, follow
from imprimatur.cli.publishing_plan import Declared, Wanted
from imprimatur.cli.results import as_excel_wants, save_json, write_to_stdout
from imprimatur.cli.undelivered import Undelivered, check_can_be_kept
from imprimatur.declarations import PURCHASE, epsilon_to_buy, is_open, says_what_it_buys
from imprimatur.formats import IMAGE_FORMATS, format_of_path
from imprimatur.naming import name_of
from imprimatur.order_checks import check_order
from imprimatur.preflight import check_before_paying

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imprimatur.client import Client
    from imprimatur.replies import Release


HELP = """Make a synthetic table from a table.

Uploads the table with its budget (or finds it again: the same rows keep
their first budget), orders a release, waits, and draws rows into -o or
standard output, with a page beside them that says what is promised.
--from reads a database or an object store instead of FILE, --to writes there.
Starts a service in --data when none is named or running, and stops it again.

The budget is given once. Without --budget-epsilon, this release's ε is all
of it: nothing else can ever be released from these rows.

All that can be checked beforehand is checked before anything is charged. When
the command fails later, run it again: it goes on with what is charged.

Examples:
[cyan]imprimatur publish table.csv --schema s.json --epsilon 3 --rows 1000 -o out.csv[/cyan]
[cyan]imprimatur publish t.csv -s s.json --epsilon 1 --budget-epsilon 10 -o out.parquet[/cyan]
[cyan]imprimatur publish --from postgresql://me@host/db --query "select …" -s s.json --epsilon 1 --to s3://bucket/out.parquet[/cyan]
"""


def publish(
    schema: SchemaFile,
    file: MaybeFile = None,
    epsilon: Epsilon = None,
    rows: Rows = 1_000,
    output: Output = None,
    source: FromPlace = None,
    query: Query = None,
    table: FromTable = None,
    to: To = None,
    to_table: Annotated[str, typer.Option("--to-table", help="The new table in the database of --to.")] = "synthetic",
    budget_epsilon: WholeEpsilon = None,
    delta: Delta = None,
    name: Name = None,
    release_name: ReleaseName = None,
    unit_column: UnitColumn = None,
    max_rows_per_unit: MaxRows = 1,
    max_images_per_unit: MaxImages = None,
    missing_units: MissingUnits = REFUSE,
    distinct_from: DistinctFrom = None,
    rows_are_units: RowsAreUnits = False,
    accept_draft: AcceptDraft = False,
    accept_undeclared: AcceptUndeclared = None,
    share: ShareOf = None,
    method: Method = "auto",
    condition_on: ConditionOn = None,
    purpose: Purpose = None,
    steps: Steps = None,
    knobs: Set = None,
    order: OrderFile = None,
    public_start: PublicStart = None,
    priority: Priority = None,
    format_: Format = None,
    where: Where = None,
    seed: Seed = None,
    for_excel: ForExcel = False,
    generator: SaveGenerator = None,
    certificate: SaveCertificate = None,
    explanation: Explanation = True,
    again: Again = False,
    yes: Yes = False,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """A table in, a synthetic table out; `HELP` says more."""
    declared, document, wanted = _read(SimpleNamespace(**locals()))
    is_running = find_target(url, key, data) is not None
    with ExitStack() as reading:
        found = reading.enter_context(opened(file, source, query, table))
        if source is not None:
            ask_whose_rows(found.path, declared.schema, declared.privacy_unit, rows_are_units=rows_are_units)
        with connect_or_start(url, key, data) as client:
            check_order(client, document, declared.schema)
            dataset_id = upload_or_find(client, declared, found.path)
            reading.close()  # what was read from --from is not kept while the release is made
            _buy(client, dataset_id, declared.schema)
            facts = _publish(client, dataset_id, document, wanted)
    _print_facts(facts, as_json=as_json, is_running=is_running)


def _read(given: SimpleNamespace) -> tuple[Declared, dict[str, Any], Wanted]:
    """The options of `publish`, checked as far as that needs no service."""
    knobs = {name: getattr(given, name) for name in ("epsilon", "share", "condition_on", "purpose", "steps")}
    document = build_order(given.order, given.knobs, method=given.method, public_dataset=given.public_start, **knobs)
    declared = read_json(given.schema, "--schema")
    whole = _whole_epsilon(given.budget_epsilon, document, epsilon_to_buy(declared))
    refuse_draft(declared, accepted=given.accept_draft)
    unit = privacy_unit(given.unit_column, given.max_rows_per_unit, given.max_images_per_unit, given.missing_units)
    refuse_both_units(unit, rows_are_units=given.rows_are_units)
    ask_whose_rows(given.file, declared, unit, rows_are_units=given.rows_are_units)
    private = read_from(given.file, given.source, given.query, given.table)
    table = Declared(
        private_file=private,
        source=given.source,
        schema=declared,
        epsilon=whole,
        delta=given.delta,
        name=given.name or name_of_source(given.file, given.source, given.table),
        privacy_unit=unit,
        distinct_from=given.distinct_from or [],
        given_epsilon=given.budget_epsilon,
        is_named=given.name is not None,
        is_agreed=given.yes,
        accept_draft=given.accept_draft,
        accept_undeclared=given.accept_undeclared or [],
    )
    wanted = Wanted(
        rows=given.rows,
        output=given.output,
        draw={"format": given.format_, "where": given.where, "seed": given.seed},
        generator=given.generator,
        certificate=given.certificate,
        explanation=page_beside(given.output) if given.explanation else None,
        priority=given.priority,
        name=given.release_name,
        again=given.again,
        to=given.to,
        to_table=given.to_table,
    )
    _check_before_paying(table, wanted, for_excel=given.for_excel)
    return table, document, wanted


def _check_before_paying(table: Declared, wanted: Wanted, *, for_excel: bool) -> None:
    """What needs no service; settles the format."""
    draw = wanted.draw
    others = [path for path in (wanted.generator, wanted.certificate, wanted.explanation) if path is not None]
    draw["format"] = check_before_paying(
        table.schema,
        output=wanted.output,
        other_outputs=others,
        format=draw["format"],
        where=draw["where"],
        rows=wanted.rows,
        source=table.private_file,
    )
    if wanted.to is not None:
        check_place(wanted, table, for_excel=for_excel)
    draw |= as_excel_wants(draw["format"]) if for_excel else {}
    check_page(wanted.explanation)
    check_can_be_kept()


def _whole_epsilon(budget_epsilon: float | None, order: dict[str, Any], buys: float) -> float:
    """Of the table's budget. One that the order can never fit in is refused: a budget is given for ever.

    buys: what bounds and categories cost that the schema does not declare.
    """
    check_epsilon(budget_epsilon, "--budget-epsilon")
    ordered = order.get("epsilon")
    whole = budget_epsilon or (None if ordered is None else ordered + buys)
    if whole is None:
        raise typer.BadParameter("an order by --share needs --budget-epsilon", param_hint="--budget-epsilon")
    if isinstance(ordered, int | float) and ordered + buys > float(whole) * (1 + 1e-9):
        more = f" and the ε = {buys:g} of what the schema leaves to be bought" if buys else ""
        raise typer.BadParameter(
            f"{whole:g} is less than this release's ε = {ordered:g}{more}: give at least that, or a smaller --epsilon",
            param_hint="--budget-epsilon",
        )
    return float(whole)


def _buy(client: Client, dataset_id: str, schema: dict[str, Any]) -> None:
    """Bounds and categories that the schema leaves open, before anything else is ordered; what an earlier run ordered goes on."""
    if not is_open(client.dataset(dataset_id)):
        return
    echo(f"note: {says_what_it_buys(schema)}", err=True)
    kept = Undelivered.begin(dataset_id, PURCHASE, again=False)
    made = place(client, dataset_id, PURCHASE, kept.idempotency_key)
    kept.placed(made["id"])
    try:
        follow(client, made["id"])
    except BaseException as error:
        end = expected(error)
        if end is not None and end.code.startswith("release_"):  # it has ended: the next run is another order
            kept.end()
        raise
    kept.end()


def _publish(client: Client, dataset_id: str, order: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    kept = Undelivered.begin(dataset_id, order, again=wanted.again)
    if kept.release_id is not None:
        note(f"An earlier run ordered release {kept.release_id}: it goes on, and nothing is paid again")
    made = _place(client, dataset_id, order, kept, wanted)
    with _names_the_release(made, wanted, kept):
        made = follow(client, made["id"])
        _save(client, made, wanted)
    kept.end()
    return {
        "dataset_id": dataset_id,
        "release_id": made["id"],
        "release": name_of(made),
        "epsilon": made["price"]["epsilon"],
        "delta": made["price"]["delta"],
        "rows": wanted.rows,
        "output": wanted.shown_output,
        "explanation": None if wanted.explanation is None else str(wanted.explanation),
        "largest_next_epsilon": client.budget(dataset_id)["largest_next_epsilon"],
    }


def _place(client: Client, dataset_id: str, order: dict[str, Any], kept: Undelivered, wanted: Wanted) -> Release:
    from imprimatur.errors import ApiError

    try:
        made = place(client, dataset_id, order, kept.idempotency_key, priority=wanted.priority, name=wanted.name)
    except ApiError as refused:
        if 400 <= refused.status < 500 and kept.release_id is None:  # anything else may have been carried out
            kept.end()
        raise
    kept.placed(made["id"])
    return made


@contextmanager
def _names_the_release(made: Release, wanted: Wanted, kept: Undelivered) -> Iterator[None]:
    """What fails once the order is paid says which release it is and how to go on."""
    try:
        yield
    except typer.Exit:  # who read standard output has had enough
        return
    except BaseException as error:
        end = expected(error)
        if end is not None and end.code.startswith("release_"):  # it has ended: the next run is another order
            kept.end()
            raise
        output = "" if wanted.output is None else f" -o {shlex.quote(str(wanted.output))}"
        output += (
            ""
            if wanted.to is None
            else f" --to {shlex.quote(str(wanted.shown_output))} --table {shlex.quote(wanted.to_table)}"
        )
        go_on = (
            f"release {name_of(made)} ({made['id']}) is ordered and paid. Run the same command again, which pays nothing more, or "
            f"`imprimatur status {made['id'][:8]} --wait` and `imprimatur sample {made['id'][:8]} -n {wanted.rows}{output}`"
        )
        if end is None:
            echo(go_on, err=True)
            raise
        values = {**end.values, "release_id": made["id"]}
        raise Failure(f"{end.detail}; {go_on}", end.exit_code, end.code, **values) from error


def _save(client: Client, made: Release, wanted: Wanted) -> None:
    if wanted.to is not None:
        draw = {name: value for name, value in wanted.draw.items() if name != "format"}
        draw_to(client, made["id"], wanted.rows, draw, wanted.to, wanted.to_table)
    elif wanted.output is None or wanted.to_stdout:
        with client.sample(made["id"], wanted.rows, **wanted.draw) as chunks:
            write_to_stdout(chunks)
    else:
        with byte_count("Drawing rows") as report:
            client.save_sample(made["id"], wanted.output, wanted.rows, on_bytes=report, **wanted.draw)
    if wanted.generator is not None:
        client.save_generator(made["id"], wanted.generator)
    if wanted.certificate is not None:
        save_json(client.certificate(made["id"]), wanted.certificate)
    if wanted.explanation is not None:
        save_page(client, made, wanted.explanation, wanted.output, wanted.certificate)


def _print_facts(facts: dict[str, Any], *, as_json: bool, is_running: bool) -> None:
    if facts["output"] in {None, "-"}:
        note(
            f"release {facts['release']}: ε = {facts['epsilon']:.4g}; next at most ε = {rounded_down(facts['largest_next_epsilon'])}"
        )
    elif as_json:
        print_json(facts)
    else:
        next_ = rounded_down(facts["largest_next_epsilon"])
        shown = {name: value for name, value in facts.items() if value is not None}
        amounts = {
            "epsilon": f"{facts['epsilon']:.4g}",
            "delta": f"{facts['delta']:.3g}",
            "largest_next_epsilon": next_,
        }
        print_pairs(shown | amounts)
        start = [] if is_running else ["imprimatur up (its service ended with this command), and in another terminal"]
        drawn = format_of_path(Path(facts["output"]))
        more = f"more.{drawn if drawn in IMAGE_FORMATS else 'csv'}"
        print_next(*start, f"imprimatur sample {facts['release_id'][:8]} -n {facts['rows']} -o {more} (free of charge)")
