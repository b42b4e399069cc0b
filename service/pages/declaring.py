"""What an owner fills in of a draft, as a form and as a document. Nothing that was typed is lost, be it right or wrong.

The document is the schema as it stands; a wrong word stays in it until it is mended. A column whose domain was read from
the rows is marked DRAFT, as by `imprimatur schema draft`, until its owner ticks that it is publicly known; a document
with such a mark is not published.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from imprimatur.draft_marks import DRAFT, is_marked
from service.base.errors import InvalidInput
from service.base.text import read_json
from service.domain.field_schema import WORDS_OF_A_DOMAIN, has_at_most
from service.pages.column_form import ROLES, TYPES, ColumnForm
from service.pages.findings import findings_of
from service.pages.purchases import is_bought, own_words, price_of, says_nothing, with_purchase
from service.pages.typed_values import lines_of, shown_texts, text_of, value_of, values_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_WITH_CATEGORIES = ("string", "integer", "number")
_OF_THE_DRAFT = f"{DRAFT}: what stands here was read from the rows and is not declared yet."
_OF_A_RANGE = frozenset({"decimals", "trailingZeros", "bins", "edges"})


def column_forms(document: Mapping[str, Any], draft: Mapping[str, Any]) -> list[ColumnForm]:
    """Every column of the document, beside what was found in the file."""
    shown = []
    places = {name: place for place, name in enumerate(draft["names"])}
    for place, field in enumerate(fields_of(document)):
        name = str(field.get("name", ""))
        at = places.get(name)
        shown.append(
            _form_of(
                place,
                field,
                _markers(document),
                findings=findings_of(draft, name),
                cells=() if at is None else [row[at] for row in draft["rows"]],
            )
        )
    return shown


def fields_of(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The fields of a document that may be anything."""
    found = document.get("fields")
    return [field for field in found if isinstance(field, dict)] if isinstance(found, list) else []


