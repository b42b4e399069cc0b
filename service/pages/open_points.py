"""What is still to be said or mended of a declaration, all of it together; and, where nothing is, the declaration as it is published."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from imprimatur.draft_marks import is_marked
from service.base.errors import DraftSchema, ImprimaturError, InvalidInput
from service.base.messages import Message
from service.base.text import read_json, some_of, ungrouped
from service.domain.image_schema import is_image_schema, parse_schema
from service.domain.privacy_unit import parse_privacy_unit
from service.pages.apart import require_apart
from service.pages.declaring import fields_of, from_text, is_to_be_ticked, undrafted
from service.pages.purchases import require_purchases
from service.pages.typed_domains import require_domains
from service.pages.typed_values import refuse_ambiguous

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_NAMES_SAID = 5


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """One thing that is missing or wrong."""

    error: ImprimaturError
    at: str | None
    """The part of the page where it is mended; None where the words alone tell."""


def open_points(filled: Mapping[str, Any], draft: Mapping[str, Any]) -> list[OpenPoint]:
    """In the order of the page. `draft` is private: what it says of the rows is asked here, and is not in what is published."""
    if (text := filled.get("json_text")) is not None:
        return _raised(None, partial(_refuse_json, text))
    points = _of_columns(filled) + _of_unit(filled, draft)
    if not points:  # of which it would say some again, in other words
        points = _of_schema(filled)
    if filled.get("declared"):
        return points
    why = Message("Go through the columns, and tick at the end that this is your declaration: a schema is public")
    return [*points, OpenPoint(DraftSchema(why, where="schema"), "declared")]


def declaration_of(filled: Mapping[str, Any], draft: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Schema and privacy unit as they are published. Raises the first of the open points."""
    for point in open_points(filled, draft):
        raise point.error
    return undrafted(_document_of(filled)), _unit_of(filled)


def _raised(at: str | None, check: Callable[[], object]) -> list[OpenPoint]:
    try:
        check()
    except ImprimaturError as error:
        return [OpenPoint(error, at)]
    return []


def _refuse_json(text: str) -> None:
    if from_text(text) is not None:
        raise InvalidInput(
            Message(
                "The JSON was changed and is not in use yet: press the button below it, or put the former JSON back"
            ),
            where="schema",
        )
    read_json(text, "schema")
    raise InvalidInput(Message("schema: the JSON must be an object"), where="schema")


# -- columns ------------------------------------------------------------------------------------------------------------


def _kept_of(filled: Mapping[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Place on the page and declaration of every column but the one that says whose a row is."""
    said = filled["unit"]
    owner = said.get("column") if said.get("several") == "yes" else None
    return [
        (place, field)
        for place, field in enumerate(fields_of(filled["document"]))
        if not owner or field.get("name") != owner
    ]


def _of_columns(filled: Mapping[str, Any]) -> list[OpenPoint]:
    if is_image_schema(filled["document"]):
        return []
    kept = _kept_of(filled)
    points = []
    for place, field in kept:
        points += _raised(f"column-{place}", partial(_check, field))
    unticked = [(place, str(field.get("name", ""))) for place, field in kept if is_to_be_ticked(field)]
    if unticked:
        points.append(OpenPoint(_unticked([name for _, name in unticked]), f"column-{unticked[0][0]}"))
    return points


def _check(field: Mapping[str, Any]) -> None:
    for require in (require_purchases, refuse_ambiguous, require_domains):
        require([field])


def _unticked(names: Sequence[str]) -> DraftSchema:
    return DraftSchema(
        Message(
            "%(columns)s: this was read from the rows. Tick that it is public knowledge, or write what is "
            "publicly known instead and tick it then; or leave the column out",
            columns=some_of([repr(name) for name in names], _NAMES_SAID),
        ),
        where="schema",
        columns=names,
    )


def _document_of(filled: Mapping[str, Any]) -> dict[str, Any]:
    document = dict(filled["document"])
    if not is_image_schema(document):
        document["fields"] = [undrafted(field) for _, field in _kept_of(filled)]
    return document


def _of_schema(filled: Mapping[str, Any]) -> list[OpenPoint]:
    """What only the whole schema tells."""
    document = _document_of(filled)
    parsed = document | {"description": None} if is_marked(document) else document
    return _raised(None, partial(parse_schema, parsed))


# -- whose rows they are ------------------------------------------------------------------------------------------------


def _of_unit(filled: Mapping[str, Any], draft: Mapping[str, Any]) -> list[OpenPoint]:
    said = filled["unit"]
    if said.get("several") == "no":
        return _raised("unit", partial(require_apart, said, draft))
    found = []
    if said.get("several") != "yes":
        found.append(Message("Say whether several rows may be about one person"))
    else:
        if not is_image_schema(filled["document"]) and not said.get("column"):
            found.append(Message("Choose the column that says whose row it is"))
        if _most_of(said) < 1:
            found.append(Message("Say in a whole number how many rows one person may have at most"))
    if found:
        return [OpenPoint(InvalidInput(what, where="privacy_unit"), "unit") for what in found]
    return _raised("unit", partial(_unit_of, filled))


def _unit_of(filled: Mapping[str, Any]) -> dict[str, Any] | None:
    said = filled["unit"]
    if said["several"] == "no":
        return None
    missing = {"missing": "own_unit"} if said.get("missing") == "own_unit" else {}
    if is_image_schema(filled["document"]):
        unit = {"max_images_per_unit": _most_of(said), **missing}
    else:
        unit = {"column": said["column"], "max_rows_per_unit": _most_of(said), **missing}
    parse_privacy_unit(unit)
    return unit


def _most_of(said: Mapping[str, str]) -> int:
    """0 where it is no whole number."""
    try:
        return int(ungrouped(said.get("most", "").strip()))
    except ValueError:
        return 0
