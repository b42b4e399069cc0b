"""What can be known before an order is paid: outputs, formats, conditions, names and budgets.

An order is charged when it is placed. What would fail after that for a reason of its own is looked for here, by
`imprimatur.publish` and by the command of that name. Every refusal is an `InvalidInput` that says what to write instead.
"""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imprimatur.errors import NameTaken
from imprimatur.formats import chosen_format, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from imprimatur.formats import SampleFormat

_SHOWN = 10
_OPERATORS = ("<", ">", "=", "!")


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
    folder = file.parent
    try:
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


def check_where(where: Mapping[str, Any] | str | Sequence[str] | None, schema: Mapping[str, Any]) -> None:
    """Whether each condition is on a declared column and, where that is plain, on a declared value."""
    if not isinstance(where, Mapping):
        for text in [where] if isinstance(where, str) else where or ():
            _check_text(text, schema)
        return
    for column, wanted in where.items():
        if schema.get("type") == "image":
            _check_label(column, wanted, schema)
            continue
        fields = _fields_of(schema)
        if column not in fields:
            raise invalid("where", f"there is no column {column!r}; {_nearest(str(column), list(fields))}")
        if fields[column].get("role") == "ignore":
            raise invalid(
                "where", f"{column!r} stays out of the synthetic rows (role: ignore): no condition can be on it"
            )
        _check_value(column, wanted, fields[column])


def where_texts(where: Mapping[str, Any] | str | Sequence[str] | None) -> list[str]:
    """As the API takes them: one plain condition as COLUMN:VALUE, what a mapping says beyond that as one JSON text."""
    if not isinstance(where, Mapping):
        return [where] if isinstance(where, str) else list(where or ())
    plain = [f"{column}:{text_of(value)}" for column, value in where.items() if _is_plain(value)]
    if len(plain) == len(where) == 1 or not where:
        return plain
    return [json_of(where)]


def json_of(document: Mapping[str, Any]) -> str:
    """JSON, also of dates, of sets, and of the numbers of numpy."""
    return json.dumps(dict(document), ensure_ascii=False, default=_as_json)


def _is_plain(value: Any) -> bool:
    return value is not None and not isinstance(value, Mapping | list | tuple | set | frozenset)


def _as_json(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    number = getattr(value, "item", None)
    return number() if callable(number) else text_of(value)


def _fields_of(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {str(field.get("name")): field for field in schema.get("fields", []) if isinstance(field, dict)}


def _check_text(text: str, schema: Mapping[str, Any]) -> None:
    """COLUMN:VALUE is looked at as a mapping is; of other texts only whether they begin with a column."""
    if text.lstrip().startswith("{"):
        with suppress(ValueError):
            return check_where(json.loads(text), schema)
    names = ["label"] if schema.get("type") == "image" else list(_fields_of(schema))
    begun = sorted((name for name in names if text.lstrip(' "').startswith(name)), key=len)
    if not begun:
        column = re.split(r"\s*(?::|[<>=!]| in\b| not\b| missing\b)", text.strip(), maxsplit=1)[0]
        raise invalid("where", f"there is no column {column!r}; {_nearest(column, names)}")
    name = begun[-1]
    if text.startswith(f"{name}:"):
        check_where({name: text[len(name) + 1 :]}, schema)
    return None


def check_name(datasets: Iterable[Mapping[str, Any]], name: str, schema: Mapping[str, Any]) -> None:
    """Raise `NameTaken` where a dataset that was declared otherwise has the name: afterwards it would name two.

    One that was declared alike is let through: it may hold the same rows, which the service finds out.
    """
    for dataset in datasets:
        if dataset["name"] == name and not _declare_alike(dataset["schema"], schema):
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


def _nearest(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, 3, 0.6) or [each for each in known if each.lower() == name.lower()]
    if near:
        return f"did you mean {' or '.join(repr(each) for each in near)}?"
    return f"the columns are {_some(known)}"


def _some(values: Sequence[Any]) -> str:
    shown = ", ".join(repr(value) for value in values[:_SHOWN])
    return shown if len(values) <= _SHOWN else f"{shown} and {len(values) - _SHOWN} more"


def _check_label(column: str, wanted: Any, schema: Mapping[str, Any]) -> None:
    classes = schema.get("classes")
    if column != "label":
        raise invalid("where", f"there is no column {column!r}; of images a condition is on 'label'")
    names = [str(each) for each in (range(classes) if isinstance(classes, int) else classes or [])]
    if str(wanted) not in names:
        raise invalid("where", f"there is no class {wanted!r}; the classes are {_some(names)}")


def _check_value(column: str, wanted: Any, field: Mapping[str, Any]) -> None:
    """Only a plain value is looked at: lists, ranges and operators are the service's to read."""
    kind, constraints = field.get("type"), field.get("constraints") or {}
    enum = [False, True] if kind == "boolean" else constraints.get("enum")
    if not _is_plain(wanted):
        return
    if enum is None:
        _check_in_range(column, wanted, kind, constraints)
        return
    text = text_of(wanted)
    known = {text_of(value) for value in [*enum, *field.get("trueValues", []), *field.get("falseValues", [])]}
    numbers = {_number(each) for each in known} - {None} if kind in {"integer", "number"} else set()
    if text in known or _number(text) in numbers or text.startswith(_OPERATORS):
        return
    near = get_close_matches(text, sorted(known), 1, 0.6)
    hint = f"did you mean {near[0]!r}?" if near else f"its values are {_some([text_of(value) for value in enum])}"
    raise invalid("where", f"{column} has no value {text!r}; {hint}")


def _check_in_range(column: str, wanted: Any, kind: Any, constraints: Mapping[str, Any]) -> None:
    number, low, high = (_number(each) for each in (wanted, constraints.get("minimum"), constraints.get("maximum")))
    if kind not in {"integer", "number"} or None in {number, low, high}:
        return
    assert number is not None and low is not None and high is not None  # noqa: S101, PT018 - for mypy
    if not low <= number <= high:
        raise invalid("where", f"{column}: {text_of(wanted)} is outside {low:g} to {high:g}, as declared")


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def text_of(value: Any) -> str:
    """A value of a condition, as the service reads it: booleans in lower case, dates in ISO 8601."""
    if isinstance(value, bool) or type(value).__name__ in {"bool_", "bool"}:
        return str(value).lower()
    moment = getattr(value, "isoformat", None)
    return str(moment()) if callable(moment) else str(value)


def _declare_alike(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether names, types and constraints are the same; titles and descriptions do not matter."""
    if one.get("type") == "image" or other.get("type") == "image":
        return dict(one) == dict(other)
    return _domains(one) == _domains(other)


def _domains(schema: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    fields = [field for field in schema.get("fields", []) if isinstance(field, dict)]
    return [(field.get("name"), field.get("type"), _without_defaults(field)) for field in fields]


def _without_defaults(field: Mapping[str, Any]) -> dict[str, Any]:
    constraints = field.get("constraints") or {}
    return {name: value for name, value in constraints.items() if value is not None and value is not False}
