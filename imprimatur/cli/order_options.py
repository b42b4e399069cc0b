"""An order from command-line options: the common knobs by name, every knob by --set, or a whole document."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from imprimatur.cli.output import Exit, Failure

Epsilon = Annotated[float | None, typer.Option("--epsilon", help="ε of this release.")]
ShareOf = Annotated[
    str | None, typer.Option("--share", help="Share of the whole budget (0.25) or `rest`, instead of ε.")
]
Method = Annotated[str, typer.Option("--method", help="How the generator is made; `auto`: the service chooses.")]
ConditionOn = Annotated[str | None, typer.Option("--condition-on", help="A categorical column to condition on.")]
Purpose = Annotated[
    str | None,
    typer.Option("--purpose", help="What rows are for: classifiers of a target, or tables, nearer and without one."),
]
Steps = Annotated[int | None, typer.Option("--steps", help="Steps of the named method.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KNOB=VALUE", help="Any other knob, e.g. noise_decay.kind=periodic. Repeatable."),
]
Priority = Annotated[
    int | None,
    typer.Option(
        "--priority",
        min=0,
        max=7,
        help="Which of your key's waiting releases goes first: 0, most urgent, to 7; default 3. Gains nothing over others.",
    ),
]
OrderFile = Annotated[
    str | None, typer.Option("--order", metavar="FILE|JSON", help="A whole order; the other options change it.")
]


def build_order(order: str | None, knobs: list[str] | None, **given: Any) -> dict[str, Any]:
    """The order document; what is not given is left to the method's defaults."""
    document: dict[str, Any] = {"method": given.pop("method"), **(read_json(order, "--order") if order else {})}
    if given.get("share") is not None:
        given["share"] = _share(given["share"])
    document |= {name: value for name, value in given.items() if value is not None}
    for knob in knobs or []:
        name, equals, text = knob.partition("=")
        if not equals:
            raise typer.BadParameter(f"{knob!r} is not KNOB=VALUE", param_hint="--set")
        *parents, last = name.split(".")
        place = document
        for parent in parents:
            place = place.setdefault(parent, {})
            if not isinstance(place, dict):
                raise typer.BadParameter(f"{parent!r} in {knob!r} has no knobs of its own", param_hint="--set")
        place[last] = _value(text)
    if "epsilon" not in document and "share" not in document:
        raise typer.BadParameter("give --epsilon or --share", param_hint="--epsilon / --share")
    try:
        json.dumps(document, allow_nan=False)
    except ValueError:
        raise typer.BadParameter("numbers must be finite") from None
    return document


def read_json(text_or_path: str, option: str) -> dict[str, Any]:
    """A JSON object written out, or in a file."""
    text = text_or_path
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text_or_path).read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(
                f"{option}: cannot read {text_or_path}: {_reason(error)}", Exit.BAD_INPUT, "invalid_input"
            ) from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise Failure(f"{option}: not JSON: {error}", Exit.BAD_INPUT, "invalid_input") from None
    if not isinstance(document, dict):
        raise Failure(f"{option}: a JSON object is needed", Exit.BAD_INPUT, "invalid_input")
    return document


def _share(text: str) -> float | str:
    if text == "rest":
        return text
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a number nor `rest`", param_hint="--share") from None


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or "it is not UTF-8 text"
