"""The analyst's side: price an order, place it, watch it, cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect, dataset_id_of
from imprimatur.cli.datasets import print_warnings
from imprimatur.cli.options import DatasetArgument, ReleaseArgument
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
)
from imprimatur.cli.ordering import place
from imprimatur.cli.output import (
    EITHER_ACCOUNT,
    Exit,
    Failure,
    console,
    note,
    print_json,
    print_pairs,
    print_table,
    share,
)
from imprimatur.cli.progress import follow
from imprimatur.wording import estimate_in_words

if TYPE_CHECKING:
    from imprimatur.replies import Estimate, Release


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
        order,
        knobs,
        method=method,
        epsilon=epsilon,
        share=share_,
        condition_on=condition_on,
        purpose=purpose,
        steps=steps,
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
        console().print(EITHER_ACCOUNT)
        chosen = found["order"].get("chosen_because")
        pairs = {"method": chosen or found["order"]["method"], "fits": "yes" if found["fits"] else "no"}
        print_pairs(pairs | _takes(found.get("estimate")))
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
    priority: Priority = None,
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
        order,
        knobs,
        method=method,
        epsilon=epsilon,
        share=share_,
        condition_on=condition_on,
        purpose=purpose,
        steps=steps,
    )
    with connect(url, key, data) as client:
        made = place(client, dataset_id_of(client, dataset), document, idempotency_key, priority=priority)
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
        if found["state"] in {"reserved", "charged"}:
            pairs |= _takes(found.get("estimate"))
        print_pairs(pairs | ({"failure": found["failure"]} if found["failure"] else {}))
    if found["state"] == "failed":
        raise Failure(f"release {found['id']} failed: {found['failure']}", code="release_failed")


def _takes(estimate: Estimate | None) -> dict[str, str]:
    """Nothing where an older service says nothing."""
    return {} if estimate is None else {"takes": estimate_in_words(estimate)}


def _progress(found: Release) -> str:
    at = found["progress"]
    return f"{at.get('step', 0)}/{at.get('steps', 0)} {at.get('phase', '')}".strip()