def with_columns(
    document: dict[str, Any], form: Mapping[str, str], set_aside: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The document with what the form says of the columns that it shows.

    `set_aside`: domains of columns that were given a role, by name; they come back with the type.
    """
    if not isinstance(document.get("fields"), list):  # of images, or to be mended as JSON
        return document
    fields = [
        _with_form(field, _form_of(place, field, _markers(document)), form, set_aside)
        for place, field in enumerate(fields_of(document))
    ]
    changed = {**document, "fields": fields}
    if "target" in form:
        changed.pop("target", None)
        changed |= {"target": form["target"]} if form["target"] else {}
    return changed


def as_text(document: Mapping[str, Any]) -> str:
    """The document as text for the field of experts."""
    return json.dumps(document, ensure_ascii=False, indent=2)


def from_text(text: str) -> dict[str, Any] | None:
    """The document that was typed; None where it is none, and `service.pages.open_points` says why."""
    try:
        found = read_json(text, "schema")
    except InvalidInput:
        return None
    return found if isinstance(found, dict) else None


# -- one column ---------------------------------------------------------------------------------------------------------


def _form_of(
    place: int,
    field: Mapping[str, Any],
    markers: Sequence[str],
    findings: Sequence[str] = (),
    cells: Sequence[str | None] = (),
) -> ColumnForm:
    constraints = field.get("constraints")
    constraints = constraints if isinstance(constraints, dict) else {}
    enum = constraints.get("enum")
    enum = enum if isinstance(enum, list) else []
    use = str(field.get("role") or field.get("type", "string"))
    return ColumnForm(
        place=place,
        name=str(field.get("name", "")),
        use=use,
        categories=lines_of(enum, use, field),
        low=text_of(constraints.get("minimum"), use, field),
        high=text_of(constraints.get("maximum"), use, field),
        missing="\n".join(marker for marker in _markers(field, markers) if marker),
        is_required=constraints.get("required") is True,
        is_draft=is_to_be_ticked(field),
        says_nothing=says_nothing(field),
        has_own_words=bool(own_words(field)),
        is_special=any(word in field for word in WORDS_OF_A_DOMAIN - {"constraints", "infer"}),
        category_count=len(enum),
        is_bought=is_bought(field),
        price=price_of(field),
        findings=findings,
        cells=cells,
    )


def _with_form(
    field: dict[str, Any], shown: ColumnForm, form: Mapping[str, str], set_aside: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The field as the form says; word for word as it was where the form says nothing new."""
    prefix = f"c{shown.place}."
    use = form.get(f"{prefix}use")
    if use is None:  # of another part of the list
        return field
    known = shown_texts(field, use)
    if use != shown.use and (use in ROLES or use in TYPES):
        before = set_aside.get(shown.name)
        field = _used_as(field, use, set_aside)
        if field is before and not any(form.get(prefix + word, "").strip() for word in ("categories", "low", "high")):
            return field
    if use in TYPES:
        field = _with_domain(field, shown, form, use, known)
        said = field.get("constraints")
        field = with_purchase(field, shown, form, use, set_aside)
        # What was read and comes back is seen before it is ticked.
        comes_back = shown.is_bought and not is_bought(field) and field.get("constraints") != said
        field = _confirmed(field, is_public=bool(form.get(f"{prefix}public")) and not comes_back)
    return field


def _used_as(field: dict[str, Any], use: str, set_aside: dict[str, dict[str, Any]]) -> dict[str, Any]:
    name = str(field.get("name", ""))
    if use in ROLES:
        if not field.get("role"):  # of one that was to be bought, what was set aside then
            set_aside.setdefault(name, field)
        return {"name": name, "type": "string", "role": use}
    before = set_aside.get(name)
    if before is not None and before.get("type") == use:
        return set_aside.pop(name)
    if field.get("role") or is_bought(field):
        set_aside.pop(name, None)
    else:  # its spelling comes back with its type
        set_aside.setdefault(name, field)
    bare = {word: said for word, said in field.items() if word not in WORDS_OF_A_DOMAIN and word != "role"}
    required = {"required": True} if (field.get("constraints") or {}).get("required") is True else {}
    return bare | {"type": use} | ({"constraints": required} if required else {})


def _with_domain(
    field: dict[str, Any], shown: ColumnForm, form: Mapping[str, str], use: str, known: Mapping[str, Any]
) -> dict[str, Any]:
    """Categories, bounds, missing values: each only where something else was typed than was shown, or the type is another.

    `known`: texts that the form has shown, and their values.
    """
    prefix = f"c{shown.place}."
    said = {
        word: form.get(prefix + word, "").replace("\r\n", "\n") for word in ("categories", "low", "high", "missing")
    }
    if use in _WITH_CATEGORIES and (use != shown.use or said["categories"].strip("\n") != shown.categories):
        field = _with_categories(field, values_of(said["categories"], use, field, known))
    constraints = dict(field.get("constraints") or {})
    if use not in {"string", "boolean"} and not constraints.get("enum"):
        for word, text, before in (("minimum", said["low"], shown.low), ("maximum", said["high"], shown.high)):
            if use != shown.use or text.strip() != before:
                constraints = _with_word(constraints, word, _bound(text.strip(), use, field, known))
    constraints = _with_word(constraints, "required", bool(form.get(f"{prefix}required")) or None)
    if said["missing"].strip("\n") != shown.missing:
        field = field | {"missingValues": ["", *filter(None, said["missing"].split("\n"))]}
    return _without(field, {"constraints"}) | ({"constraints": constraints} if constraints else {})


def _with_categories(field: dict[str, Any], values: list[Any]) -> dict[str, Any]:
    """These instead of the former ones, and of a range; without any, what else is said of it."""
    constraints = _without(field.get("constraints") or {}, {"enum"})
    if values:
        constraints = _without(constraints, {"minimum", "maximum"}) | {"enum": values}
        are_written = all(has_at_most(field.get("decimals", 0), one) for one in values)
        field = _without(field, {"bins", "edges"} if are_written else _OF_A_RANGE)
    return field | {"constraints": constraints}


def _bound(text: str, use: str, field: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    return value_of(text, use, field, known) if text else None


def _with_word(part: Mapping[str, Any], word: str, said: Any) -> dict[str, Any]:
    """The part with another word for this, or, None, with none."""
    return _without(part, {word}) | ({} if said is None else {word: said})


def _without(part: Mapping[str, Any], words: Collection[str]) -> dict[str, Any]:
    return {word: said for word, said in part.items() if word not in words}


def _confirmed(field: dict[str, Any], *, is_public: bool) -> dict[str, Any]:
    if is_public:
        return undrafted(field)
    if is_marked(field):
        return field
    said = str(field.get("description") or "")
    return field | {"description": f"{DRAFT}: {said}" if said else _OF_THE_DRAFT}


def is_to_be_ticked(field: Mapping[str, Any]) -> bool:
    """Whether something of it was read from the rows, would be published, and is not confirmed."""
    return is_marked(field) and not field.get("role") and not says_nothing(field)


def undrafted(part: dict[str, Any]) -> dict[str, Any]:
    return {word: said for word, said in part.items() if word != "description"} if is_marked(part) else part


def _markers(part: Mapping[str, Any], default: Sequence[str] = ("",)) -> Sequence[str]:
    said = part.get("missingValues")
    return [one for one in said if isinstance(one, str)] if isinstance(said, list) else default
