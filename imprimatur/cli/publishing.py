"""`imprimatur publish`: the whole way in one command."""

from __future__ import annotations

import itertools
import shlex
import sys
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect_or_start
from imprimatur.cli.datasets import print_notices, print_warnings, privacy_unit, refuse_both_units
from imprimatur.cli.drafts import ask_whose_rows, refuse_draft
from imprimatur.cli.explaining import check_page, page_beside, save_page
from imprimatur.cli.failures import expected
from imprimatur.cli.named import dataset_id_of
from imprimatur.cli.options import (
    REFUSE,
    AcceptDraft,
    AcceptUndeclared,
    Again,
    Delta,
    DistinctFrom,
    Explanation,
    File,
    ForExcel,
    Format,
    MaxImages,
    MaxRows,
    MissingUnits,
    Name,
    Output,
    ReleaseName,
    Rows,
    RowsAreUnits,
    SaveCertificate,
    SaveGenerator,
    SchemaFile,
    Seed,
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
    Purpose,
    Set,
    ShareOf,
    Steps,
    build_order,
    read_json,
)
from imprimatur.cli.ordering import place
from imprimatur.cli.output import Exit, Failure, echo, note, print_json, print_next, print_pairs, rounded_down
from imprimatur.cli.progress import byte_count, follow, upload_bar
from imprimatur.cli.publishing_plan import Declared, Wanted
from imprimatur.cli.results import as_excel_wants, save_json, write_to_stdout
from imprimatur.cli.undelivered import Undelivered, check_can_be_kept
from imprimatur.naming import name_of
from imprimatur.preflight import check_before_paying, check_known_budget, check_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imprimatur.client import Client
    from imprimatur.replies import Release


HELP = """A table in, a synthetic table out.

Uploads the table with its budget (or finds it again: the same rows keep
their first budget), orders a release, waits, and draws rows into -o or
standard output, with a page beside them that says what is promised.
Starts a service in --data when none is named or running, and stops it again.

The budget is given once. Without --budget-epsilon, this release's ε is all
of it: nothing else can ever be released from these rows.

What can be known beforehand is checked before anything is paid. When the
command fails later, run it again: it goes on with what is paid.

Examples:
[cyan]imprimatur publish table.csv --schema s.json --epsilon 3 --rows 1000 -o out.csv[/cyan]
[cyan]imprimatur publish t.csv -s s.json --epsilon 1 --budget-epsilon 10 -o out.parquet[/cyan]
"""


