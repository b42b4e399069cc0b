"""The dataset of the rows that `publish` is given: a new one with a budget of its own, or the one that they have already."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from imprimatur.cli.datasets import print_notices, print_warnings
from imprimatur.cli.named import dataset_id_of
from imprimatur.cli.output import Exit, Failure, echo, rounded_down
from imprimatur.cli.progress import upload_bar
from imprimatur.preflight import check_known_budget, check_name, declare_alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from imprimatur.cli.publishing_plan import Declared
    from imprimatur.client import Client
    from imprimatur.errors import ApiError
    from imprimatur.objects import Dataset


def upload_or_find(client: Client, table: Declared, rows: Path) -> str:
    """Upload rows, or find the dataset that holds them already; its id. Known rows keep their budget and their declaration."""
    from imprimatur.errors import ApiError

    unlike = [dataset_id_of(client, dataset) for dataset in table.distinct_from]
    datasets = client.datasets()
    name = _name(datasets, table)
    may_be_known = any(declare_alike(dataset["schema"], table.schema) for dataset in datasets)
    if not may_be_known:
        _agree_to_the_whole(table)
    try:
        with upload_bar() as report:
            dataset = client.create_dataset(
                rows,
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
        return _known(client, table, error)
    if may_be_known:  # only now it is known that they are other rows
        _agree_or_erase(client, table, dataset)
    print_warnings(dataset)
    print_notices(dataset)
    return dataset.id


def _known(client: Client, table: Declared, error: ApiError) -> str:
    """The dataset that has these rows, with what is left of its budget; any other refusal is raised."""
    known = error.values.get("dataset_id")
    if error.code != "duplicate_rows" or known is None or "columns_match" in error.values:
        raise error
    if not error.values.get("same_declaration"):
        raise Failure(
            f"these rows have a budget as dataset {known}, which was declared with another schema or privacy unit. "
            f"Order from it with `imprimatur release {known}`; or correct its declaration with `imprimatur redeclare {known}` until its first "
            f"order is charged; or, where nothing was ordered, free the rows with `imprimatur erase {known}`",
            Exit.BAD_INPUT,
            "declared_otherwise",
            dataset_id=known,
        ) from None
    dataset = client.dataset(str(known))
    check_known_budget(dataset, table.given_epsilon, table.delta)
    largest = client.budget(dataset.id).largest_next_epsilon
    left = (
        f"at most ε = {rounded_down(largest)} is left for one more release" if largest > 0 else "nothing of it is left"
    )
    echo(
        f"note: these rows have a budget: dataset {dataset.name} ({dataset.id}), ε = {dataset.epsilon:g}; {left}",
        err=True,
    )
    print_warnings(dataset)
    return dataset.id


def _name(datasets: Sequence[Dataset], table: Declared) -> str:
    """The name that was given, if it would not name two datasets; a name after the file gets a number then."""
    if table.is_named:
        check_name(datasets, table.name, table.schema)
        return table.name
    taken = {dataset["name"] for dataset in datasets}
    numbered = (f"{table.name}-{number}" for number in itertools.count(2))
    return next(name for name in itertools.chain([table.name], numbered) if name not in taken)


def _agree_to_the_whole(table: Declared) -> None:
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


def _agree_or_erase(client: Client, table: Declared, dataset: Dataset) -> None:
    """The same of rows that are uploaded. Nothing was ordered from them, so erasing them takes their budget back, too."""
    try:
        _agree_to_the_whole(table)
    except BaseException:
        client.erase_dataset(dataset.id)
        echo("nothing was ordered; the rows are erased and have no budget", err=True)
        raise
