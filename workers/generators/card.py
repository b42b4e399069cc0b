"""MODEL_CARD.md, the sections that every release has: plain words for people who hold the ZIP and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.methods.catalogue import CATALOGUE
from workers.generators.markdown import escaped, indented_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from service.methods.interface import Card

SEE = "see certificate.json"
CERTIFICATE_FILE = {"certificate.json": "the promise, signed"}


@dataclass(frozen=True, kw_only=True)
class Content:
    """What one kind of release says of itself, between the sections that all have. Markdown: names in it are escaped."""

    title: str
    what_it_does: str
    """Sentences after "This ZIP holds …"."""
    use: str
    """The section on how it is used, with its heading."""
    record: str
    """What the private data are made of: row or image."""
    declared: str
    """What of the declaration is public."""
    population: str
    """An example of a fact about the whole population."""
    caution: str
    """What it should not be used for."""
    files: Mapping[str, str]
    """Members of the ZIP -> what they are."""
    more: str = ""
    """Further sections, with their headings."""


def model_card(content: Content, *, certificate: Mapping[str, Any], order: Mapping[str, Any]) -> str:
    """The card as Markdown; what the certificate does not say is left to certificate.json."""
    method = CATALOGUE.get(order.get("method", ""))
    card = None if method is None else method.card
    sections = [
        _introduction(content, card, order, certificate),
        content.use,
        _protected(content, certificate),
        _not_protected(content, certificate),
        *_forecast(certificate),
        *([] if card is None else [_method(card)]),
        _origin(content, certificate),
        *([content.more] if content.more else []),
        f"## Order\n\n{indented_json(order)}",
    ]
    return "\n\n".join(section.strip("\n") for section in sections) + "\n"


def _introduction(content: Content, card: Card | None, order: Mapping[str, Any], certificate: Mapping[str, Any]) -> str:
    public, choice = certificate.get("public_dataset"), certificate.get("choice")
    makes = "what certificate.json describes" if card is None else card.makes
    by = f" by the method `{order['method']}`" if "method" in order else ""
    begun = "" if public is None else f" {_begun(public, order, choice)}"
    return f"# {content.title}\n\nThis ZIP holds {makes}. It was made under differential privacy{by}.{begun} {content.what_it_does}"


def _begun(public: Mapping[str, Any], order: Mapping[str, Any], choice: Mapping[str, Any] | None) -> str:
    """Of the public dataset that an order reads besides its own, or one of its candidates. Its name is escaped."""
    dataset = f"the dataset {public['id']} ({escaped(public['name'])}), which its owner declared public"
    chosen = order if choice is None else order["candidates"][choice["candidate"]]
    if choice is not None and chosen.get("public_dataset") is None:
        return (
            f"It was not trained on public rows. A candidate that was not chosen begins from {dataset}; "
            "which one was chosen may depend on those rows."
        )
    return (
        f"It was first trained on {dataset}. That has no price. "
        "The rows of that dataset are not protected: what is drawn may repeat them."
    )


def _protected(content: Content, certificate: Mapping[str, Any]) -> str:
    epsilon = f"ε = {certificate['epsilon']}" if "epsilon" in certificate else f"ε: {SEE}"
    delta = f"δ = {certificate['delta']}" if "delta" in certificate else f"δ: {SEE}"
    lines = [
        f"Protected unit: {escaped(certificate.get('unit', SEE))}",
        *_rows_of_a_unit(content, certificate),
        f"Neighbouring datasets: {certificate.get('adjacency', SEE)}",
        f"Trust model: {certificate.get('trust_model', SEE)}",
        f"Promise: ({epsilon}, {delta})-differential privacy",
        *(f"Warning: {escaped(warning)}" for warning in certificate.get("warnings", [])),
    ]
    return (
        "## What is protected\n\n" + _points(lines) + "\n\n"
        "A person may see this ZIP and everything that is made with it, and know everything about all other units. That person\n"
        "can still hardly tell whether one unit was in the data: any conclusion about it is at most e^ε times as likely as it\n"
        "would have been without that unit, except with a probability of at most δ."
    )


def _not_protected(content: Content, certificate: Mapping[str, Any]) -> str:
    lines = [
        f"The declared schema, with its {content.declared}, and the number of units: they are public.",
        f"Facts about the whole population. {content.population}",
        "A person who is in several units, or a whole household: the promise is for each single unit.",
        f"Other releases from the same data. Each adds to what is revealed; the owner's ledger keeps the sum within a budget. {_other_releases(certificate)}",
    ]
    return f"## What is not protected\n\n{_points(lines)}\n\n{content.caution}"


def _forecast(certificate: Mapping[str, Any]) -> list[str]:
    """What was said before it was ordered. Sentences name declared columns."""
    sentences = certificate.get("forecast", {}).get("sentences", [])
    points = _points([escaped(sentence) for sentence in sentences])
    said = "Computed from the order, the declaration and the number of units alone, before any row was read:"
    return [f"## How far off counts are\n\n{said}\n\n{points}"] if sentences else []


def _method(card: Card) -> str:
    lines = [f"Source: {card.source}", f"Privacy analysis: {card.paper_holds}"]
    lines += [f"What it cannot learn: {card.cannot_learn}"] if card.cannot_learn else []
    return f"## The method\n\n{card.summary}\n\n{_points(lines)}\n\nPages such as docs/privacy.md are in Imprimatur's source code."


def _origin(content: Content, certificate: Mapping[str, Any]) -> str:
    lines = [
        f"Schema: {certificate.get('schema_source', 'declared by the owner before any row was read')}",
        *(_bought(one) for one in certificate.get("bought", [])),
        f"Code version: {certificate.get('code_version', SEE)}",
        f"Audit: {certificate.get('audit', {}).get('says', SEE)}",
        "certificate.json: the promise with its accounting, the ledger entry that was charged for it, and a signature",
    ]
    files = "\n".join(f"| {name} | {what} |" for name, what in content.files.items())
    return f"## Where it comes from\n\n{_points(lines)}\n\n| file | |\n|---|---|\n{files}"


def _bought(one: Mapping[str, Any]) -> str:
    """Of a column whose bounds or categories are not the owner's word. A name is escaped."""
    words = " and ".join(one["words"])
    return f"Bought from the rows, for ε = {one['epsilon']:g} of release {one['release']}: {words} of {escaped(one['column'])}"


def _points(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _other_releases(certificate: Mapping[str, Any]) -> str:
    """What had been charged on the same data when this was made."""
    others = certificate.get("other_releases")
    if others is None:
        return f"What they reveal: {SEE}."
    return (
        f"By then {others['charged']} other releases were charged and {others['pending']} reserved, together ε = "
        f"{others['epsilon']:.6g}; with this one ε = {others['with_this']['epsilon']:.6g}."
    )


def _rows_of_a_unit(content: Content, certificate: Mapping[str, Any]) -> Iterator[str]:
    """None where a unit is less than a record."""
    if certificate.get("contribution_bound", {}).get("unit") != "part of an image":
        mean = _mean_rows(certificate.get("rows_per_unit"))
        yield f"{content.record.capitalize()}s of a unit, on average: {mean}"


def _mean_rows(rows_per_unit: Mapping[str, Any] | None) -> str:
    if rows_per_unit is None:
        return SEE
    if rows_per_unit["mean"] is None:
        return f"not measured (at most {rows_per_unit['most']} are used)"
    return f"{rows_per_unit['mean']:g} (noisy where it is not 1; at most {rows_per_unit['most']} are used)"
