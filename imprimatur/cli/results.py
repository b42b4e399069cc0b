"""What a release leaves: rows, the generator, the certificate; and the check that they were not changed."""

from __future__ import annotations

import codecs
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect, find_target
from imprimatur.cli.named import dataset_id_of, release_id_of
from imprimatur.cli.options import (
    ForExcel,
    Format,
    Output,
    ReleaseArgument,
    Rows,
    Seed,
    To,
    ToTable,
    WeightsJson,
    Where,
)
from imprimatur.cli.output import Exit, Failure, console, note, print_json, print_next, print_pairs
from imprimatur.cli.places import check_destination, draw_to, refuse_file_options
from imprimatur.cli.progress import byte_count
from imprimatur.formats import chosen_format
from imprimatur.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from imprimatur.cli.target import Target
    from imprimatur.cli.verification.checks import Checks
    from imprimatur.cli.verification.memory import Memory

Checked = Annotated[
    str | None,
    typer.Argument(metavar="DATASET|FILE", help="A dataset's id or name; certificate.json; or generator.zip."),
]
Certificates = Annotated[
    list[Path] | None,
    typer.Option("--certificate", metavar="FILE", help="A certificate, or generator.zip; several are compared."),
]
PublicKeys = Annotated[
    list[str] | None,
    typer.Option("--public-key", metavar="KEY", help="The service's signing key, base64, or a file of it; pins it."),
]
KeptHead = Annotated[
    str | None,
    typer.Option("--head", metavar="HEAD", help="A head of the log from before, JSON as verify shows it, or a file."),
]


