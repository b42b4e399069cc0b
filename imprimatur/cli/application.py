"""All commands under one roof, and the one place where an error becomes an exit code."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from imprimatur.cli import (
    asking,
    certificates,
    completing,
    datasets,
    explaining,
    keys,
    methods,
    publishing,
    releases,
    reporting,
    results,
    server,
)
from imprimatur.cli.failures import expected
from imprimatur.cli.output import print_failure
from imprimatur.version import VERSION

EXIT_CODES = """[bold]Exit codes[/bold]

[bold]0[/bold] done · [bold]1[/bold] failed · [bold]2[/bold] wrong usage
[bold]3[/bold] refused, over the privacy budget
[bold]4[/bold] not found, not allowed, or no valid key
[bold]5[/bold] bad input · [bold]6[/bold] service unavailable
[bold]7[/bold] self-signed, not verified (verify)
[bold]8[/bold] consistent, not verified (verify)
"""

HELP = """Private synthetic data behind a budget that refuses.

The owner gives a table a privacy budget once; analysts order synthetic
releases until it is spent.

{first_steps}

Commands talk to the service of --url (IMPRIMATUR_URL) with --key
(IMPRIMATUR_API_KEY), or to the one that runs in ./imprimatur-data (--data,
IMPRIMATUR_DATA). Results go to standard output, everything else to standard
error; progress is shown on a terminal only. --json gives one document.
"""

WITH_SERVER = """First steps:
[cyan]imprimatur demo[/cyan]

With your own table (`schema edit` asks of each column what is publicly known):
[cyan]imprimatur schema edit table.csv -o schema.json[/cyan]
[cyan]imprimatur publish table.csv -s schema.json --epsilon 3 -o out.csv[/cyan]"""

CLIENT_ONLY = """First steps, with a key of a service that runs elsewhere:
[cyan]imprimatur datasets --url https://imprimatur.example.org --key KEY[/cyan]
[cyan]imprimatur release DATASET --epsilon 1 --url … --key …[/cyan]
[cyan]imprimatur sample RELEASE -n 1000 -o rows.csv --url … --key …[/cyan]"""


class Commands(server.Commands):
    """The first steps are those that work where the command is installed."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        first_steps = CLIENT_ONLY if server.installed() is None else WITH_SERVER
        self.help = HELP.format(first_steps=first_steps).strip()
        super().format_help(ctx, formatter)


app = typer.Typer(
    name="imprimatur",
    cls=Commands,
    epilog=EXIT_CODES,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"imprimatur {VERSION}")
        raise typer.Exit


@app.callback()
def imprimatur(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    """Private synthetic data behind a budget that refuses."""


START, DATA, ORDER, RESULT = "Start", "The owner's table", "Order", "Results"
app.command(rich_help_panel=START, help=publishing.HELP)(publishing.publish)
app.add_typer(keys.app, name="key", rich_help_panel=START)
app.command("audit-log", rich_help_panel=START)(keys.audit_log)
app.command(rich_help_panel=DATA)(datasets.upload)
app.command(rich_help_panel=DATA)(datasets.redeclare)
app.command("datasets", rich_help_panel=DATA)(datasets.list_datasets)
app.command(rich_help_panel=DATA)(datasets.erase)
app.command(rich_help_panel=DATA)(datasets.expire)
app.command(rich_help_panel=DATA)(datasets.budget)
app.command(rich_help_panel=DATA)(datasets.ledger)
app.command(rich_help_panel=ORDER)(methods.methods)
app.command(rich_help_panel=ORDER)(releases.quote)
app.command(rich_help_panel=ORDER)(releases.release)
app.command(rich_help_panel=ORDER)(releases.status)
app.command(rich_help_panel=ORDER)(releases.cancel)
app.command(rich_help_panel=ORDER)(asking.ask)
app.command(rich_help_panel=RESULT)(results.sample)
app.command(rich_help_panel=RESULT)(completing.complete)
app.command(rich_help_panel=RESULT)(methods.answers)
app.command(rich_help_panel=RESULT)(results.download)
app.command(rich_help_panel=RESULT)(certificates.certificate)
app.command(rich_help_panel=RESULT)(explaining.explain)
app.command(rich_help_panel=RESULT)(reporting.report)
app.command(rich_help_panel=RESULT)(results.verify)


def main() -> None:
    """The console script."""
    try:
        app()
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:
        found = expected(error)
        if found is None:
            raise
        end = found
    print_failure(end, as_json="--json" in sys.argv)
    sys.exit(end.exit_code)
