"""What can be known before an order is paid: outputs, formats, conditions, names and budgets.

An order is charged when it is placed. What would fail after that for a reason of its own is looked for here, by
`imprimatur.publish` and by the command of that name. Every refusal is an `InvalidInput` that says what to write instead.
"""

from __future__ import annotations

import datetime as dt
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

from imprimatur.errors import InvalidInput, NameTaken
from imprimatur.formats import chosen_format, invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from imprimatur.formats import SampleFormat

_SHOWN = 10
_FOLLOWS = re.compile(
    r":|\s*(?:>=|<=|!=|=|<|>)|\s+(?:is\s+)?(?:not\s+)?missing\b|\s+(?:not\s+)?in\s*[\[(]", re.IGNORECASE
)
"""What comes after the name of a column in a condition."""
_MISSING = re.compile(r"\s+(?:is\s+)?missing\s*", re.IGNORECASE)
_HOW = "COLUMN=VALUE, COLUMN>=NUMBER (also !=, <, <=, >), COLUMN in [A, B], COLUMN missing or COLUMN not missing"
_SPELLINGS = ("decimalChar", "groupChar", "prefix", "suffix", "negative")


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
        _check_role(fields[column])
        listed = isinstance(wanted, list | tuple | set | frozenset)
        for each in wanted if listed else [wanted]:
            _check_value(each, fields[column], schema)


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
    """One condition or several that are joined by &; of a value that holds an & itself, what is plainly declared is let through."""
    if text.lstrip().startswith("{"):
        with suppress(ValueError):
            return check_where(json.loads(text), schema)
    fields = {"label": {"name": "label"}} if schema.get("type") == "image" else _fields_of(schema)
    pieces = text.split("&")
    if len(pieces) == 1 or '"' in text or not all(_readings(piece, fields) for piece in pieces):
        return _check_one(text, fields, schema)
    try:
        for piece in pieces:
            _check_one(piece, fields, schema)
    except InvalidInput:
        if not any(_is_declared(rest[1:], fields[name], schema) for name, rest in _readings(text, fields)):
            raise
    return None


