"""The owner's side: upload, list, erase, budget, ledger."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli import amounts
from imprimatur.cli.ages import age
from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect
from imprimatur.cli.drafts import ask_whose_rows, refuse_draft
from imprimatur.cli.named import dataset_id_of
from imprimatur.cli.options import (
    REFUSE,
    AcceptDraft,
    AcceptUndeclared,
    DatasetArgument,
    Delta,
    DistinctFrom,
    FromPlace,
    FromTable,
    MaxImages,
    MaxRows,
    MaybeFile,
    MissingUnits,
    Name,
    Query,
    RowsAreUnits,
    SchemaFile,
    UnitColumn,
)
from imprimatur.cli.order_options import check_epsilon, read_json
from imprimatur.cli.output import (
    EITHER_ACCOUNT,
    console,
    echo,
    note,
    notes,
    print_json,
    print_next,
    print_pairs,
    print_table,
    rounded_down,
)
from imprimatur.cli.places import opened
from imprimatur.cli.progress import upload_bar
from imprimatur.declarations import PURCHASE, is_open

if TYPE_CHECKING:
    from imprimatur.replies import Budget, Dataset, Quote


def privacy_unit(
    column: str | None, max_rows_per_unit: int, max_images_per_unit: int | None, missing_units: str
) -> dict[str, Any] | None:
    """The privacy unit as the API wants it."""
    unit: dict[str, Any]
    if max_images_per_unit is not None:
        if column is not None or max_rows_per_unit != 1:
            raise typer.BadParameter(
                "it is for images, whose file says whose each is", param_hint="--max-images-per-unit"
            )
        unit = {"max_images_per_unit": max_images_per_unit}
    elif column is not None:
        unit = {"column": column, "max_rows_per_unit": max_rows_per_unit}
    elif max_rows_per_unit != 1:
        raise typer.BadParameter(
            "rows are bounded for each --privacy-unit; name its column", param_hint="--max-rows-per-unit"
        )
    elif missing_units != REFUSE:
        raise typer.BadParameter(
            "no privacy unit is declared: --privacy-unit, or --max-images-per-unit", param_hint="--missing-units"
        )
    else:
        return None
    return unit if missing_units == REFUSE else {**unit, "missing": missing_units}


def refuse_both_units(unit: dict[str, Any] | None, *, rows_are_units: bool) -> None:
    """Raise where two answers are given."""
    if rows_are_units and unit is not None:
        raise typer.BadParameter("other units are named, too; leave one out", param_hint="--rows-are-units")


Public = Annotated[
    bool,
    typer.Option(
        "--public",
        help="The rows are public already: orders on other datasets may begin from them (--public-start). Said here or never, and for good.",
    ),
]
RowsExpireAt = Annotated[
    str | None, typer.Option("--rows-expire-at", metavar="MOMENT", help="Destroy the rows then: 2027-01-31T00:00:00Z.")
]


def upload(
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option("--budget-epsilon", "--epsilon", help="ε of the whole budget, given once.")],
    file: MaybeFile = None,
    delta: Delta = None,
    name: Name = None,
    unit_column: UnitColumn = None,
    max_rows_per_unit: MaxRows = 1,
    max_images_per_unit: MaxImages = None,
    missing_units: MissingUnits = REFUSE,
    rows_expire_at: RowsExpireAt = None,
    distinct_from: DistinctFrom = None,
    source: FromPlace = None,
    query: Query = None,
    table: FromTable = None,
    rows_are_units: RowsAreUnits = False,
    accept_draft: AcceptDraft = False,
    accept_undeclared: AcceptUndeclared = None,
    public: Public = False,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Upload a table or images with the declared schema and give them their budget, once.

    --from reads a database (--query or --table) or an object store, from this
    machine. Put a password into PGPASSWORD or ~/.pgpass; else you are asked.

    Examples:
    [cyan]imprimatur upload table.csv --schema s.json --budget-epsilon 10[/cyan]
    [cyan]imprimatur upload -s s.json --budget-epsilon 10 --from postgresql://me@host/db --query "select …"[/cyan]
    """
    check_epsilon(epsilon, "--budget-epsilon")
    declared = read_json(schema, "--schema")
    unit = privacy_unit(unit_column, max_rows_per_unit, max_images_per_unit, missing_units)
    refuse_both_units(unit, rows_are_units=rows_are_units)
    refuse_draft(declared, accepted=accept_draft)
    ask_whose_rows(file, declared, unit, rows_are_units=rows_are_units)
    with connect(url, key, data) as client, opened(file, source, query, table) as rows, upload_bar() as report:
        if source is not None:
            ask_whose_rows(rows.path, declared, unit, rows_are_units=rows_are_units)
        unlike = [dataset_id_of(client, dataset) for dataset in distinct_from or ()]
        dataset = client.create_dataset(
            rows.path,
            declared,
            epsilon=epsilon,
            delta=delta,
            name=name or rows.name,
            privacy_unit=unit,
            rows_expire_at=rows_expire_at,
            distinct_from=unlike,
            accept_draft=accept_draft,
            accept_undeclared=accept_undeclared or [],
            rows_are_public=public,
            on_progress=report,
        )
    _print_uploaded(dataset, as_json=as_json)


