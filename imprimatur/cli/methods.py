"""Which methods a service offers, and what may be ordered of each: asked of the service, which alone knows."""

from __future__ import annotations

from typing import Annotated

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect
from imprimatur.cli.knobs import Schema
from imprimatur.cli.named import nearest, release_id_of
from imprimatur.cli.options import ReleaseArgument
from imprimatur.cli.output import Exit, Failure, print_json, print_next, print_pairs, print_table


def methods(
    name: Annotated[str | None, typer.Argument(metavar="[METHOD]", help="Show its knobs.")] = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """List the methods that may be ordered, or the knobs of one.

    Knobs are named as --set takes them: --set networks.noise_dimension=16,
    --set thresholds.kind=fixed --set thresholds.clip_norm=0.5.

    Examples:
    [cyan]imprimatur methods[/cyan]
    [cyan]imprimatur methods idpgan[/cyan]
    """
    with connect(url, key, data) as client:
        found = client.methods()
    if name is None:
        if as_json:
            print_json({"items": found})
            return
        print_table(
            None, ("method", "takes", "what it does"), [(m["name"], ", ".join(m["takes"]), m["summary"]) for m in found]
        )
        print_next(*[f"imprimatur methods {m['name']} (its knobs)" for m in found[:1]])
        return
    chosen = next((method for method in found if method["name"] == name), None)
    if chosen is None:
        some = ", ".join(method["name"] for method in found)
        close = nearest(name, [method["name"] for method in found])
        meant = f"; did you mean {close[0]}?" if close else ""
        raise Failure(f"there is no method {name!r}; there are: {some}{meant}", Exit.BAD_INPUT, "invalid_input")
    if as_json:
        print_json(chosen)
        return
    returned = chosen.get("returns")  # an older service does not say
    print_pairs(
        {"method": name, "takes": ", ".join(chosen["takes"]), "what it does": chosen["summary"]}
        | ({} if returned is None else {"returns": returned})
        | ({"public start": "may begin from public rows: --public-start"} if chosen.get("takes_public_rows") else {})
        | {"source": chosen["source"], "its analysis": chosen["paper_holds"]}
    )
    print_table(None, ("knob", "default", "allowed", "meaning"), list(Schema(chosen["order"]).knobs()), whole="knob")
    print_next(f"imprimatur quote DATASET --epsilon 1 --method {name} --set KNOB=VALUE")


def answers(
    release_id: ReleaseArgument,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Show the numbers of a release that holds answers instead of a generator, as JSON."""
    with connect(url, key, data) as client:
        print_json(client.answers(release_id_of(client, release_id)))