def _readings(text: str, fields: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The columns that a condition may be on, and what follows their names: a name may itself hold signs."""
    start = text.lstrip()
    own = [(name, form) for name in fields for form in (name, json.dumps(name, ensure_ascii=False))]
    found = [(name, start[len(form) :]) for name, form in own if start.startswith(form)]
    return [(name, rest) for name, rest in found if _FOLLOWS.match(rest)]


def _check_one(text: str, fields: Mapping[str, Mapping[str, Any]], schema: Mapping[str, Any]) -> None:
    """The column and, where only one can be meant, a value after a colon or an equals sign."""
    readings = _readings(text, fields)
    if not readings:
        column = re.split(r"\s*(?::|[<>=!]| in\b| not\b| is\b| missing\b)", text.strip(), maxsplit=1)[0].strip('"')
        if column in fields:
            raise invalid("where", f"{text!r} is no condition on {column!r}: write {_HOW}")
        raise invalid("where", f"there is no column {column!r}; {_nearest(column, list(fields))}")
    if len(readings) > 1:
        return
    ((name, rest),) = readings
    if schema.get("type") == "image":
        if rest.startswith(":"):
            _check_label(name, rest[1:], schema)
        return
    _check_role(fields[name])
    if _MISSING.fullmatch(rest):
        _check_value(None, fields[name], schema)
    elif rest.startswith(":"):
        _check_value(rest[1:], fields[name], schema)
    elif rest.lstrip().startswith("=") and '"' not in rest:
        _check_value(rest.lstrip()[1:].strip(), fields[name], schema)


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


def _check_role(field: Mapping[str, Any]) -> None:
    """Rows are drawn from what a generator models, and from what follows from that."""
    role = field.get("role")
    if role == "ignore":
        raise invalid(
            "where", f"{field['name']!r} stays out of the synthetic rows (role: ignore): no condition can be on it"
        )
    if role not in {None, "derived"}:
        raise invalid("where", f"{field['name']!r} is made anew for each row (role: {role}): no condition can be on it")


def _check_value(wanted: Any, field: Mapping[str, Any], schema: Mapping[str, Any]) -> None:
    """One value, or None for a missing one. Ranges and operators are the service's to read."""
    column, constraints = field["name"], field.get("constraints") or {}
    if isinstance(wanted, Mapping):
        return
    if wanted is None or text_of(wanted) in _markers(field, schema):
        if constraints.get("required") and field.get("role") is None and not _is_declared(wanted, field, schema):
            raise invalid("where", f"{column} is required: none of its values is missing")
        return
    known = _known(field, schema)
    if known is None:
        _check_in_range(column, wanted, field)
    elif not _is_declared(wanted, field, schema) and not (_is_spelled(field) and _number(wanted) is None):
        text = text_of(wanted)
        near = get_close_matches(text, sorted(map(text_of, known)), 1, 0.6)
        hint = f"did you mean {near[0]!r}?" if near else f"its values are {_some([text_of(value) for value in known])}"
        raise invalid("where", f"{column} has no value {text!r}; {hint}")


def _known(field: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Any] | None:
    """All values that are declared: of a hierarchy the coarse and the fine ones, of a looked-up column those of its table."""
    hierarchy, kind = field.get("hierarchy"), field.get("type")
    enum = (field.get("constraints") or {}).get("enum")
    if hierarchy:
        return [*hierarchy, *(fine for values in hierarchy.values() for fine in values)]
    if kind == "boolean":
        return [False, True, *field.get("trueValues", ()), *field.get("falseValues", ())]
    if enum is not None or field.get("role") != "derived":
        return enum if enum is None else list(enum)
    return _looked_up(str(field["name"]), schema)


def _looked_up(column: str, schema: Mapping[str, Any]) -> list[Any] | None:
    for relation in schema.get("relations") or ():
        if isinstance(relation, dict) and relation.get("column") == column:
            table = relation.get("table") or {}
            return list(dict.fromkeys(table.values() if isinstance(table, dict) else (row[-1] for row in table)))
    return None


def _is_declared(wanted: Any, field: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    known = _known(field, schema) or []
    numbers = {_number(each) for each in known} - {None} if field.get("type") in {"integer", "number"} else set()
    text = text_of(wanted)
    return (
        any(each in map(text_of, known) for each in (text, text.strip(), _unquoted(text))) or _number(text) in numbers
    )


def _unquoted(text: str) -> str:
    with suppress(ValueError):
        return text_of(json.loads(text.strip()))
    return text


def _markers(field: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    """How a missing value is written."""
    own = field.get("missingValues")
    listed = schema.get("missingValues", [""]) if own is None else own
    return [str(each.get("value")) if isinstance(each, dict) else str(each) for each in listed]


def _is_spelled(field: Mapping[str, Any]) -> bool:
    return any(field.get(word) not in {None, ""} for word in _SPELLINGS) or field.get("bareNumber") is False


def _check_in_range(column: str, wanted: Any, field: Mapping[str, Any]) -> None:
    """Against declared ends. How a value is spelled is the service's to read."""
    kind = field.get("type")
    ends = [(field.get("constraints") or {}).get(word) for word in ("minimum", "maximum")]
    is_moment = kind in {"date", "datetime"}
    if not is_moment and (kind not in {"integer", "number"} or (isinstance(wanted, str) and _is_spelled(field))):
        return
    at, low, high = ((_day if is_moment else _number)(each) for each in (wanted, *ends))
    if at is None or low is None or high is None:
        return
    _check_whole(column, kind, at)
    apart = int(kind == "datetime")  # a zone may make it another day
    if not low - apart <= at <= high + apart:
        first, last = ends if is_moment else (f"{low:g}", f"{high:g}")
        raise invalid("where", f"{column}: {text_of(wanted)} is outside {first} to {last}, as declared")


def _check_whole(column: str, kind: Any, number: float) -> None:
    if kind == "integer" and number % 1:
        raise invalid("where", f"{column} holds whole numbers, and {number:g} is none")


def _day(value: Any) -> float | None:
    """The number of the day of a date or a moment, given as itself or in ISO 8601."""
    with suppress(ValueError):
        return dt.datetime.fromisoformat(text_of(value).strip()).toordinal()
    return None


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
