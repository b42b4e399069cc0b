"""For the operator of many machines: install and check, tenants. With the owner's settings in the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, running_in
from imprimatur.cli.output import Exit, Failure, console, note, print_json, print_pairs, print_table

if TYPE_CHECKING:
    from service.platform.settings import Settings

OWNERS_URL = "IMPRIMATUR_MIGRATION_DATABASE_URL"

app = typer.Typer(
    no_args_is_help=True, help="Tenants, and keys that no key can make: for the operator.", rich_markup_mode="rich"
)


def install(
    check: Annotated[
        bool, typer.Option("--check", help="Look at every step and change nothing; exit code 1 if one is missing.")
    ] = False,
    key_file: Annotated[Path, typer.Option(help="Where the first owner's API key goes (mode 0600).")] = Path(
        "admin.key"
    ),
    passwords: Annotated[
        Path | None, typer.Option(help="Folder with one password file per role; missing ones are made and set.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", envvar="IMPRIMATUR_URL", help="With --check: the API's address.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a database, its keys and its first owner ready, on many machines.

    Migrations, the three roles' passwords, the secret key file and the workers'
    part of it, the signing key, the first owner. Harmless to repeat; needed after
    every new version. `imprimatur up` does all of it by itself.

    Settings are read from the environment: IMPRIMATUR_MIGRATION_DATABASE_URL is
    the owning role's. With --check every step is looked at, with what to do where
    it is missing.

    Examples:
    [cyan]imprimatur install --passwords ./passwords[/cyan]
    [cyan]imprimatur install --check --passwords ./passwords --url http://…[/cyan]
    """
    from service.platform.settings import get_settings
    from service.upkeep import checks
    from service.upkeep.installation import install as bring_up_to_date

    settings = get_settings()
    if not check:
        made = bring_up_to_date(settings, key_file, passwords)
        facts = {"first_owner_made": made, "key_file": str(key_file) if made else None}
        if as_json:
            print_json(facts)
        else:
            print_pairs({"first owner's API key": str(key_file)} if made else {"installation": "up to date"})
        return
    findings = checks.check(settings, checks.Places(key_file, passwords, url))
    if as_json:
        steps = [{"step": each.step, "state": each.state, "detail": each.detail} for each in findings]
        print_json({"complete": checks.is_complete(findings), "steps": steps})
    else:
        print_table(None, ("step", "state", ""), [(each.step, each.state, each.detail) for each in findings])
    if not checks.is_complete(findings):
        raise typer.Exit(Exit.FAILURE)


@app.command("create")
def create(
    name: Annotated[str, typer.Argument(help="The tenant's name.")], data: Data = DEFAULT_DATA, as_json: AsJson = False
) -> None:
    """Make a tenant; its first owner's key is shown once.

    Needs the owner's settings in the environment (IMPRIMATUR_MIGRATION_DATABASE_URL
    and the secret key file), or the running service of --data.

    Example:
    [cyan]imprimatur tenant create "Second Office"[/cyan]
    """
    from service.upkeep import tenants

    _print_key({"tenant": name, "scope": "owner", "key": tenants.create(owner_settings(data), name)}, as_json=as_json)


@app.command("key")
def create_key(
    tenant: Annotated[str, typer.Argument(help="The tenant's name.")],
    name: Annotated[str, typer.Argument(help="Whose key this is.")],
    scope: Annotated[Literal["owner", "analyst", "reader"], typer.Option(help="What it may do.")] = "owner",
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Make a key for an existing tenant, for example one that lost its last owner key.

    The tenant's audit log has a line of it, without a key, as the operator's.

    Example:
    [cyan]imprimatur tenant key "Second Office" boss[/cyan]
    """
    from service.upkeep import tenants

    made = tenants.create_key(owner_settings(data), tenant, name, scope)
    _print_key({"tenant": tenant, "name": name, "scope": scope, "key": made}, as_json=as_json)


@app.command("list")
def list_tenants(data: Data = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """All tenants, the oldest first."""
    from service.upkeep import tenants

    found = [(str(each.id), each.name, each.created_at) for each in tenants.tenants(owner_settings(data))]
    if as_json:
        print_json({"items": [{"id": i, "name": name, "created_at": at.isoformat()} for i, name, at in found]})
    else:
        print_table(None, ("id", "name", "created"), [(i, name, at.isoformat()[:19]) for i, name, at in found])


def owner_settings(data: Path) -> Settings:
    """The owner's settings: those of the environment where it names the owning role, else those of the service that runs in the directory."""
    if os.environ.get(OWNERS_URL):
        from service.platform.settings import get_settings

        return get_settings()
    if running_in(data) is None:
        raise Failure(
            f"set {OWNERS_URL} and the other settings of the service, or start `imprimatur up` in {data}",
            Exit.UNAVAILABLE,
            "unreachable",
        )
    from service.local import EmbeddedStack

    return EmbeddedStack(data, 0).settings()


def _print_key(made: dict[str, str], *, as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        note("This key is shown once:")
        console().print(made["key"], markup=False)
