"""Reports on what was published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect
from imprimatur.cli.named import release_id_of
from imprimatur.cli.options import ReleaseArgument
from imprimatur.cli.output import note, print_json
from imprimatur.visible import visible


def report(
    release_id: ReleaseArgument,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A page (.html) or JSON (.json); default: owner-report.html, with --charged report.html.",
        ),
    ] = None,
    charged: Annotated[
        bool, typer.Option("--charged", help="The report for everybody, which was measured with noise and charged.")
    ] = False,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """The owner's report: how close synthetic rows are to real ones. Not private; with an owner's key.

    Of a release ordered with --set owner_report=true; a worker makes it within
    minutes after the release is published. Only you may read the file.

    Example:
    [cyan]imprimatur report 7f1c… -o owner-report.html[/cyan]
    """
    with connect(url, key, data) as client:
        release_id = release_id_of(client, release_id)
        if as_json:
            print_json(client.report(release_id) if charged else client.owner_report(release_id))
            return
        output = output or Path("report.html" if charged else "owner-report.html")
        size = client.save_report(release_id, output, owner=not charged)
        accuracy = client.report(release_id).get("accuracy") if charged else None
    says = "" if charged else ". Not private: computed from the real rows without noise. Do not share"
    note(f"{output}: {size} bytes{says}.")
    if accuracy is not None:
        note(accuracy_in_words(accuracy))


def accuracy_in_words(found: Mapping[str, Any]) -> str:
    """The accuracy in a report with held-out units, as a sentence."""
    frequent = found["most_frequent"]
    share, within = frequent["share"], 1.96 * frequent["noise_std"]
    return (
        f"Trained on synthetic rows, a classifier predicts {visible(str(found['target']))} right in {found['accuracy']:.1%} of the rows of "
        f"{found['held_out_units']:,} held-out units (19 times in 20 between {found['low']:.1%} and {found['high']:.1%}); "
        f"always the most frequent value: about {share:.1%} (between {max(0.0, share - within):.1%} and {min(1.0, share + within):.1%})."
    )
