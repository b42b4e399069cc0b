"""The analyst's side: price an order, place it, watch it, cancel it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli import amounts
from imprimatur.cli.ages import age
from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect
from imprimatur.cli.datasets import print_warnings
from imprimatur.cli.named import dataset_id_of, release_id_of
from imprimatur.cli.options import DatasetArgument, ReleaseArgument
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
    Want,
    build_order,
    read_want,
    said_again,
)
from imprimatur.cli.ordering import place
from imprimatur.cli.output import (
    EITHER_ACCOUNT,
    Exit,
    Failure,
    console,
    note,
    print_json,
    print_next,
    print_pairs,
    print_table,
    rounded_down,
)
from imprimatur.cli.progress import follow
from imprimatur.declarations import HOLD_ANSWERS
from imprimatur.naming import name_of
from imprimatur.public_starts import public_datasets
from imprimatur.wording import estimate_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imprimatur.replies import Budget, Estimate, Quote, Release


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
    public_start: PublicStart = None,
    want: Want = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """The price of an order, whether it fits now, and how exact its result will be. Reserves nothing; exit code 3 when it does not fit.

    Examples:
    [cyan]imprimatur quote my-table --epsilon 2 --set noise_decay.kind=constant[/cyan]
    [cyan]imprimatur quote my-table --want group=200,within=0.1[/cyan]
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
        public_dataset=public_start,
        want=read_want(want),
    )
    with connect(url, key, data) as client:
        dataset_id = dataset_id_of(client, dataset)
        found = client.quote(dataset_id, document)
        known = None if as_json else client.budget(dataset_id)
    if known is None:
        print_json(amounts.quote(found))
    else:
        again = said_again(
            order,
            knobs,
            method=method,
            condition_on=condition_on,
            purpose=purpose,
            steps=steps,
            public_start=public_start,
        )
        _print_quote(found, known, dataset, again)
    if not found["fits"]:
        raise typer.Exit(Exit.OVER_BUDGET)


def _print_quote(found: Quote, known: Budget, dataset: str, again: str) -> None:
    """For a person: how far off it will be, both accounts, the method, and what would fit. again: the options of the order."""
    if found.wanted is not None:
        console().print(found.wanted.says)
    for sentence in () if found.forecast is None else found.forecast.sentences:
        console().print(sentence, markup=False, highlight=False)
    print_warnings(found)
    shares, left = found["price"]["shares"], found["remaining"]
    names = {"simple": "basic composition", "renyi": "Rényi composition"}
    rows = [
        (name, *(amounts.in_words(of[kind], kind, known["epsilon"]) for of in (shares, left)))
        for kind, name in names.items()
    ]
    title = f"ε = {found['price']['epsilon']:.6g}, δ = {found['price']['delta']:.3g}"
    print_table(title, ("account", "costs", "left"), rows)
    console().print(EITHER_ACCOUNT)
    largest = rounded_down(known["largest_next_epsilon"])
    fits = "yes" if found["fits"] else f"no; at most ε = {largest} would fit"
    chosen = found["order"].get("chosen_because")
    facts = {"method": chosen or found["order"]["method"], "fits": fits} | _begins(found["order"])
    print_pairs(facts | _takes(found.get("estimate")))
    epsilon = f"{found['price']['epsilon']:.4g}" if found["fits"] else largest
    print_next(f"imprimatur release {dataset} --epsilon {epsilon}{again}")


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
    public_start: PublicStart = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until it has ended.")] = True,
    idempotency_key: Annotated[
        str | None, typer.Option(help="The same key makes the same order once, however often it is sent.")
    ] = None,
    priority: Priority = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the release; default: METHOD and part of its id.")
    ] = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Order a release: reserve its price, train, publish. Exit code 3 when the budget refuses.

    Examples:
    [cyan]imprimatur release my-table --epsilon 4 --name first[/cyan]
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
        public_dataset=public_start,
    )
    with connect(url, key, data) as client:
        made = place(client, dataset_id_of(client, dataset), document, idempotency_key, priority=priority, name=name)
        if wait:
            note(f"release {name_of(made)} ({made['id']})")
            made = follow(client, made["id"])
    _print_release(made, as_json=as_json)


