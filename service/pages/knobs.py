"""Knobs of a method as fields of a form, and a filled-in form as an order. Both are read from the method's own schema."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from service.base.errors import InvalidOrder
from service.base.messages import Message
from service.base.text import ungrouped
from service.methods.catalogue import CATALOGUE
from service.methods.knobs import Order
from service.pages.forms import number_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.methods.interface import Modality

COMMON = {"method", *Order.model_fields}
"""What every order names: the form has fields of its own for these."""
FILLED_IN = {"trials"}
"""What only the service writes into an order."""
EXAMPLES = {"candidates": '[{"method": "marginals"}, {"method": "marginals", "pairs": "none"}]'}
"""Of knobs without a default, as they are typed."""
PREFIX = "knob."
DEFAULT_REPORT_SHARE = "5"
"""Per cent of the precision."""
LIMITS = ("one_way_tv", "two_way_tv", "accuracy")
"""What a release is published for (`accept` of orders)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One knob."""

    name: str
    description: str
    kind: str
    """`choice`, `count` (a whole number), `number`, `text`, `json`, or `dataset`: one that is declared public."""
    choices: tuple[str, ...] = ()
    default: str = ""
    is_required: bool = False
    example: str = ""


def methods_for(modality: Modality) -> dict[str, str]:
    """Names of methods that make such data, with a sentence each; questions have a page of their own."""
    made = {name: method for name, method in CATALOGUE.items() if method.returns == "generator"}
    return {name: method.card.summary for name, method in made.items() if modality in method.takes}


def fields_of(method: str) -> list[Field]:
    """The knobs of a method; none for `auto`."""
    if method not in CATALOGUE:
        return []
    schema = CATALOGUE[method].order.model_json_schema()
    fields = [_field(name, each) for name, each in schema["properties"].items() if name not in COMMON | FILLED_IN]
    return [replace(each, is_required=each.name in schema.get("required", ())) for each in fields]


def described() -> set[str]:
    """Every sentence of a method and of its knobs, so that translations are asked for."""
    fields = [field for method in CATALOGUE for field in fields_of(method)]
    summaries = [method.card.summary for method in CATALOGUE.values()]
    return {text for text in (*summaries, *(field.description for field in fields)) if text}


def _field(name: str, schema: Mapping[str, Any]) -> Field:
    default = schema.get("default")
    shown = "" if default is None else default if isinstance(default, str) else json.dumps(default)
    kinds = [each for each in schema.get("anyOf", [schema]) if each.get("type") != "null"]
    return Field(name, schema.get("description", ""), *_kind(kinds), default=shown, example=EXAMPLES.get(name, ""))


def _kind(kinds: list[Mapping[str, Any]]) -> tuple[str, tuple[str, ...]]:
    if len(kinds) != 1:
        return "json", ()
    (kind,) = kinds
    if "enum" in kind or kind.get("type") == "boolean":
        return "choice", tuple(map(str, kind.get("enum", ("true", "false"))))
    if kind.get("type") in {"integer", "number"}:
        return "count" if kind["type"] == "integer" else "number", ()
    if kind.get("format") == "uuid":
        return "dataset", ()
    return ("text", ()) if kind.get("type") == "string" else ("json", ())


def document_of(form: Mapping[str, str]) -> dict[str, Any]:
    """The order that a form asks for, as the API takes it. What is left empty is left out."""
    document: dict[str, Any] = {"method": form.get("method") or "auto"}
    document["epsilon"] = None if form.get("step") == "want" else number_in(form.get("epsilon", ""), "epsilon", 0.5)
    document |= {name: form[name] for name in ("condition_on", "purpose") if form.get(name)}
    document |= _reports_of(form)
    kinds = {field.name: field.kind for field in fields_of(document["method"])}
    for name, value in form.items():
        knob = name.removeprefix(PREFIX)
        if name.startswith(PREFIX) and knob in kinds and value.strip():
            document[knob] = _value(knob, kinds[knob], value.strip())
    return document


def _reports_of(form: Mapping[str, str]) -> dict[str, Any]:
    """What the form asks to be measured of the finished generator (docs/reports.md)."""
    document: dict[str, Any] = {"owner_report": True} if form.get("owner_report") else {}
    held_out = form.get("report_held_out", "").strip()
    if form.get("report"):
        typed = form.get("report_share") or DEFAULT_REPORT_SHARE
        share = _share_in(typed, "report.share", 5, below=50)
        document["report"] = {"share": share}
        if held_out:
            document["report"]["held_out"] = _share_in(held_out, "report.held_out", 10, below=51)
    elif held_out:
        raise InvalidOrder(
            Message("report.held_out: the report for everybody is of them; tick the report as well"), where="report"
        )
    limits = {name: form.get(f"accept_{name}", "").strip() for name in LIMITS}
    accept: dict[str, Any] = {
        name: _share_in(text, f"accept.{name}", 8, below=100) for name, text in limits.items() if text
    }
    if accept:
        if "report" not in document:
            raise InvalidOrder(
                Message(
                    "%(where)s: the report for everybody decides that; tick the report as well",
                    where=f"accept.{next(iter(accept))}",
                ),
                where="accept",
            )
        document["accept"] = accept | ({"by": form["accept_by"]} if form.get("accept_by") else {})
    return document


def _share_in(text: str, where: str, example: float, *, below: int) -> float:
    """A share of one from a field in per cent; refused in per cent, too."""
    hundredths = number_in(text, where, example)
    if not 0.0 < hundredths < below:
        raise InvalidOrder(
            Message("%(where)s: more than 0 and less than %(below)s per cent", where=where, below=below), where=where
        )
    return hundredths / 100.0


def has_report_settings(form: Mapping[str, str], refused: str | None) -> bool:
    """Whether something is set among the settings of the report, or was refused there: then they are not folded away."""
    typed = (form.get("report_share") or DEFAULT_REPORT_SHARE).strip()
    is_set = any(form.get(f"accept_{name}") for name in (*LIMITS, "by")) or form.get("report_held_out")
    is_refused = (refused or "").partition(".")[0] in {"report", "accept"}
    return bool(is_set) or typed != DEFAULT_REPORT_SHARE or is_refused


def want_of(form: Mapping[str, str]) -> dict[str, Any]:
    """How exact the form asks counts to be (`service.methods.wants`)."""
    group = round(number_in(ungrouped(form.get("group", "")), "want.group", 200))
    within = number_in(form.get("within", ""), "want.within", 10)
    return {"group": group, "within": within / 100.0}


def _value(name: str, kind: str, text: str) -> Any:
    if kind in {"text", "dataset"} or (kind == "choice" and text not in {"true", "false"}):
        return text
    text = ungrouped(text) if kind == "count" else text
    try:
        return json.loads(text.replace(",", ".") if kind in {"count", "number"} else text)
    except ValueError:
        raise InvalidOrder(
            Message("%(knob)s: this cannot be read; write it as in the description", knob=name), where=name
        ) from None
