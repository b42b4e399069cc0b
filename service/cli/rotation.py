"""`imprimatur keys`: new roots for the secret key file of a data directory."""

from __future__ import annotations

from typing import Annotated

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data
from imprimatur.cli.output import note, notes, print_json, print_pairs
from service.cli.owned_database import owned_database

app = typer.Typer(
    no_args_is_help=True, help="The keys of the service itself: rotate the secret key file.", rich_markup_mode="rich"
)


@app.callback()
def keys() -> None:
    """The keys of the service itself."""


@app.command("rotate")
def rotate(
    finish: Annotated[
        bool, typer.Option("--finish", help="Take old roots out of the file once nothing needs them.")
    ] = False,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Put new roots into DATA/secret.key, and wrap every dataset's key under them.

    Nothing stops: running parts read the file again by themselves. Broken off,
    the same command goes on. The old roots stay until --finish; before that, take
    a backup of the file. API keys hashed under an old root go on working, and
    that root stays until they have ended: `imprimatur key replace` makes others.

    Examples:
    [cyan]imprimatur keys rotate[/cyan]
    [cyan]imprimatur keys rotate --finish[/cyan]
    """
    from service.upkeep import rotation

    step = rotation.finish if finish else rotation.rotate
    with notes().status("Wrapping data keys") as status, owned_database(data) as settings:
        done = step(settings, lambda count: status.update(f"Wrapping data keys: {count}"))
    facts = {"wrapped": done.wrapped, "finished": done.finished, "waiting_keys": done.waiting_keys}
    facts |= {} if finish else {"new_root": done.new_root}
    if as_json:
        print_json(facts)
        return
    print_pairs({"data keys wrapped anew": done.wrapped})
    if done.waiting_keys:
        note(f"An old root stays: {done.waiting_keys} living API keys need it. Replace them, then --finish again.")
    elif not done.finished and not done.new_root:
        note(
            "No new root was made: the file still holds an old one, and this went on with that rotation. Take it out"
            " with `imprimatur keys rotate --finish`; then `imprimatur keys rotate` makes a new one."
        )
    elif not done.finished:
        note("The old roots are still in the file: `imprimatur keys rotate --finish` takes them out.")
