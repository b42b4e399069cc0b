"""`imprimatur ask`: one question about the private rows, paid and answered."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated, Any

import typer

from imprimatur.cli.connection import DEFAULT_DATA, AsJson, Data, Key, Url, connect
from imprimatur.cli.named import dataset_id_of
from imprimatur.cli.options import DatasetArgument
from imprimatur.cli.output import Exit, Failure, console, note, print_json, print_pairs, print_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from imprimatur.queries import Answer

OF_SEVERAL = {"cross_table", "keys"}
MOST_CELLS = 200
KINDS = ("count", "histogram", "cross_table", "sum", "mean", "quantiles", "arg_max", "median", "keys")
Kind = Annotated[str, typer.Argument(metavar="KIND", help=", ".join(KINDS) + ".")]
Columns = Annotated[
    list[str] | None, typer.Argument(metavar="[COLUMN]...", help="The columns of the question; none for count.")
]
WhereText = Annotated[
    list[str] | None, typer.Option("--where", help="Only such rows: 'age>=65&sex=f'. Several must all hold.")
]
Epsilon = Annotated[float, typer.Option("--epsilon", help="ε of the answer.")]
Probabilities = Annotated[
    str | None, typer.Option("--probabilities", metavar="P,P,...", help="Of quantiles; default 0.25,0.5,0.75.")
]
Bins = Annotated[int | None, typer.Option("--bins", help="Of a range that declares none.")]
Gaussian = Annotated[bool, typer.Option("--gaussian", help="Gaussian noise for counts, geometric by default.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="The price only; nothing is charged.")]


def ask(
    dataset: DatasetArgument,
    kind: Kind,
    columns: Columns = None,
    *,
    epsilon: Epsilon,
    where: WhereText = None,
    probabilities: Probabilities = None,
    bins: Bins = None,
    gaussian: Gaussian = False,
    dry_run: DryRun = False,
    url: Url = None,
    key: Key = None,
    data: Data = DEFAULT_DATA,
    as_json: AsJson = False,
) -> None:
    """Ask about the private rows: charged once, answered with noise. The same question again costs nothing.

    Examples:
    [cyan]imprimatur ask my-table count --where 'age>=65' --epsilon 0.1[/cyan]
    [cyan]imprimatur ask my-table mean age --epsilon 0.2[/cyan]
    """
    question = _question(kind, columns or [], where, {"bins": bins, "noise": "gaussian" if gaussian else None})
    if probabilities is not None:
        question["probabilities"] = _numbers(probabilities)
    with connect(url, key, data) as client:
        dataset_id = dataset_id_of(client, dataset)
        if dry_run:
            quote = client.query(dataset_id, question, epsilon=epsilon, dry_run=True)
            print_json(quote) if as_json else _print_price(quote)
            if not quote["fits"]:
                raise typer.Exit(Exit.OVER_BUDGET)
            return
        (answer,) = client.ask(dataset_id, question, epsilon=epsilon)
    if as_json:
        print_json({**answer.raw, "release_id": answer.release_id, "is_new": answer.is_new})
        return
    _print(answer)


def _question(kind: str, columns: list[str], where: list[str] | None, more: dict[str, Any]) -> dict[str, Any]:
    kind = kind.replace("-", "_")
    if kind not in KINDS:
        raise Failure(f"there is no kind {kind!r}; there are: {', '.join(KINDS)}", Exit.BAD_INPUT, "invalid_input")
    needed = 0 if kind == "count" else 1
    if (kind not in OF_SEVERAL and len(columns) != needed) or (kind in OF_SEVERAL and not columns):
        raise Failure(
            f"{kind} is asked of {'no column' if not needed else 'one column' if kind not in OF_SEVERAL else 'several columns'}",
            Exit.BAD_INPUT,
            "invalid_input",
        )
    said: dict[str, Any] = {"kind": kind}
    if kind in OF_SEVERAL:
        said["columns"] = columns
    elif columns:
        said["column"] = columns[0]
    if where:
        said["where"] = where
    return said | {name: value for name, value in more.items() if value is not None}


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise Failure(
            "--probabilities: numbers with commas between them, like 0.1,0.5", Exit.BAD_INPUT, "invalid_input"
        ) from None


def _print(answer: Answer) -> None:
    """For a person: the value, how far off it may be, and whether it was paid now."""
    shown = {"value": answer.value}
    if answer.interval is not None:
        shown["95 of 100 times within"] = f"{answer.interval[0]} to {answer.interval[1]}"
    known = {"question", "key", "value", "interval", "events", "axes", "shape"}
    shown |= {name.replace("_", " "): value for name, value in answer.raw.items() if name not in known}
    shown["charged"] = "now" if answer.is_new else "before, nothing now"
    shown["release"] = answer.release_id
    axes = answer.raw.get("axes")
    if axes:
        _print_cells(axes, shown.pop("value"))
    print_pairs({name: str(value) for name, value in shown.items()})


def _print_cells(axes: Sequence[Mapping[str, Any]], counts: Sequence[int]) -> None:
    """Counts beside what they are of; the last column changes fastest."""
    rows = [(*cell, count) for cell, count in zip(itertools.product(*map(_cells, axes)), counts, strict=True)]
    print_table(None, (*(axis["column"] for axis in axes), "rows"), rows[:MOST_CELLS])
    if len(rows) > MOST_CELLS:
        note(f"{len(rows):,} counts; --json has all of them")


def _cells(axis: Mapping[str, Any]) -> list[str]:
    edges = axis.get("edges")
    known = (
        [str(value) for value in axis["values"]]
        if edges is None
        else [f"{low:g} to under {high:g}" for low, high in itertools.pairwise(edges)]
    )
    return [*known, *(["missing"] if axis["missing"] else [])]


def _print_price(quote: Mapping[str, Any]) -> None:
    """For a person: how far off it will be, what it costs, or that it was asked before."""
    for sentence in quote.get("forecast") or ():
        console().print(sentence, markup=False, highlight=False)
    price = quote["price"]
    if price is None:
        print_pairs({"price": "nothing: it was asked before"})
        return
    print_pairs(
        {"price": f"ε = {price['epsilon']:.6g}, δ = {price['delta']:.3g}", "fits": "yes" if quote["fits"] else "no"}
    )
