"""The analyst's side: price an order, place it, watch it, cancel it; and the whole way in one command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect, connect_or_start, dataset_id_of
from service.cli.datasets import (
    REFUSE,
    DatasetArgument,
    Delta,
    DistinctFrom,
    File,
    MaxImages,
    MaxRows,
    MissingUnits,
    Name,
    SchemaFile,
    UnitColumn,
    print_notices,
    print_warnings,
    privacy_unit,
    warn_of_draft,
)
from service.cli.order_options import (
    ConditionOn,
    Epsilon,
    Method,
    OrderFile,
    Purpose,
    Set,
    ShareOf,
    Steps,
    build_order,
    read_json,
)
from service.cli.output import Exit, Failure, note, print_json, print_pairs, print_table, share
from service.cli.progress import byte_count, follow, upload_bar
from service.cli.results import Output, Seed, Where, conditions, format_of, save_json, write_to_stdout

if TYPE_CHECKING:
    from imprimatur.client import Client, Release

ReleaseArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="The release's id.")]


def quote(
    dataset: DatasetArgument,
    epsilon: Epsilon = None,
    share_: ShareOf = None,
    method: Method = "auto",
    condition_on: ConditionOn = None,
    purpose: Purpose = None,
    steps: Steps = None,
    knobs: Set = None,
    order: OrderFile = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """The price of an order and whether it fits now. Reserves nothing; exit code 3 when it does not fit.

    Example:
    [cyan]imprimatur quote my-table --epsilon 2 --set noise_decay.kind=constant[/cyan]
    """
    document = build_order(
        order=order,
        method=method,
        epsilon=epsilon,
        share=share_,
        condition_on=condition_on,
        purpose=purpose,
        steps=steps,
        knobs=knobs,
    )
    with connect(url, key, data) as client:
        found = client.quote(dataset_id_of(client, dataset), document)
    if as_json:
        print_json(found)
    else:
        shares, left = found["price"]["shares"], found["remaining"]
        rows = [
            ("simple sums", share(shares["simple"]), share(left["simple"])),
            ("Rényi", share(shares["renyi"]), share(left["renyi"])),
        ]
        title = f"ε = {found['price']['epsilon']:.6g}, δ = {found['price']['delta']:.3g}"
        print_table(title, ("account", "costs", "left"), rows)
        chosen = found["order"].get("chosen_because")
        print_pairs({"method": chosen or found["order"]["method"], "fits": "yes" if found["fits"] else "no"})
        print_warnings(found)
    if not found["fits"]:
        raise typer.Exit(Exit.OVER_BUDGET)


def release(
    dataset: DatasetArgument,
    epsilon: Epsilon = None,
    share_: ShareOf = None,
    method: Method = "auto",
    condition_on: ConditionOn = None,
    purpose: Purpose = None,
    steps: Steps = None,
    knobs: Set = None,
    order: OrderFile = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has ended.")] = True,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key makes the same order once, however often it is sent.")
    ] = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Order a release: reserve its price, train, publish. Exit code 3 when the budget refuses.

    Examples:
    [cyan]imprimatur release my-table --epsilon 4[/cyan]
    [cyan]imprimatur release my-table --share rest --no-wait[/cyan]
    """
    document = build_order(
        order=order,
        method=method,
        epsilon=epsilon,
        share=share_,
        condition_on=condition_on,
        purpose=purpose,
        steps=steps,
        knobs=knobs,
    )
    with connect(url, key, data) as client:
        made = client.create_release(dataset_id_of(client, dataset), document, idempotency_key=idempotency_key)
        if wait:
            note(f"release {made['id']}")
            made = follow(client, made["id"])
    _print_release(made, as_json=as_json)