def sample(
    release_id: ReleaseArgument,
    rows: Rows = 1_000,
    output: Output = None,
    format_: Format = None,
    where: Where = None,
    weights: WeightsJson = None,
    seed: Seed = None,
    for_excel: ForExcel = False,
    to: To = None,
    table: ToTable = "synthetic",
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Draw synthetic rows of a published release: any number, free of charge.

    --to writes a new table of a database (PostgreSQL, SQLite, DuckDB; --table
    names it) or an object of S3, GCS or Azure (format by its ending).

    Examples:
    [cyan]imprimatur sample 7f1c… --rows 100000 -o rows.parquet[/cyan]
    [cyan]imprimatur sample 7f1c… -n 10 --where 'age>=65&sex=f' --seed 7[/cyan]
    [cyan]imprimatur sample my-table/first -n 5000 --to postgresql://user@host/db --table synthetic[/cyan]
    """
    wanted: dict[str, Any] = {"where": where, "weights": weights_of(weights), "seed": seed}
    if to is not None:
        refuse_file_options(output, format_, for_excel=for_excel)
        check_destination(to, table)
        with connect(url, key, data) as client:
            draw_to(client, release_id_of(client, release_id), rows, wanted, to, table)
        return
    wanted["format"] = chosen_format(format_, None if output is None or str(output) == "-" else output)
    wanted |= as_excel_wants(wanted["format"]) if for_excel else {}
    with connect(url, key, data) as client:
        release_id = release_id_of(client, release_id)
        if output is None or str(output) == "-":
            with client.sample(release_id, rows, **wanted) as chunks:
                write_to_stdout(chunks)
            return
        with byte_count("Drawing rows") as report:
            size = client.save_sample(release_id, output, rows, on_bytes=report, **wanted)
    note(f"{output}: {rows} rows, {size} bytes")
    note(f"next: imprimatur explain {release_id[:8]}")


def download(
    release_id: ReleaseArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where the ZIP goes.")] = Path("generator.zip"),
    certificate: Annotated[Path | None, typer.Option("--certificate", help="Save the certificate here, too.")] = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """The trained generator as a ZIP that works without this project (numpy and onnxruntime draw from it).

    Example:
    [cyan]imprimatur download 7f1c… -o generator.zip && unzip generator.zip -d g[/cyan]
    [cyan]cd g && python sample.py --rows 1000[/cyan]
    """
    with connect(url, key, data) as client:
        release_id = release_id_of(client, release_id)
        size = client.save_generator(release_id, output)
        if certificate is not None:
            save_json(client.certificate(release_id), certificate)
    facts = {"generator": str(output), "bytes": size}
    if certificate is not None:
        facts["certificate"] = str(certificate)
    if as_json:
        print_json(facts)
    else:
        print_pairs(facts)
        print_next(f"imprimatur verify {output}")


def verify(
    target: Checked = None,
    certificates: Certificates = None,
    public_keys: PublicKeys = None,
    head: KeptHead = None,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Check a ledger, or certificates and the ZIP they belong to.

    A dataset: its hash chain is computed again here, and every entry is looked
    for in the log whose head the service has signed. Files: signature, key,
    each file of the ZIP, ledger entry and place in the log; of two or more,
    that nothing in the log was rewritten between them. This needs no service.

    [bold]verified[/bold] is said only of what was held against something outside the
    service: a key you name or that is pinned, a head or a ledger remembered
    from an earlier verify (IMPRIMATUR_CONFIG, ~/.config/imprimatur), or
    --head. At the first time there is nothing: [bold]consistent[/bold], exit code 8, and
    the key and the head are kept for the next time. A certificate without a
    service and a key you know is [bold]self-signed[/bold], exit code 7: anybody can
    make one. Exit code 1 when anything is wrong.

    Examples:
    [cyan]imprimatur verify my-table[/cyan]
    [cyan]imprimatur verify generator.zip --public-key KEY[/cyan]
    [cyan]imprimatur verify --certificate a.json --certificate b.json --public-key KEY[/cyan]
    """
    from imprimatur.cli.verification import Result, known_head, known_key

    known = [known_key(each) for each in public_keys or []]
    named = None if head is None else known_head(head)
    files = list(certificates or [])
    if target is not None and Path(target).is_file():
        files.insert(0, Path(target))
        target = None
    if (target is None) == (not files):
        raise typer.BadParameter("give either a dataset or certificates", param_hint="DATASET|FILE")
    service = find_target(url, key, data)
    memory = None if service is None else _remembered(service)
    if target is None:
        from imprimatur.cli.verification import verify_certificates

        checks = verify_certificates(files, service, known, memory, named)
    else:
        from imprimatur.cli.verification import verify_in_log, verify_ledger

        with connect(url, key, data) as client:
            dataset_id = dataset_id_of(client, target)
            checks = verify_ledger(client, dataset_id)
            checks.add(verify_in_log(client, dataset_id, known, memory, named))
    _keep(checks, memory)
    _print_checks(checks, as_json=as_json)
    codes = {Result.FAILED: Exit.FAILURE, Result.SELF_SIGNED: Exit.SELF_SIGNED, Result.CONSISTENT: Exit.CONSISTENT}
    if checks.result in codes:
        raise typer.Exit(codes[checks.result])


def _remembered(service: Target) -> Memory:
    from imprimatur.cli.verification.memory import Memory

    return Memory.of(service.service)


def _keep(checks: Checks, memory: Memory | None) -> None:
    """What held is remembered, where something was learned; a fault is no lesson."""
    if memory is None or checks.faults:
        return
    try:
        memory.save()
    except OSError as error:
        checks.notes.append(f"nothing is remembered for the next time: {memory.path}: {error.strerror}")
        return
    if checks.head is not None:
        checks.notes.append(f"key and head are remembered in {memory.path}: the next verify compares with them")


def _print_checks(checks: Checks, *, as_json: bool) -> None:
    if as_json:
        print_json(checks.to_json())
        return
    for word, passed in checks.held:
        print_pairs({word.value: passed})
    for fault in checks.faults:
        print_pairs({"FAILED": fault})
    for remark in checks.notes:
        print_pairs({"note": remark})
    if checks.head is not None and not checks.faults:
        print_pairs({"keep this head": json.dumps(checks.head.to_json(), separators=(",", ":"))})
    console().print(checks.statement, soft_wrap=True, markup=False)


def weights_of(text: str | None) -> dict[str, Any] | None:
    """A JSON object."""
    if text is None:
        return None
    try:
        weights = json.loads(text)
    except ValueError:
        weights = None
    if not isinstance(weights, dict):
        raise typer.BadParameter('give JSON like {"sex": "uniform"}', param_hint="--weights")
    return weights


def as_excel_wants(format_: str | None) -> dict[str, str]:
    """The format that `--for-excel` asks for; `format_`: what the other options name."""
    if format_ not in {None, "csv", "excel"}:
        raise typer.BadParameter(f"it is for CSV, which {format_} is not", param_hint="--for-excel")
    return {"format": "excel"}


def write_to_stdout(chunks: Iterator[bytes]) -> None:
    """Bytes as they come, on a terminal as text that is seen; a reader that has had enough (`| head`) ends it quietly."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    is_seen = sys.stdout.isatty()
    try:
        for chunk in chunks:
            sys.stdout.buffer.write(visible(decoder.decode(chunk), keep="\r\n\t").encode() if is_seen else chunk)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        sys.stderr.close()  # Python would complain once more at exit
        raise typer.Exit(Exit.OK) from None


def save_json(document: Any, path: Path) -> None:
    """A JSON document into a file, for people to read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", Exit.BAD_INPUT, "invalid_input") from None
