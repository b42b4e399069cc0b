"""What can be known before an order is paid: outputs, formats, conditions, names and budgets.

An order is charged when it is placed. What would fail after that for a reason of its own is looked for here, by
`imprimatur.publish` and by the command of that name. Every refusal is an `InvalidInput` that says what to write instead.
"""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprimatur.declarations import constraints_declared
from imprimatur.errors import NameTaken
from imprimatur.formats import chosen_format, invalid
from imprimatur.streams import file_behind
from imprimatur.where import check_where

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from imprimatur.formats import SampleFormat


def check_before_paying(
    schema: Mapping[str, Any],
    *,
    output: str | Path | None = None,
    other_outputs: Iterable[str | Path] = (),
    format: str | None = None,  # noqa: A002 - the API's own word
    where: Mapping[str, Any] | str | Sequence[str] | None = None,
    rows: int | None = None,
    source: str | Path | None = None,
) -> SampleFormat | None:
    """Check everything that needs no service; the format that the sample will have, None for the service's own.

    `output`: the file of the sample; None or `-`: no file. `other_outputs`: more files that will be written, such as a
    generator or a certificate. `source`: the private file, which no output may replace.
    """
    sample = None if output is None or str(output) == "-" else Path(output)
    chosen = chosen_format(format, sample, schema)
    files = [*([] if sample is None else [sample]), *map(Path, other_outputs)]
    for number, file in enumerate(files):
        if any(_same(file, other) for other in files[:number]):
            raise invalid("output", f"{file}: two outputs would be written here; give each a name of its own")
        if source is not None and _same(file, Path(source)):
            raise invalid("output", f"{file}: this is the private file itself; give another name")
        check_writable(file)
    if rows is not None and rows < 0:
        raise invalid("rows", f"{rows} rows cannot be drawn; give 0 or more")
    check_where(where, schema)
    return chosen


def check_output(output: Path | None, source: Path) -> None:
    """Whether a file that is made from a private one can be written, and is another; before anything is read or asked."""
    if output is None:
        return
    if _same(output, source) or (
        source.is_dir() and output.exists() and Path(source).resolve() in output.resolve().parents
    ):
        raise invalid("output", f"{output}: this is the private file itself; give another name")
    check_writable(output)


def check_writable(file: Path) -> None:
    """Whether the file can be made, in folders that are made where they are missing; leaves nothing behind."""
    try:
        file = file_behind(file)
        folder = file.parent
        if file.is_dir():
            raise invalid("output", f"{file}: this is a folder; give the name of a file in it")
        while not folder.exists():
            folder = folder.parent
        if folder == file.parent:
            trial = file.with_name(f".{file.name}.unfinished")  # as the sample itself is begun
            existed = trial.exists()
            with trial.open("ab"):
                pass
            if not existed:
                trial.unlink()
        else:
            with tempfile.TemporaryFile(dir=folder):
                pass
    except (OSError, ValueError) as error:  # ValueError: a NUL in a name
        why = getattr(error, "strerror", None) or str(error)
        raise invalid("output", f"{file}: no file can be written here: {why}") from None


def check_name(datasets: Iterable[Mapping[str, Any]], name: str, schema: Mapping[str, Any]) -> None:
    """Raise `NameTaken` where a dataset that was declared otherwise has the name: afterwards it would name two.

    One that was declared alike is let through: it may hold the same rows, which the service finds out.
    """
    for dataset in datasets:
        if dataset["name"] == name and not declare_alike(dataset["schema"], schema):
            raise NameTaken(
                422,
                "name_taken",
                f"dataset {dataset['id']} is named {name!r}, too, and was declared otherwise; give another name, or order from that one",
                {"dataset_id": dataset["id"], "where": "name"},
            )


def check_known_budget(dataset: Mapping[str, Any], epsilon: float | None, delta: float | None = None) -> None:
    """Refuse a budget that would be ignored because the rows are known and keep the one that they were given first.

    `epsilon`, `delta`: those that were asked for in so many words; None: none was.
    """
    for word, asked in (("epsilon", epsilon), ("delta", delta)):
        kept = dataset[word]
        if asked is not None and not math.isclose(asked, kept, rel_tol=1e-9):
            raise invalid(
                word,
                f"these rows have a budget of {word} {kept:g} for ever, as dataset {dataset['id']}: a budget of {asked:g} would be ignored; "
                f"leave it out, or give {kept:g}",
            )


def _same(one: Path, other: Path) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return one.samefile(other)  # a hard link, or another spelling where case does not matter
    except (OSError, ValueError):
        return False


def declare_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether names, types and constraints are the same; titles and descriptions do not matter."""
    if one.get("type") == "image" or other.get("type") == "image":
        return dict(one) == dict(other)
    return _domains(one) == _domains(other)


def _domains(schema: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    fields = [field for field in schema.get("fields", []) if isinstance(field, dict)]
    return [(field.get("name"), field.get("type"), _without_defaults(field)) for field in fields]


def _without_defaults(field: Mapping[str, Any]) -> dict[str, Any]:
    constraints = constraints_declared(field)
    return {name: value for name, value in constraints.items() if value is not None and value is not False}
