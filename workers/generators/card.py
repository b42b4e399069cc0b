"""MODEL_CARD.md, the sections that every release has: plain words for people who hold the ZIP and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from service.methods.catalogue import CATALOGUE
from workers.generators.markdown import escaped, indented_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from service.methods.interface import Card

SEE = "see certificate.json"
CERTIFICATE_FILE = {"certificate.json": "the guarantee, signed"}


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
        _introduction(content, card, order),
        content.use,
        _protected(content, certificate),
        _not_protected(content, certificate),
        *([] if card is None else [_method(card)]),
        _origin(content, certificate),
        *([content.more] if content.more else []),
        f"## Order\n\n{indented_json(order)}",
    ]
    return "\n\n".join(section.strip("\n") for section in sections) + "\n"


def _introduction(content: Content, card: Card | None, order: Mapping[str, Any]) -> str:
    makes = "what certificate.json describes" if card is None else card.makes
    by = f" by the method `{order['method']}`" if "method" in order else ""
    return f"# {content.title}\n\nThis ZIP holds {makes}. It was made under differential privacy{by}. {content.what_it_does}"


def _protected(content: Content, certificate: Mapping[str, Any]) -> str:
    epsilon = f"ε = {certificate['epsilon']}" if "epsilon" in certificate else f"ε: {SEE}"
    delta = f"δ = {certificate['delta']}" if "delta" in certificate else f"δ: {SEE}"
    lines = [
        f"Unit of protection: {escaped(certificate.get('unit', SEE))}",
        f"{content.record.capitalize()}s of a unit, on average: {_mean_rows(certificate.get('rows_per_unit'))}",
        f"Adjacency: {certificate.get('adjacency', SEE)}",
        f"Trust model: {certificate.get('trust_model', SEE)}",
        f"Guarantee: ({epsilon}, {delta})-differential privacy",
        *(f"Warning: {warning}" for warning in certificate.get("warnings", [])),
    ]
    return (
        "## What is protected\n\n" + _points(lines) + "\n\n"
        "A person may see this ZIP and everything that is made with it, and know everything about all other units. That person\n"
        "can still hardly tell whether one unit was in the data: any conclusion about it is at most e^ε times as likely as it\n"
        "would have been without that unit, up to a probability δ."
    )


def _not_protected(content: Content, certificate: Mapping[str, Any]) -> str:
    lines = [
        f"The declared schema, with its {content.declared}, and the number of units: they are public.",
        f"Facts about the whole population. {content.population}",
        "A person who is in several units: the guarantee is for each single one, and does not protect a whole household.",
        f"Other releases from the same data. Each adds to what is revealed; the owner's ledger keeps the sum within a budget. {_other_releases(certificate)}",
    ]
    return f"## What is not protected\n\n{_points(lines)}\n\n{content.caution}"


def _method(card: Card) -> str:
    lines = [f"Source: {card.source}", f"Privacy analysis: {card.paper_holds}"]
    return f"## The method\n\n{card.summary}\n\n{_points(lines)}\n\nPages such as docs/privacy.md are in Imprimatur's source code."


def _origin(content: Content, certificate: Mapping[str, Any]) -> str:
    lines = [
        f"Schema: {certificate.get('schema_source', 'declared by the owner before any row was read')}",
        f"Code version: {certificate.get('code_version', SEE)}",
        f"Audit: {certificate.get('audit', {}).get('says', SEE)}",
        "certificate.json: the guarantee with its accounting, the ledger entry that paid for it, and a signature",
    ]
    files = "\n".join(f"| {name} | {what} |" for name, what in content.files.items())
    return f"## Where it comes from\n\n{_points(lines)}\n\n| file | |\n|---|---|\n{files}"


def _points(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _other_releases(certificate: Mapping[str, Any]) -> str:
    """What had been charged on the same data when this was made."""
    others = certificate.get("other_releases")
    if others is None:
        return f"How much by others: {SEE}."
    return (
        f"When this one was made, {others['charged']} others were charged and {others['pending']} reserved, together ε = "
        f"{others['epsilon']:.6g}; with this one ε = {others['with_this']['epsilon']:.6g}."
    )


def _mean_rows(rows_per_unit: Mapping[str, Any] | None) -> str:
    if rows_per_unit is None:
        return SEE
    if rows_per_unit["mean"] is None:
        return f"not charged, so not known (at most {rows_per_unit['most']} are used)"
    return f"{rows_per_unit['mean']:g} (noisy where it is not 1; at most {rows_per_unit['most']} are used)"
