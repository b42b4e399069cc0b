"""What is promised about a release, for programs, for people, and as an entry of a public registry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from imprimatur.cli.connection import DEFAULT_DATA, Data, Key, Url, connect
from imprimatur.cli.named import release_id_of
from imprimatur.cli.options import Output
from imprimatur.cli.output import Exit, Failure, echo, print_json
from imprimatur.cli.results import save_json
from imprimatur.wording import run_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from imprimatur.client import Client
    from imprimatur.registry import Owner

CertificateFormat = Literal["json", "registry", "text"]
ALWAYS = {
    "format",
    "release_id",
    "unit",
    "epsilon",
    "delta",
    "dataset_budget",
    "ledger_entry",
    "issued_at",
    "public_key",
    "method",
    "units",
    "adjacency",
    "noise",
    "code_version",
    "accountant",
    "pld",
    "renyi",
    "schema_source",
}
"""Fields that certificates of every format have."""


Format = Annotated[
    CertificateFormat, typer.Option("--format", help="json: signed; text: for people; registry: OpenDP's YAML.")
]
ReleaseOrFile = Annotated[
    str,
    typer.Argument(
        metavar="RELEASE|FILE", help="A release's name or id, or its beginning; certificate.json; or generator.zip."
    ),
]
Curators = Annotated[
    list[str] | None, typer.Option("--curator", help="Who publishes the data product; may be repeated.")
]
IntendedUse = Annotated[str | None, typer.Option("--intended-use", help="What the data product is for.")]
Region = Annotated[str | None, typer.Option("--region", help="The region it describes, or whose law applies.")]
Sector = Annotated[
    str | None,
    typer.Option("--sector", help="Technology, Healthcare, Education, Government, Energy or Finance."),
]
Justification = Annotated[
    str | None, typer.Option("--justification", help="Why this unit, this ε and δ, and this method.")
]
ProductName = Annotated[str | None, typer.Option("--name", help="Of the data product; default: the release's id.")]
Authors = Annotated[list[str] | None, typer.Option("--author", help="Who filled the entry in; default: the curator.")]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Say 'to be filled in by the curator' where something is not given.")
]


def certificate(
    release: ReleaseOrFile,
    format_: Format = "json",
    output: Output = None,
    curator: Curators = None,
    intended_use: IntendedUse = None,
    region: Region = None,
    sector: Sector = None,
    justification: Justification = None,
    name: ProductName = None,
    author: Authors = None,
    allow_missing: AllowMissing = False,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """What exactly is promised about a release.

    --format registry writes an entry for OpenDP's registry of deployments of
    differential privacy. You give what no service knows: --curator,
    --intended-use, --region, --sector, --justification; nothing of it is kept.

    Examples:
    [cyan]imprimatur certificate 7f1c… -o certificate.json[/cyan]
    [cyan]imprimatur certificate generator.zip --format text[/cyan]
    [cyan]imprimatur certificate 7f1c… --format registry --curator "City of X" …[/cyan]
    """
    typed = {
        "curator": tuple(curator or ()),
        "intended_use": intended_use,
        "region": region,
        "sector": sector,
        "justification": justification,
    }
    if format_ != "registry":
        _refuse_unused(typed | {"name": name, "author": author, "allow_missing": allow_missing}, format_)
        found = _read(release, url, key, data)
        if format_ == "text":
            _write("\n".join(as_text(found)) + "\n", output)
        elif output is None:
            print_json(found)
        else:
            save_json(found, output)
        return
    owner = owner_of(typed, name, tuple(author or ()), allow_missing=allow_missing)
    _write(_as_entry(_read(release, url, key, data), owner), output)


def _as_entry(certificate: Mapping[str, Any], owner: Owner) -> str:
    from imprimatur.registry import UnknownSector, entry_of, to_yaml

    try:
        return to_yaml(entry_of(certificate, owner))
    except UnknownSector as error:
        raise Failure(str(error), Exit.BAD_INPUT, "invalid_input", where="sector") from None


def as_text(certificate: Mapping[str, Any]) -> list[str]:
    """The certificate in sentences. One of format 1 says less."""
    whole, entry = certificate["dataset_budget"], certificate["ledger_entry"]
    lines = [
        f"Release {certificate['release_id']}, method {certificate['method']}, issued {certificate['issued_at']}",
        f"Promise: (ε, δ) = ({certificate['epsilon']:.6g}, {certificate['delta']:.3g})-differential privacy",
        f"Protected unit: {certificate['unit']}; {certificate['units']:,} units",
        f"Neighbouring datasets: {certificate['adjacency']}",
        f"Budget of the dataset, for all releases together: (ε, δ) = ({whole['epsilon']:g}, {whole['delta']:g})",
    ]
    lines += [f"Warning: {warning}" for warning in certificate.get("warnings", [])]
    lines += [f"Forecast: {sentence}" for sentence in certificate.get("forecast", {}).get("sentences", [])]
    if "other_releases" in certificate:
        others = certificate["other_releases"]
        lines.append(
            f"Other releases of the same data by then: {others['charged']} charged, {others['pending']} reserved, "
            f"ε = {others['epsilon']:.6g}; with this one ε = {others['with_this']['epsilon']:.6g}"
        )
    for each in certificate.get("mechanisms", []):
        lines.append(f"Mechanism ({each['purpose']}): {each['releases']}")
        lines.append(
            f"  {each['mechanism']}; sensitivity ({each['sensitivity']['norm']}): {each['sensitivity']['of_one_unit']}"
        )
        lines += [
            f"  {run_in_words(run, digits=6)}, Rényi divergence {run['renyi_divergence']:.6g}" for run in each["runs"]
        ]
    lines.append(f"Noise: {certificate['noise']}")
    lines += [f"Trust model: {certificate['trust_model']}"] if "trust_model" in certificate else []
    lines += [f"Not protected: {sentence}" for sentence in certificate.get("not_protected", [])]
    lines += [f"Not modelled: {each['column']!r}: {each['becomes']}" for each in certificate.get("not_modelled", [])]
    lines += [f"Audit: {certificate['audit']['says']}"] if "audit" in certificate else []
    return [
        *lines,
        f"Charged by ledger entry {entry['seq']}, hash {entry['hash']}",
        f"Made by Imprimatur {certificate['code_version']}, {certificate['accountant']}; signed (Ed25519) by {certificate['public_key']}",
    ]


def _read(release: str, url: str | None, key: str | None, data: Path) -> dict[str, Any]:
    return read_certificate_of(release, url, key, data)[0]


def read_certificate_of(
    release: str,
    url: str | None,
    key: str | None,
    data: Path,
    named: Callable[[Client, Mapping[str, Any]], Any] = lambda _, __: None,
) -> tuple[dict[str, Any], Any]:
    """The certificate in a file, or of a release of the service; of the latter, what `named` finds out, too."""
    if Path(release).is_file():
        from imprimatur.cli.verification import read_certificate

        found = read_certificate(Path(release))
        if not found.keys() >= ALWAYS:
            raise Failure(f"{release} is not a certificate of this service", Exit.BAD_INPUT, "invalid_input")
        return found, None
    with connect(url, key, data) as client:
        found = client.certificate(release_id_of(client, release))
        return found, named(client, found)


def owner_of(typed: Mapping[str, Any], name: str | None, authors: tuple[str, ...], *, allow_missing: bool) -> Owner:
    """What was typed; what is missing is refused, or named in the entry and on standard error."""
    from imprimatur.registry import TO_BE_FILLED_IN, Owner

    missing = [field for field, value in typed.items() if not value]
    options = ", ".join(_option(field) for field in missing)
    if missing and not allow_missing:
        raise Failure(
            f"the registry asks its curator for {options}: give them, or --allow-missing to fill them in later",
            Exit.USAGE,
            "missing_fields",
            missing=missing,
        )
    if missing:
        typer.echo(f"warning: left to be filled in: {options}", err=True)
    return Owner(
        curators=typed["curator"] or (TO_BE_FILLED_IN,),
        intended_use=typed["intended_use"] or TO_BE_FILLED_IN,
        region=typed["region"] or TO_BE_FILLED_IN,
        sector=typed["sector"] or None,  # only listed ones are allowed there: left out
        justification=typed["justification"] or TO_BE_FILLED_IN,
        name=name,
        authors=authors,
    )


def _refuse_unused(given: Mapping[str, Any], format_: str) -> None:
    unused = ", ".join(_option(field) for field, value in given.items() if value)
    if unused:
        raise typer.BadParameter(f"{unused}: only with --format registry, not with {format_}", param_hint="--format")


def _option(field: str) -> str:
    return "--" + field.replace("_", "-")


def _write(text: str, output: Path | None) -> None:
    if output is None or str(output) == "-":
        echo(text, nl=False)
        return
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
