"""`imprimatur explain`, and the page that `publish` leaves beside its rows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli.certificates import read_certificate_of
from imprimatur.cli.connection import DEFAULT_DATA, Data, Key, Url
from imprimatur.cli.output import Exit, Failure, echo, print_next
from imprimatur.explanation import MARK, Names, page
from imprimatur.naming import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from imprimatur.client import Client
    from imprimatur.replies import Release


def explain(
    release: Annotated[
        str,
        typer.Argument(metavar="RELEASE|FILE", help="A release's name or id, or its beginning; or certificate.json."),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; default: NAME.html. -: standard output.")
    ] = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Write a page that says what is promised about a release, for a colleague.

    One HTML file without scripts: what was protected, ε as odds, what the rows
    can and cannot do, whose signature it is and how to check it.

    Example:
    [cyan]imprimatur explain my-table/first -o first.html[/cyan]
    """
    found, names = read_certificate_of(release, url, key, data, named=_names)
    text = page(found, names or Names(str(found.get("dataset_id", "a table")), str(found["release_id"])[:8]))
    if output is not None and str(output) == "-":
        echo(text, nl=False)
        return
    target = output or Path(
        "".join(c if c.isalnum() or c in "-_." else "_" for c in (names or Names("", "release")).release) + ".html"
    )
    check_page(target)
    write_page(target, text)
    echo(str(target))
    print_next(
        f"imprimatur verify --certificate {shlex.quote(release)}"
        if Path(release).is_file()
        else f"imprimatur certificate {release} -o certificate.json"
    )


def _names(client: Client, certificate: Mapping[str, Any]) -> Names:
    release = client.release(certificate["release_id"])
    return Names(client.dataset(release["dataset_id"])["name"], name_of(release))


def page_beside(output: Path | None) -> Path | None:
    """Where the page of a sample is written; None where the sample goes to standard output."""
    if output is None or str(output) == "-":
        return None
    return output.with_suffix(".html")


def check_page(path: Path | None) -> None:
    """A page of somebody else is never written over."""
    if path is None or not path.is_file():
        return
    with path.open("rb") as file:
        if MARK.encode() not in file.read(4_096):
            raise Failure(
                f"{path} exists and is not a page of this command: remove it, name another -o, or give --no-explanation to publish",
                Exit.BAD_INPUT,
                "invalid_input",
            )


def save_page(client: Client, made: Release, path: Path, sample: Path | None, certificate: Path | None) -> None:
    """The page of a release, beside its rows."""
    names = Names(
        client.dataset(made["dataset_id"])["name"],
        name_of(made),
        None if sample is None else sample.name,
        None if certificate is None else str(certificate),
    )
    write_page(path, page(client.certificate(made["id"]), names))


def write_page(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