def status(
    release_id: Annotated[
        str | None, typer.Argument(metavar="[RELEASE]", help="Its name or id; default: list all.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it has ended.")] = False,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only releases of this dataset.")] = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """State and progress of a release; without an id, of all releases.

    Example:
    [cyan]imprimatur status 7f1c… --wait[/cyan]
    """
    with connect(url, key, data) as client:
        if release_id is not None:
            release_id = release_id_of(client, release_id)
            found = follow(client, release_id) if wait else client.release(release_id)
            _print_release(found, as_json=as_json)
            return
        listed = client.releases(dataset_id_of(client, dataset) if dataset else None)
        datasets = {} if as_json else {each["id"]: each["name"] for each in client.datasets()}
    if as_json:
        print_json({"items": [amounts.release(each) for each in listed]})
        return
    rows = [
        (
            r["id"],
            name_of(r),
            datasets.get(r["dataset_id"], r["dataset_id"][:8]),
            r["order"]["method"],
            r["order"].get("purpose") or "–",
            r["state"],
            _progress(r),
            f"{r['price']['epsilon']:.4g}",
            age(r["created_at"]),
        )
        for r in listed
    ]
    print_table(None, ("id", "name", "dataset", "method", "purpose", "state", "progress", "ε", "ordered"), rows)
    done = next((r for r in listed if r["state"] == "published"), None)
    if done is not None:
        print_next(_after(done), f"imprimatur explain {done['id'][:8]}")
    elif listed:
        print_next(f"imprimatur status {listed[0]['id'][:8]} --wait")
    else:
        print_next("imprimatur release DATASET --epsilon 1 (`imprimatur datasets` lists them)")


def cancel(
    release_id: ReleaseArgument, url: Url = None, key: Key = None, data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """Stop a release: free of charge before its first private step, never afterwards."""
    with connect(url, key, data) as client:
        _print_release(client.cancel(release_id_of(client, release_id)), as_json=as_json)


def _print_release(found: Release, *, as_json: bool) -> None:
    if as_json:
        print_json(amounts.release(found))
    else:
        price, order = found["price"], found["order"]
        pairs = {
            "id": found["id"],
            "name": name_of(found),
            "dataset": found["dataset_id"],
            "method": f"{order['method']}, for {order['purpose']}" if order.get("purpose") else order["method"],
            "state": found["state"],
            "ordered": age(found["created_at"]),
            "progress": _progress(found),
            "price": f"ε = {price['epsilon']:.6g}, δ = {price['delta']:.3g}",
        }
        if found["state"] in {"reserved", "charged"}:
            pairs |= _takes(found.get("estimate"))
        print_pairs(pairs | ({"failure": found["failure"]} if found["failure"] else {}))
        print_next(_after(found))
    if found["state"] == "failed":
        raise Failure(f"release {found['id']} failed: {found['failure']}", code="release_failed")


def _after(found: Release) -> str:
    """The command that fits the state."""
    short = found["id"][:8]
    if found["state"] == "published":
        if found["order"]["method"] in HOLD_ANSWERS:
            return f"imprimatur answers {short}"
        return f"imprimatur sample {short} -n 1000 -o {'images.zip' if _makes_images(found) else 'rows.csv'}"
    if found["failure"] == "not_accepted":
        return f"imprimatur report {short} --charged -o report.html"
    if found["state"] in {"reserved", "charged"}:
        return f"imprimatur status {short} --wait"
    return f"imprimatur budget {found['dataset_id'][:8]}"


def _makes_images(found: Release) -> bool:
    """By the unit of its certificate; the order of a method may be of either."""
    bound = (found.get("certificate") or {}).get("contribution_bound") or {}
    return "image" in str(bound.get("unit", ""))


def _begins(order: Mapping[str, Any]) -> dict[str, str]:
    """The public rows that an order begins from, or some of its candidates, counted from 0."""
    found = public_datasets(order)
    if not found:
        return {}
    each = [
        f"public rows of {public}" + (f" (of candidates: {', '.join(map(str, places))})" if places else "")
        for public, places in found.items()
    ]
    return {"begins from": f"{', '.join(each)}: no price, and no protection for them"}


def _takes(estimate: Estimate | None) -> dict[str, str]:
    """Nothing where an older service says nothing."""
    return {} if estimate is None else {"takes": estimate_in_words(estimate)}


def _progress(found: Release) -> str:
    at = found["progress"]
    return f"{at.get('step', 0)}/{at.get('steps', 0)} {at.get('phase', '')}".strip()