def publish(
    file: File,
    schema: SchemaFile,
    epsilon: Epsilon = None,
    rows: Rows = 1_000,
    output: Output = None,
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
    table, document, wanted = _read(SimpleNamespace(**locals()))
    with connect_or_start(url, key, data) as client:
        facts = _publish(client, table, document, wanted)
    _print_facts(facts, as_json=as_json)


def _read(given: SimpleNamespace) -> tuple[Declared, dict[str, Any], Wanted]:
    """The options of `publish`, checked as far as that needs no service."""
    knobs = {name: getattr(given, name) for name in ("epsilon", "share", "condition_on", "purpose", "steps")}
    document = build_order(given.order, given.knobs, method=given.method, **knobs)
    declared = read_json(given.schema, "--schema")
    refuse_draft(declared, accepted=given.accept_draft)
    unit = privacy_unit(given.unit_column, given.max_rows_per_unit, given.max_images_per_unit, given.missing_units)
    refuse_both_units(unit, rows_are_units=given.rows_are_units)
    ask_whose_rows(given.file, declared, unit, rows_are_units=given.rows_are_units)
    table = Declared(
        file=given.file,
        schema=declared,
        epsilon=_whole_epsilon(given.budget_epsilon, document),
        delta=given.delta,
        name=given.name or given.file.stem,
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
        source=table.file,
    )
    draw |= as_excel_wants(draw["format"]) if for_excel else {}
    check_page(wanted.explanation)
    check_can_be_kept()


def _whole_epsilon(budget_epsilon: float | None, order: dict[str, Any]) -> float:
    whole = budget_epsilon or order.get("epsilon")
    if whole is None:
        raise typer.BadParameter("an order by --share needs --budget-epsilon", param_hint="--budget-epsilon")
    return float(whole)


def _publish(client: Client, table: Declared, order: dict[str, Any], wanted: Wanted) -> dict[str, Any]:
    dataset_id = _upload_or_find(client, table)
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
        "output": None if wanted.output is None else str(wanted.output),
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
    if wanted.output is None or wanted.to_stdout:
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


def _print_facts(facts: dict[str, Any], *, as_json: bool) -> None:
    if facts["output"] in {None, "-"}:
        note(
            f"release {facts['release']}: ε = {facts['epsilon']:.4g}; next at most ε = {rounded_down(facts['largest_next_epsilon'])}"
        )
    elif as_json:
        print_json(facts)
    else:
        next_ = rounded_down(facts["largest_next_epsilon"])
        shown = {name: value for name, value in facts.items() if value is not None}
        print_pairs(shown | {"epsilon": f"{facts['epsilon']:.4g}", "largest_next_epsilon": next_})
        print_next(f"imprimatur sample {facts['release_id'][:8]} -n {facts['rows']} -o more.csv (free of charge)")


def _upload_or_find(client: Client, table: Declared) -> str:
    """The dataset of these rows. Rows that already have a budget keep it, and what was declared with it."""
    from imprimatur.errors import ApiError

    unlike = [dataset_id_of(client, dataset) for dataset in table.distinct_from]
    name, is_known = _free_name(client, table)
    if not is_known:
        _ask_for_the_whole(table)
    try:
        with upload_bar() as report:
            dataset = client.create_dataset(
                table.file,
                table.schema,
                epsilon=table.epsilon,
                delta=table.delta,
                name=name,
                privacy_unit=table.privacy_unit,
                distinct_from=unlike,
                accept_draft=table.accept_draft,
                accept_undeclared=table.accept_undeclared,
                on_progress=report,
            )
    except ApiError as error:
        known = error.values.get("dataset_id")
        if error.code != "duplicate_rows" or known is None or "columns_match" in error.values:
            raise
        if not error.values.get("same_declaration"):
            raise Failure(
                f"these rows have a budget as dataset {known}, which was declared with another schema or privacy unit; "
                f"`imprimatur release {known}` orders from it as it was declared; until its first order is charged, `imprimatur redeclare {known}` corrects that, and where nothing was ordered `imprimatur erase {known}` frees the rows",
                Exit.BAD_INPUT,
                "declared_otherwise",
                dataset_id=known,
            ) from None
        dataset = client.dataset(str(known))
        check_known_budget(dataset, table.given_epsilon, table.delta)
        note(f"These rows already have a budget: dataset {dataset['name']} ({known}), ε = {dataset['epsilon']:g}")
        print_warnings(dataset)
        return str(known)
    print_warnings(dataset)
    print_notices(dataset)
    return dataset.id


def _free_name(client: Client, table: Declared) -> tuple[str, bool]:
    """The name that was given, if it would not name two datasets; a name after the file gets a number then.

    And whether a dataset of this name is declared alike: it may hold these rows.
    """
    from imprimatur.errors import ApiError

    datasets = client.datasets()
    name = table.name
    for number in itertools.count(2):
        try:
            check_name(datasets, name, table.schema)
        except ApiError:
            if table.is_named:
                raise
            name = f"{table.name}-{number}"
        else:
            break
    return name, any(dataset["name"] == name for dataset in datasets)


def _ask_for_the_whole(table: Declared) -> None:
    """A budget is given once and for ever; it is that of this release, if nothing else is said."""
    if table.given_epsilon is not None:
        return
    echo(
        f"note: no --budget-epsilon: this release's ε = {table.epsilon:g} becomes the whole budget of these rows, for ever; "
        "no further release of them will fit",
        err=True,
    )
    if not table.is_agreed and sys.stdin.isatty() and sys.stderr.isatty():
        typer.confirm("Go on?", abort=True, err=True)
