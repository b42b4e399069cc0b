"""`imprimatur demo`: one table, published from start to end on a service of its own, and one order too many."""

from __future__ import annotations

import json
import tempfile
import threading
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprimatur.cli.amounts import in_words
from imprimatur.cli.output import Exit, Failure, console, notes, print_pairs, print_table
from imprimatur.cli.progress import follow

if TYPE_CHECKING:
    from imprimatur import ApiError, Client, Dataset

EXAMPLES = Path(__file__).parents[2] / "examples"
ROWS_SHOWN = 5
CONDITION = "CLASS"
"""The demo conditions on this column where the table has it."""


def run_demo(
    *,
    output: Path,
    table: Path | None,
    epsilon: float,
    budget_epsilon: float,
    steps: int | None = None,
    has_page: bool = False,
) -> None:
    """Start a service, publish, show, and stop the service again; with `has_page` after Ctrl-C."""
    from imprimatur import Client
    from service.local import EmbeddedStack

    table = table or EXAMPLES / "poker_hand.csv"
    schema_file = table.with_suffix(".schema.json")
    if not table.exists() or not schema_file.exists():
        raise Failure(
            f"{table} and {schema_file.name} are needed: run the demo in a checkout, or name a table by --table",
            Exit.BAD_INPUT,
            "invalid_input",
        )
    schema = json.loads(schema_file.read_text(encoding="utf-8"))
    order: dict[str, Any] = {"epsilon": epsilon} | ({} if steps is None else {"method": "marginals", "steps": steps})
    if any(field["name"] == CONDITION for field in schema["fields"]):
        order["condition_on"] = CONDITION
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="imprimatur-demo-") as folder:
        _headline("A service of its own: Postgres, Redis, API, relay and a worker")
        with ExitStack() as running:
            with notes().status("starting") as status:
                stack = EmbeddedStack(Path(folder) / "data", 0, on_part=lambda part: status.update(f"starting {part}"))
                running.enter_context(stack)
            with Client(stack.url, stack.admin_key) as client:
                _publish(client, table, schema, order, output=output, budget_epsilon=budget_epsilon)
            if has_page:
                _stay(stack.url, stack.admin_key)
    _headline("Done")
    print_pairs({name: output / name for name in ("synthetic.csv", "generator.zip", "certificate.json")})


def _stay(url: str, key: str) -> None:
    """Where to look, and by which key: never a key in an address, which browsers and proxies keep."""
    _headline("The web page, until Ctrl-C")
    print_pairs({"publish a table": f"{url}/datasets/new", "datasets": f"{url}/", "key to sign in": key})
    with suppress(KeyboardInterrupt):
        threading.Event().wait()


def _publish(
    client: Client, table: Path, schema: dict[str, Any], order: dict[str, Any], *, output: Path, budget_epsilon: float
) -> None:
    dataset = client.create_dataset(table, schema, epsilon=budget_epsilon, name=table.stem)
    _headline(
        f"{table.name}: {dataset['units']:,} rows, a budget of ε = {dataset['epsilon']:g}, δ = {dataset['delta']:.2g}"
    )
    _show_budget(client, dataset, "before")

    _headline(f"An order: {json.dumps(order)}")
    release = follow(client, client.create_release(dataset["id"], order)["id"])

    client.save_sample(release["id"], output / "synthetic.csv", dataset["units"])
    client.save_generator(release["id"], output / "generator.zip")
    certificate = client.certificate(release["id"])
    text = json.dumps(certificate, ensure_ascii=False, indent=2)
    (output / "certificate.json").write_text(text + "\n", encoding="utf-8")

    _headline(f"Synthetic rows, the first {ROWS_SHOWN} of {dataset['units']:,} in {output / 'synthetic.csv'}")
    _show_rows(output / "synthetic.csv")
    _headline("The budget")
    _show_budget(client, dataset, "after")
    _headline("The certificate")
    for line in certificate_lines(certificate):
        console().print(line, markup=False, soft_wrap=True)

    _headline(f"A second order of ε = {order['epsilon']:g}")
    _refused(client, dataset["id"], order)


def _refused(client: Client, dataset_id: str, order: dict[str, Any]) -> None:
    from imprimatur import ApiError

    try:
        release = client.create_release(dataset_id, order)
    except ApiError as error:
        if error.code != "budget_exhausted":
            raise
        _show_refusal(error, client.budget(dataset_id)["epsilon"])
        return
    client.cancel(release["id"])
    console().print("This one still fits: the demo's budget is larger than its order needs. Cancelled.")


def _show_refusal(error: ApiError, epsilon: float) -> None:
    console().print(f"[bold red]{error.status} {error.code}[/bold red]  {error.detail}")
    left, asked = error.values["remaining"], error.values["requested"]
    names = {"simple": "basic composition", "renyi": "Rényi composition"}
    rows = [
        (name, *(in_words(amounts[kind], kind, epsilon) for amounts in (left, asked))) for kind, name in names.items()
    ]
    print_table(None, ("account", "left", "asked"), rows)


def certificate_lines(certificate: dict[str, Any]) -> list[str]:
    """What is promised, how it was made and paid, and who signed it: a line each."""
    entry, renyi = certificate["ledger_entry"], certificate["renyi"]
    promise = (
        f"({certificate['epsilon']:.4g}, {certificate['delta']:.2g})-differential privacy of {certificate['unit']}"
    )
    proof = f"Rényi divergence {renyi['divergence']:.4g} of order {renyi['order']}, {certificate['accountant']}"
    payment = f"trained by {certificate['method']}, paid by ledger entry {entry['seq']}, hash {entry['hash'][:16]}…"
    return [
        f"{promise}, among {certificate['units']:,}",
        f"{payment}; {proof}",
        f"issued {certificate['issued_at']}, signed (Ed25519) by {certificate['public_key']}",
    ]


def _show_budget(client: Client, dataset: Dataset, when: str) -> None:
    found = client.budget(dataset["id"])
    console().print(
        f"{when}: spent ε = {found['epsilon_spent']:.3g} of {found['epsilon']:g}; "
        f"{found['remaining_share']:.1%} left; the next release at most ε = {found['largest_next_epsilon']:.3g}"
    )


def _show_rows(path: Path) -> None:
    with path.open(encoding="utf-8") as file:
        lines = [line.rstrip("\n").split(",") for line in islice(file, ROWS_SHOWN + 1)]
    print_table(None, tuple(lines[0]), [tuple(line) for line in lines[1:]])


def _headline(text: str) -> None:
    console().print(f"\n[bold]{text}[/bold]")
