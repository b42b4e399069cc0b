"""API keys of the own tenant, and its audit log."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from imprimatur.cli import server
from imprimatur.cli.ages import age
from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect
from imprimatur.cli.output import Exit, Failure, console, note, notes, print_json, print_next, print_pairs, print_table

ENDS = ("expires_at", "revoked_at")

KeyId = Annotated[str, typer.Argument(help="From `imprimatur key list`.")]
ExpiresAt = Annotated[
    str | None, typer.Option("--expires-at", metavar="MOMENT", help="Works until then: 2027-01-31T00:00:00Z.")
]

app = typer.Typer(
    cls=server.Commands,
    no_args_is_help=True,
    help="Make, list, replace and revoke API keys; replace the signing key.",
    rich_markup_mode="rich",
)


@app.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="Whose key this is.")],
    scope: Annotated[Literal["owner", "analyst", "reader"], typer.Option(help="What it may do.")] = "analyst",
    tenant: Annotated[
        str | None,
        typer.Option(
            help="Make a new tenant of this name with its first owner key, as `imprimatur tenant create` does."
        ),
    ] = None,
    expires_at: ExpiresAt = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Make an API key; it is shown once.

    [bold]owner[/bold] uploads and erases tables, [bold]analyst[/bold] orders
    releases, [bold]reader[/bold] samples what is published.

    Examples:
    [cyan]imprimatur key create anna[/cyan]
    [cyan]imprimatur key create press --scope reader[/cyan]
    [cyan]imprimatur key create boss --tenant "Second Office"[/cyan]
    """
    if tenant is not None:
        made: dict[str, Any] = {
            "tenant": tenant,
            "scope": "owner",
            "key": server.needed("making a tenant").create_tenant(data, tenant),
        }
    else:
        with connect(url, key, data) as client:
            made = client.create_key(name, scope, expires_at=expires_at) | {"name": name, "scope": scope}
    _print_new_key(made, as_json=as_json)


@app.command("replace")
def replace_key(
    key_id: KeyId,
    overlap_hours: Annotated[
        float, typer.Option(min=0, help="How long the old key still works; 0: it ends at once.")
    ] = 24,
    expires_at: ExpiresAt = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Make a key of the same name and scope in place of an old one.

    Replace your own key now and then, and at once when somebody else has seen
    it. The key in DATA/admin.key is replaced there by hand.

    Example:
    [cyan]imprimatur key replace KEY_ID --overlap-hours 0[/cyan]
    """
    with connect(url, key, data) as client:
        made = client.replace_key(key_id, overlap_seconds=round(overlap_hours * 3_600), expires_at=expires_at)
    _print_new_key(made, as_json=as_json)


def _print_new_key(made: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(made)
    else:
        note("This key is shown once:")
        console().print(made["key"], markup=False)
        note("next: IMPRIMATUR_API_KEY=KEY imprimatur datasets")


@app.command("list")
def list_keys(url: Url = None, key: Key = None, data: Data = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Keys of your tenant, without their secrets."""
    with connect(url, key, data) as client:
        found = client.keys()
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (k["id"], k["name"], k["scope"], age(k["created_at"]), *((k[end] or "")[:19] for end in ENDS)) for k in found
    ]
    print_table(None, ("id", "name", "scope", "created", "expires", "revoked"), rows)
    print_next("imprimatur key replace KEY_ID", "imprimatur key create NAME --scope reader")


@app.command("revoke")
def revoke_key(
    key_id: KeyId,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make a key useless at once."""
    with connect(url, key, data) as client:
        client.revoke_key(key_id)
    notes().print(f"revoked {key_id}")
    note("next: imprimatur audit-log")


def audit_log(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many lines, the newest.")] = 50,
    check: Annotated[bool, typer.Option("--check", help="Check the hash chain of the whole log instead.")] = False,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Who did what with your tenant's keys, newest first.

    Every change, every download, and refusals. An empty key: the service
    itself, or its operator.

    With --check every line is read and its hash computed here: a line that was
    changed, removed or inserted later is found. Note the newest place and its
    hash where the service cannot change them: a log that was rewritten from its
    first line on is consistent in itself, but does not match them.
    """
    with connect(url, key, data) as client:
        lines = list(client.audit_log(None if check else limit))
    if check:
        _check_chain(lines, as_json=as_json)
        return
    if as_json:
        print_json({"items": lines})
        return
    columns = ("key_name", "key_id", "action", "object_kind", "object_id", "outcome")  # an older service sends no name
    rows = [(line["at"][:19], *(line.get(name) or "" for name in columns)) for line in lines]
    print_table(None, ("at", "key", "key id", "action", "object", "id", "outcome"), rows)
    print_next("imprimatur audit-log --check")


def _check_chain(lines: list[dict[str, Any]], *, as_json: bool) -> None:
    from dataclasses import asdict

    from imprimatur.verify.audit import verify_audit

    found = verify_audit(lines)
    if as_json:
        print_json(asdict(found))
    else:
        print_pairs({name: value for name, value in asdict(found).items() if name != "faults"})
    if found.faults:
        raise Failure(f"the audit log was changed: {'; '.join(found.faults)}", Exit.FAILURE, "tampered")
