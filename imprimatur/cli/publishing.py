"""`imprimatur publish`: the whole way in one command."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect_or_start, dataset_id_of
from imprimatur.cli.datasets import print_notices, print_warnings, privacy_unit, refuse_both_units
from imprimatur.cli.drafts import ask_whose_rows, refuse_draft
from imprimatur.cli.options import (
    REFUSE,
    AcceptDraft,
    AcceptUndeclared,
    Delta,
    DistinctFrom,
    File,
    Format,
    MaxImages,
    MaxRows,
    MissingUnits,
    Name,
    Output,
    Rows,
    RowsAreUnits,
    SaveCertificate,
    SaveGenerator,
    SchemaFile,
    Seed,
    UnitColumn,
    Where,
    WholeEpsilon,
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
from imprimatur.cli.output import Exit, Failure, note, print_json, print_pairs, rounded_down
from imprimatur.cli.progress import byte_count, follow, upload_bar
from imprimatur.cli.results import conditions, format_of, save_json, write_to_stdout

if TYPE_CHECKING:
    from pathlib import Path

    from imprimatur.client import Client
    from imprimatur.replies import Release


@dataclass(frozen=True)
class _Declared:
    """A table, and what its owner says of it."""

    file: Path
    schema: dict[str, Any]
    epsilon: float
    delta: float | None
    name: str
    privacy_unit: dict[str, Any] | None
    distinct_from: list[str]
    accept_draft: bool
    accept_undeclared: list[str]


@dataclass(frozen=True)
class _Wanted:
    """What is to be left of the release."""

    rows: int
    output: Path | None
    draw: dict[str, Any]
    generator: Path | None
    certificate: Path | None
    priority: int | None = None

    @property
    def to_stdout(self) -> bool:
        return self.output is None or str(self.output) == "-"


def publish(
    file: File,
    schema: SchemaFile,
    epsilon: Epsilon = None,
    rows: Rows = 1_000,
    output: Output = None,
    budget_epsilon: WholeEpsilon = None,
    delta: Delta = None,
    name: Name = None,
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
    generator: SaveGenerator = None,
    certificate: SaveCertificate = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """A table in, a synthetic table out.

    Uploads the table with its budget (or finds it again: the same rows keep
    their first budget), orders a release, waits, and draws rows into -o or
    standard output. Starts a service in --data when none is named or running,
    and stops it again.

    Examples:
    [cyan]imprimatur publish table.csv --schema s.json --epsilon 3 --rows 1000 -o out.csv[/cyan]
    [cyan]imprimatur publish t.csv -s s.json --epsilon 1 --budget-epsilon 10 -o out.parquet[/cyan]
    """
    knobs_by_name = {"condition_on": condition_on, "purpose": purpose, "steps": steps}
    document = build_order(order, knobs, method=method, epsilon=epsilon, share=share, **knobs_by_name)
    whole = _whole_epsilon(budget_epsilon, document)
    declared = read_json(schema, "--schema")
    refuse_draft(declared, accepted=accept_draft)
    draw = {"format": format_of(format_, output), "where": conditions(where), "seed": seed}
    unit = privacy_unit(unit_column, max_rows_per_unit, max_images_per_unit, missing_units)
    refuse_both_units(unit, rows_are_units=rows_are_units)
    ask_whose_rows(file, declared, unit, rows_are_units=rows_are_units)
    table = _Declared(
        file=file,
        schema=declared,
        epsilon=whole,
        delta=delta,
        name=name or file.stem,
        privacy_unit=unit,
        distinct_from=distinct_from or [],
        accept_draft=accept_draft,
        accept_undeclared=accept_undeclared or [],
    )
    with connect_or_start(url, key, data) as client:
        facts = _publish(client, table, document, _Wanted(rows, output, draw, generator, certificate, priority))
    _print_facts(facts, as_json=as_json)


def _whole_epsilon(budget_epsilon: float | None, order: dict[str, Any]) -> float:
    whole = budget_epsilon or order.get("epsilon")
    if whole is None:
        raise typer.BadParameter("an order by --share needs --budget-epsilon", param_hint="--budget-epsilon")
    return float(whole)


def _publish(client: Client, table: _Declared, order: dict[str, Any], wanted: _Wanted) -> dict[str, Any]:
    dataset_id = _upload_or_find(client, table)
    made = follow(client, place(client, dataset_id, order, priority=wanted.priority)["id"])
    _save(client, made, wanted)
    return {
        "dataset_id": dataset_id,
        "release_id": made["id"],
        "epsilon": made["price"]["epsilon"],
        "delta": made["price"]["delta"],
        "rows": wanted.rows,
        "output": None if wanted.output is None else str(wanted.output),
        "largest_next_epsilon": client.budget(dataset_id)["largest_next_epsilon"],
    }


def _save(client: Client, made: Release, wanted: _Wanted) -> None:
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


def _print_facts(facts: dict[str, Any], *, as_json: bool) -> None:
    if facts["output"] in {None, "-"}:
        note(f"ε = {facts['epsilon']:.4g}; next at most ε = {rounded_down(facts['largest_next_epsilon'])}")
    elif as_json:
        print_json(facts)
    else:
        print_pairs(facts)


def _upload_or_find(client: Client, table: _Declared) -> str:
    """The dataset of these rows. Rows that already have a budget keep it, and what was declared with it."""
    from imprimatur.errors import ApiError

    unlike = [dataset_id_of(client, dataset) for dataset in table.distinct_from]
    try:
        with upload_bar() as report:
            dataset = client.create_dataset(
                table.file,
                table.schema,
                epsilon=table.epsilon,
                delta=table.delta,
                name=table.name,
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
        note(f"These rows already have a budget: dataset {known}")
        print_warnings(client.dataset(str(known)))
        return str(known)
    print_warnings(dataset)
    print_notices(dataset)
    return dataset["id"]
