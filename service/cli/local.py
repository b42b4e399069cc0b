"""Everything on this machine: `up`, `demo`, and a new signing key in a data directory."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data
from imprimatur.cli.output import echo, note, print_json, print_pairs
from service.cli.owned_database import owned_database

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_PORT = 8000


def up(
    data: Data = DEFAULT_DATA,
    port: Annotated[int, typer.Option("--port", help="Loopback port of the API; 0 picks a free one.")] = DEFAULT_PORT,
    as_json: AsJson = False,
) -> None:
    """Start the whole service on this machine, until Ctrl-C.

    Postgres, Redis, API, relay and a worker, with everything they keep in one
    directory. The first owner's API key is in DATA/admin.key. What dies is
    started again; what an earlier, killed run left behind is cleaned up first.

    Example:
    [cyan]imprimatur up --data ./imprimatur-data --port 8000[/cyan]
    """
    from service.local import EmbeddedStack

    stop = threading.Event()
    stack = EmbeddedStack(
        data, port, on_part=lambda part: note(f"starting {part}"), on_leftover=lambda said: echo(said, err=True)
    )

    def stop_both() -> None:
        stop.set()
        stack.request_stop()

    _call_at_signals(stop_both)
    try:
        stack.start()
        first = f"{stack.url}/datasets/new"
        facts = {"url": stack.url, "key_file": str(data / "admin.key"), "logs": str(data / "logs")}
        if as_json:
            print_json(facts | {"pids": stack.pids})
        else:
            print_pairs(
                facts
                | {"web page": f"{stack.url}/", "first table": first, "sign in": "with the key in key_file"}
                | {"API": f"{stack.url}/docs", "stop": "Ctrl-C"}
            )
        stop.wait()
    finally:
        note("stopping")
        stack.stop()


def _call_at_signals(stop: Callable[[], None]) -> None:
    """Call it in a thread when the process is told to end.

    Not in the handler: a second signal may come while the first is handled, and would wait for ever for a lock that the
    interrupted call holds (`Event.set` takes one).
    """
    told, tell = os.pipe()
    os.set_blocking(tell, False)
    signal.set_wakeup_fd(tell, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: None)

    def wait() -> None:
        os.read(told, 1)
        stop()

    threading.Thread(target=wait, name="signals", daemon=True).start()


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the three files go.")] = Path("demo-output"),
    table: Annotated[
        Path | None, typer.Option("--table", help="CSV to publish; its schema lies beside it as *.schema.json.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="ε of the release.")] = 4.0,
    budget_epsilon: Annotated[float, typer.Option(help="ε of the table, given once.")] = 5.0,
    steps: Annotated[int | None, typer.Option(help="Fitting steps; default: the method's.")] = None,
    page: Annotated[
        bool | None,
        typer.Option(
            "--page/--no-page", help="Go on running afterwards, for a look at the web page; default: in a terminal."
        ),
    ] = None,
) -> None:
    """Publish the example table from start to end, on a service of its own that is gone afterwards.

    Shows the training, the first synthetic rows, the budget before and after,
    the certificate, and a second order that is refused. Leaves synthetic.csv,
    generator.zip and certificate.json. About two minutes on two cores. In a
    terminal it then shows where the web page is and by which key to sign in,
    and goes on until Ctrl-C: there you can publish a table of your own.
    """
    from service.local.demo import run_demo

    run_demo(
        output=output,
        table=table,
        epsilon=epsilon,
        budget_epsilon=budget_epsilon,
        steps=steps,
        has_page=sys.stdin.isatty() and sys.stdout.isatty() if page is None else page,
    )


def replace_signing_key(
    lost: Annotated[
        bool, typer.Option("--lost", help="The old key is lost, or others have it: do not let it endorse the new one.")
    ] = False,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Make a new key that signs certificates, in DATA/signing.key.

    The old key endorses it, so that people who know the old one can follow. What
    was signed before stays good. With --lost everybody must be told the new
    public key by another way. Where no service runs, which cannot start without
    the key, its database is started for this alone.

    Example:
    [cyan]imprimatur key replace-signing[/cyan]
    """
    from service.upkeep.installation import replace_signing_key as replace

    with owned_database(data) as settings:
        made = replace(settings, lost=lost)
    facts = {"key_id": made.id, "public_key": made.public_key}
    if as_json:
        print_json(facts)
    else:
        print_pairs(facts)
