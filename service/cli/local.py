"""Everything on this machine: `up`, `demo`, and keys made directly in a data directory."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from service.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect, running_in
from service.cli.output import Exit, Failure, console, note, notes, print_json, print_pairs, print_table

if TYPE_CHECKING:
    from types import FrameType

DEFAULT_PORT = 8000
ENDS = ("expires_at", "revoked_at")

KeyId = Annotated[str, typer.Argument(help="From `imprimatur key list`.")]
ExpiresAt = Annotated[
    str | None, typer.Option("--expires-at", metavar="MOMENT", help="Works until then: 2027-01-31T00:00:00Z.")
]

keys = typer.Typer(
    no_args_is_help=True,
    help="Make, list, replace and revoke API keys; replace the signing key.",
    rich_markup_mode="rich",
)


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
    stack = EmbeddedStack(data, port, on_part=lambda part: note(f"starting {part}"))

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()
        stack.request_stop()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    try:
        stack.start()
        facts = {"url": stack.url, "key_file": str(data / "admin.key"), "logs": str(data / "logs")}
        if as_json:
            print_json(facts | {"pids": stack.pids})
        else:
            print_pairs(facts | {"web page": f"{stack.url}/", "API": f"{stack.url}/docs", "stop": "Ctrl-C"})
        stop.wait()
    finally:
        note("stopping")
        stack.stop()


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the three files go.")] = Path("demo-output"),
    table: Annotated[
        Path | None, typer.Option("--table", help="CSV to publish; its schema lies beside it as *.schema.json.")
    ] = None,
    epsilon: Annotated[float, typer.Option(help="ε of the release.")] = 4.0,
    budget_epsilon: Annotated[float, typer.Option(help="ε of the table, given once.")] = 5.0,
    steps: Annotated[int | None, typer.Option(help="Fitting steps; default: the method's.")] = None,
) -> None:
    """Publish the example table from start to end, on a service of its own that is gone afterwards.

    Shows the training, the first synthetic rows, the budget before and after,
    the certificate, and a second order that is refused. Leaves synthetic.csv,
    generator.zip and certificate.json. About two minutes on two cores.
    """
    from service.local.demo import run_demo

    run_demo(output=output, table=table, epsilon=epsilon, budget_epsilon=budget_epsilon, steps=steps)


@keys.command("create")
def create_key(
    name: Annotated[str, typer.Argument(help="Whose key this is.")],
    scope: Annotated[Literal["owner", "analyst", "reader"], typer.Option(help="What it may do.")] = "analyst",
    tenant: Annotated[
        str | None, typer.Option(help="Make a new tenant of this name with its first owner key, on --data's database.")
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
        made: dict[str, Any] = {"tenant": tenant, "scope": "owner", "key": _create_tenant(data, tenant)}
    else:
        with connect(url, key, data) as client:
            made = client.create_key(name, scope, expires_at=expires_at) | {"name": name, "scope": scope}
    _print_new_key(made, as_json=as_json)


@keys.command("replace")
def replace_key(
    key_id: KeyId,
    overlap_hours: Annotated[float, typer.Option(min=0, help="How long the old key still works; 0: not at all.")] = 24,
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


@keys.command("list")
def list_keys(url: Url = None, key: Key = None, data: Data = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Keys of your tenant, without their secrets."""
    with connect(url, key, data) as client:
        found = client.keys()
    if as_json:
        print_json({"items": found})
        return
    rows = [
        (k["id"], k["name"], k["scope"], k["created_at"][:19], *((k[end] or "")[:19] for end in ENDS)) for k in found
    ]
    print_table(None, ("id", "name", "scope", "created", "expires", "revoked"), rows)


@keys.command("revoke")
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


@keys.command("replace-signing")
def replace_signing_key(
    lost: Annotated[
        bool, typer.Option("--lost", help="The old key is lost, or others have it: it does not endorse the new one.")
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
    from service.local import EmbeddedStack
    from service.platform.database import migrate
    from service.upkeep.installation import migration_url
    from service.upkeep.installation import replace_signing_key as replace

    stack = EmbeddedStack(data, 0)
    if running_in(data) is not None:
        made = replace(stack.settings(), lost=lost)
    elif (data / "postgres").is_dir():
        with stack.database_alone() as settings:
            migrate(migration_url(settings))
            made = replace(settings, lost=lost)
    else:
        raise Failure(f"there is no service in {data}", Exit.UNAVAILABLE, "unreachable")
    facts = {"key_id": made.id, "public_key": made.public_key}
    if as_json:
        print_json(facts)
    else:
        print_pairs(facts)


def audit_log(
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many lines, the newest.")] = 50,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Who did what with your tenant's keys, newest first.

    Every change, every download, and refusals. An empty key: the service
    itself, or whoever runs it.
    """
    with connect(url, key, data) as client:
        lines = list(client.audit_log(limit))
    if as_json:
        print_json({"items": lines})
        return
    columns = ("at", "key_id", "action", "object_kind", "object_id", "outcome")
    rows = [(line["at"][:19], *(line[name] or "" for name in columns[1:])) for line in lines]
    print_table(None, ("at", "key", "action", "object", "id", "outcome"), rows)


def _create_tenant(data: Path, tenant: str) -> str:
    """Only somebody with the data directory may do this; no API key can."""
    if running_in(data) is None:
        raise Failure(
            f"no service is running in {data}: start it with `imprimatur up`", Exit.UNAVAILABLE, "unreachable"
        )
    from service.auth.service import create_tenant
    from service.local import EmbeddedStack
    from service.platform.crypto import Secrets
    from service.platform.database import transaction

    settings = EmbeddedStack(data, 0).settings()
    with transaction(settings) as session:
        return create_tenant(session, Secrets.load(settings.secret_key_file), tenant)