def _print_uploaded(dataset: Dataset, *, as_json: bool) -> None:
    if as_json:
        print_json(dataset)
        return
    print_dataset(dataset)
    notes().print(
        f"Until its first order is charged, `imprimatur redeclare {dataset['id']}` corrects schema and privacy unit."
    )
    first = f"imprimatur quote {_word(dataset)} --epsilon {dataset['epsilon'] / 2:.3g}"
    print_next(f"imprimatur release {_word(dataset)} --method {PURCHASE['method']}" if is_open(dataset) else first)


def redeclare(
    dataset: DatasetArgument,
    file: Annotated[
        Path | None,
        typer.Argument(exists=True, metavar="FILE", help="The upload's file, where it is not kept."),
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", "-s", metavar="FILE|JSON", help="The whole new schema; default: it stays.")
    ] = None,
    unit_column: UnitColumn = None,
    max_rows_per_unit: MaxRows = 1,
    max_images_per_unit: MaxImages = None,
    missing_units: MissingUnits = REFUSE,
    rows_are_units: RowsAreUnits = False,
    name: Annotated[str | None, typer.Option("--name", help="New name of the dataset.")] = None,
    accept_draft: AcceptDraft = False,
    accept_undeclared: AcceptUndeclared = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Correct a dataset's declaration, before its first order is charged.

    What is not named stays; ε always does. The rows are read again from the
    upload, which is kept until the first charge for the key that sent it.
    Without it, give the same FILE again. Reserved orders must be
    cancelled first.

    Example:
    [cyan]imprimatur redeclare people --schema corrected.json[/cyan]
    """
    unit = privacy_unit(unit_column, max_rows_per_unit, max_images_per_unit, missing_units)
    refuse_both_units(unit, rows_are_units=rows_are_units)
    declared = None if schema is None else read_json(schema, "--schema")
    if declared is not None:
        refuse_draft(declared, accepted=accept_draft)
    if declared is None and unit is None and name is None and not rows_are_units:
        raise typer.BadParameter(
            "say what is to be declared again: --schema, --privacy-unit, --rows-are-units or --name"
        )
    with connect(url, key, data) as client, upload_bar() as report:
        changed = client.replace_declaration(
            dataset_id_of(client, dataset),
            schema=declared,
            privacy_unit="rows" if rows_are_units else unit,
            name=name,
            file=file,
            on_progress=report,
            accept_draft=accept_draft,
            accept_undeclared=accept_undeclared or [],
        )
    if as_json:
        print_json(changed)
    else:
        print_dataset(changed)
        print_next(f"imprimatur budget {_word(changed)}")


def _word(dataset: Dataset) -> str:
    """A dataset as it can be typed: its name, if that is one word."""
    return dataset.name if shlex.quote(dataset.name) == dataset.name else dataset.id[:8]


def print_dataset(dataset: Dataset) -> None:
    """One dataset for a person; what the upload noticed goes to the owner's standard error."""
    print_pairs({n: dataset[n] for n in ("id", "name", "units", "epsilon", "delta", "state")})
    if dataset["rows_expire_at"] is not None:
        print_pairs({"rows expire": dataset["rows_expire_at"]})
    print_warnings(dataset)
    print_notices(dataset)


def print_notices(dataset: Dataset) -> None:
    """What the upload did to cells, for the owner on standard error: also in a script, for it cannot be taken back."""
    for notice in dataset.get("notices", []):
        echo(f"note: {notice}", err=True)


def print_warnings(said: Dataset | Quote) -> None:
    """What must be said beside a promise, on standard error."""
    for warning in said.get("warnings", []):
        echo(f"warning: {warning}", err=True)


def list_datasets(url: Url = None, key: Key = None, data: Data = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Your tenant's datasets, newest first."""
    with connect(url, key, data) as client:
        found = client.datasets()
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (d["id"], d["name"], d["units"], d["epsilon"], f"{d['delta']:.3g}", d["state"], age(d["created_at"]))
        for d in found
    ]
    print_table(None, ("id", "name", "units", "ε", "δ", "state", "uploaded"), rows)
    if found:
        print_next(f"imprimatur budget {_word(found[0])}", f"imprimatur status --dataset {_word(found[0])}")
    else:
        print_next("imprimatur upload table.csv --schema schema.json --budget-epsilon 10")


def erase(
    dataset: DatasetArgument,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Destroy a dataset's rows and their key. The ledger and published releases stay."""
    with connect(url, key, data) as client:
        dataset_id = dataset_id_of(client, dataset)
        if not yes:
            typer.confirm(f"Destroy the rows of {dataset_id}? Nothing brings them back", abort=True, err=True)
        client.erase_dataset(dataset_id)
    notes().print(f"erased the rows of {dataset_id}")
    note(f"next: imprimatur verify {dataset_id[:8]}")


def expire(
    dataset: DatasetArgument,
    moment: Annotated[str, typer.Argument(metavar="MOMENT", help="With its time zone, like 2027-01-31T00:00:00Z.")],
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Give a dataset's rows a deletion date, or an earlier one; it is never put off."""
    with connect(url, key, data) as client:
        changed = client.expire_rows_at(dataset_id_of(client, dataset), moment)
    if as_json:
        print_json(changed)
    else:
        print_dataset(changed)
        print_next(f"imprimatur budget {_word(changed)}")


def budget(
    dataset: DatasetArgument, url: Url = None, key: Key = None, data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """What is promised, spent and left of a dataset's budget.

    An order needs room in one of the two accounts; the largest ε one more
    release may have is the last line.
    """
    with connect(url, key, data) as client:
        found = client.budget(dataset_id_of(client, dataset))
    if as_json:
        print_json(amounts.budget(found))
        return
    print_budget(found)
    if found["largest_next_epsilon"] > 0:
        print_next(f"imprimatur release {dataset} --epsilon {rounded_down(found['largest_next_epsilon'])}")
    else:
        print_next(f"imprimatur status --dataset {dataset}")


def print_budget(found: Budget) -> None:
    """Both accounts for a person."""
    names = {
        "simple": "basic composition",
        "renyi": f"Rényi composition, order {found['accounts']['renyi'].get('order')}",
    }
    rows = [
        (
            names[kind],
            *(
                amounts.in_words(amount, kind, found["epsilon"])
                for amount in (account["posted"], account["pending"], account["remaining"])
            ),
        )
        for kind, account in found["accounts"].items()
    ]
    print_table(f"ε = {found['epsilon']:g}, δ = {found['delta']:.3g}", ("account", "posted", "pending", "left"), rows)
    console().print(EITHER_ACCOUNT)
    console().print(str(found))
    pairs = {
        "spent": f"ε = {found['epsilon_spent']:.4g}",
        "left": f"{found['remaining_share']:.2%} of the budget",
        "largest next": f"ε = {rounded_down(found['largest_next_epsilon'])}",
    }
    print_pairs(pairs)


def ledger(
    dataset: DatasetArgument, url: Url = None, key: Key = None, data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """Every entry of a dataset's ledger, in order."""
    with connect(url, key, data) as client:
        dataset_id = dataset_id_of(client, dataset)
        found, epsilon = client.ledger(dataset_id), client.dataset(dataset_id)["epsilon"]
    if as_json:
        print_json(amounts.ledger(found, epsilon))
        return
    rows = [
        (
            e["seq"],
            e["kind"],
            *(
                amounts.in_words(amount, account, epsilon)
                for account, amount in (("simple", e["simple"]), ("renyi", e["renyi"]))
            ),
            e["release_id"],
            e["created_at"][:19],
            e["hash"][:16],
        )
        for e in found["items"]
    ]
    print_table(None, ("#", "kind", "simple", "Rényi", "release", "at (UTC)", "hash"), rows)
    console().print(
        "chain and balances consistent, by the service's own check; see `imprimatur verify`"
        if found["verified"]
        else "[bold red]NOT VERIFIED[/bold red]"
    )
    print_next(f"imprimatur verify {dataset}")
