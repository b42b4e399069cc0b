"""An order from command-line options: the common knobs by name, every knob by --set, or a whole document."""

from __future__ import annotations

import json
import math
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from imprimatur.cli.output import Exit, Failure
from imprimatur.declarations import PURCHASE
from imprimatur.public_starts import CHOICE, IN_CANDIDATES, KNOB, begun_by

Epsilon = Annotated[float | None, typer.Option("--epsilon", help="ε of this release.")]
ShareOf = Annotated[
    str | None, typer.Option("--share", help="Share of the whole budget (0.25) or `rest`, instead of ε.")
]
Method = Annotated[str, typer.Option("--method", help="How the generator is made; `auto`: the service chooses.")]
ConditionOn = Annotated[str | None, typer.Option("--condition-on", help="A categorical column to condition on.")]
Purpose = Annotated[
    str | None,
    typer.Option(
        "--purpose",
        help="What rows are for: classifiers of a target, or tables, which are more exact and have no target.",
    ),
]
Steps = Annotated[int | None, typer.Option("--steps", help="Steps of the named method.")]
PublicStart = Annotated[
    str | None,
    typer.Option(
        "--public-start",
        metavar="DATASET",
        help="Id, name or beginning of the id of a dataset that was uploaded with --public, of the same columns or images. The generator is trained "
        "on it first, without a price, and may repeat its rows. The method is idpgan unless --method names another; not of choose, whose candidates "
        "name it.",
    ),
]
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
Want = Annotated[
    str | None,
    typer.Option(
        "--want",
        metavar="NAME=NUMBER,…",
        help="How exact counts should be, instead of ε: group=200,within=0.1 (add columns=1 for groups that one column tells), "
        "one_way_tv=0.02, two_way_tv=0.05. Answers with the least ε.",
    ),
]


def read_want(text: str | None) -> dict[str, float] | None:
    """`group=200,within=0.1` as an object; its names are the service's to know."""
    if text is None:
        return None
    want: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = part.strip().partition("=")
        value = _value(f"0{number}" if number.startswith(".") else number)
        if not equals or isinstance(value, bool) or not isinstance(value, int | float):
            raise typer.BadParameter(f"{part.strip()!r} is not NAME=NUMBER, like group=200", param_hint="--want")
        want[name.strip()] = value
    return want


def said_again(order: str | None, knobs: list[str] | None, **options: Any) -> str:
    """The options of an order but its price, as they can be typed again; with a space before each."""
    given = {"--order": order, **{f"--{name.replace('_', '-')}": value for name, value in options.items()}}
    pairs = [(name, value) for name, value in given.items() if value not in {None, "auto"}]
    pairs += [("--set", knob) for knob in knobs or []]
    return "".join(f" {name} {shlex.quote(str(value))}" for name, value in pairs)


def build_order(order: str | None, knobs: list[str] | None, **given: Any) -> dict[str, Any]:
    """The order document; what is not given is left to the method's defaults."""
    document: dict[str, Any] = {"method": given.pop("method"), **(read_json(order, "--order") if order else {})}
    if given.get("share") is not None:
        given["share"] = _share(given["share"])
    document |= {name: value for name, value in given.items() if value is not None}
    if document.get(KNOB) is not None:
        document["method"] = begun_by(document["method"])
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
    _check_public_start(document)
    if not {"epsilon", "share", "want"} & document.keys() and document["method"] != PURCHASE["method"]:
        raise typer.BadParameter(
            "give --epsilon, such as 1, or --share, such as 0.25", param_hint="--epsilon / --share"
        )
    check_epsilon(document.get("epsilon"), "--epsilon")
    try:
        json.dumps(document, allow_nan=False)
    except ValueError:
        raise typer.BadParameter("numbers must be finite") from None
    return document


def _check_public_start(document: dict[str, Any]) -> None:
    if document["method"] == CHOICE and document.get(KNOB) is not None:
        raise typer.BadParameter(IN_CANDIDATES, param_hint="--public-start")


def check_epsilon(epsilon: Any, option: str) -> None:
    """What no service takes is refused before one is started, and before anything is asked."""
    if isinstance(epsilon, int | float) and not (0 < epsilon < math.inf):
        raise typer.BadParameter(f"{epsilon:g} is no ε: give a number above 0, such as 1", param_hint=option)


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