def status(
    release_id: Annotated[str | None, typer.Argument(metavar="[RELEASE]", help="Its id; default: list all.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only releases of this dataset.")] = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """How far a release is; without an id, all releases.

    Example:
    [cyan]imprimatur status 7f1c… --wait[/cyan]
    """
    with connect(url, key, data) as client:
        if release_id is not None:
            found = follow(client, release_id) if wait else client.release(release_id)
            _print_release(found, as_json=as_json)
            return
        listed = client.releases(dataset_id_of(client, dataset) if dataset else None)
    if as_json:
        print_json({"items": listed})
        return
    rows = [(r["id"], r["state"], _progress(r), f"{r['price']['epsilon']:.4g}", r["created_at"][:19]) for r in listed]
    print_table(None, ("id", "state", "progress", "ε", "ordered (UTC)"), rows)


def cancel(
    release_id: ReleaseArgument, url: Url = None, key: Key = None, data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """Stop a release: free of charge before its first private step, never afterwards."""
    with connect(url, key, data) as client:
        _print_release(client.cancel(release_id), as_json=as_json)


def publish(
    file: File,
    schema: SchemaFile,
    epsilon: Epsilon = None,
    rows: Annotated[int, typer.Option("--rows", "-n", min=1, help="Synthetic rows to draw.")] = 1_000,
    output: Output = None,
    budget_epsilon: Annotated[
        float | None, typer.Option(help="ε of the table's whole budget, given once; default: this release's ε.")
    ] = None,
    delta: Delta = None,
    name: Name = None,
    unit_column: UnitColumn = None,
    max_rows_per_unit: MaxRows = 1,
    max_images_per_unit: MaxImages = None,
    missing_units: MissingUnits = REFUSE,
    distinct_from: DistinctFrom = None,
    share_: ShareOf = None,
    method: Method = "auto",
    condition_on: ConditionOn = None,
    purpose: Purpose = None,
    steps: Steps = None,
    knobs: Set = None,
    order: OrderFile = None,
    format_: Annotated[
        str | None, typer.Option("--format", help="csv, parquet, jsonl or arrow; default: by -o.")
    ] = None,
    where: Where = None,
    seed: Seed = None,
    generator: Annotated[
        Path | None, typer.Option("--generator", help="Also save the trained generator (ZIP).")
    ] = None,
    certificate: Annotated[Path | None, typer.Option("--certificate", help="Also save the certificate (JSON).")] = None,
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
    document = build_order(
        order=order,
        method=method,
        epsilon=epsilon,
        share=share_,
        condition_on=condition_on,
        purpose=purpose,
        steps=steps,
        knobs=knobs,
    )
    whole = budget_epsilon or document.get("epsilon")
    if whole is None:
        raise typer.BadParameter("an order by --share needs --budget-epsilon", param_hint="--budget-epsilon")
    declared = read_json(schema, "--schema")
    warn_of_draft(declared)
    chosen = format_of(format_, output)
    with connect_or_start(url, key, data) as client:
        dataset_id = _upload_or_find(
            client,
            file,
            schema=declared,
            epsilon=float(whole),
            delta=delta,
            name=name or file.stem,
            privacy_unit=privacy_unit(unit_column, max_rows_per_unit, max_images_per_unit, missing_units),
            distinct_from=[dataset_id_of(client, dataset) for dataset in distinct_from or ()],
        )
        made = follow(client, client.create_release(dataset_id, document)["id"])
        wanted: dict[str, Any] = {"format": chosen, "where": conditions(where), "seed": seed}
        if output is None or str(output) == "-":
            with client.sample(made["id"], rows, **wanted) as chunks:
                write_to_stdout(chunks)
        else:
            with byte_count("Drawing rows") as report:
                client.save_sample(made["id"], output, rows, on_bytes=report, **wanted)
        if generator is not None:
            client.save_generator(made["id"], generator)
        if certificate is not None:
            save_json(client.certificate(made["id"]), certificate)
        left = client.budget(dataset_id)
    facts = {
        "dataset_id": dataset_id,
        "release_id": made["id"],
        "epsilon": made["price"]["epsilon"],
        "delta": made["price"]["delta"],
        "rows": rows,
        "output": None if output is None else str(output),
        "largest_next_epsilon": left["largest_next_epsilon"],
    }
    if output is None or str(output) == "-":
        note(f"ε = {facts['epsilon']:.4g}; next at most ε = {facts['largest_next_epsilon']:.4g}")
    elif as_json:
        print_json(facts)
    else:
        print_pairs(facts)


def _upload_or_find(client: Client, file: Path, *, schema: dict[str, Any], **declaration: Any) -> str:
    """The dataset of these rows. Rows that already have a budget keep it, and what was declared with it."""
    from imprimatur.client import ApiError
    from service.domain.image_schema import parse_schema

    try:
        with upload_bar() as report:
            dataset = client.create_dataset(file, schema, **declaration, on_progress=report)
    except ApiError as error:
        known = error.values.get("dataset_id")
        if error.code != "duplicate_rows" or known is None or "columns_match" in error.values:
            raise
        found = client.dataset(str(known))
        stored = parse_schema(found["schema"]), found["privacy_unit"]
        if stored != (parse_schema(schema), declaration["privacy_unit"]):
            raise Failure(
                f"these rows have a budget as dataset {known}, which was declared with another schema or privacy unit; "
                f"`imprimatur release {known}` orders from it as it was declared; until its first order is charged, `imprimatur redeclare {known}` corrects that",
                Exit.BAD_INPUT,
                "declared_otherwise",
                dataset_id=known,
            ) from None
        note(f"These rows already have a budget: dataset {known}")
        print_warnings(found)
        return str(known)
    print_warnings(dataset)
    print_notices(dataset)
    return dataset["id"]


def _print_release(found: Release, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        price = found["price"]
        pairs = {
            "id": found["id"],
            "dataset": found["dataset_id"],
            "state": found["state"],
            "progress": _progress(found),
            "price": f"ε = {price['epsilon']:.6g}, δ = {price['delta']:.3g}",
        }
        print_pairs(pairs | ({"failure": found["failure"]} if found["failure"] else {}))
    if found["state"] == "failed":
        raise Failure(f"release {found['id']} failed: {found['failure']}", code="release_failed")


def _progress(found: Release) -> str:
    at = found["progress"]
    return f"{at.get('step', 0)}/{at.get('steps', 0)} {at.get('phase', '')}".strip()
