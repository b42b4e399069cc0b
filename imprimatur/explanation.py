"""A page for a colleague who gets synthetic rows: what is promised about them, in sentences; HTML without scripts.

Everything on it is said by the signed certificate, or by the dataset's name and the declaration; all of that is public. Texts of
other people are escaped, and the page loads nothing from anywhere.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import math
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from imprimatur.declarations import COPIES_IMAGES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MARK = '<meta name="generator" content="imprimatur explanation">'
"""By which a page of ours is known again."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
body { font: 1rem/1.5 system-ui, sans-serif; max-width: 44rem; margin: 2rem auto; padding: 0 1rem; color: #1c1c1c; background: #fff }
h1 { font-size: 1.5rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% } th { text-align: left; font-weight: 600; padding-right: 1rem; vertical-align: top; width: 40% }
td, th { border-bottom: 1px solid #ddd; padding-top: .3rem; padding-bottom: .3rem }
code { font-size: .9rem; overflow-wrap: anywhere; background: #f4f4f4; padding: .1rem .25rem }
.large { font-size: 1.15rem; border-left: .25rem solid #2a6; padding-left: .8rem }
"""


class Names(NamedTuple):
    """What people called the things, and where the page's neighbours are."""

    dataset: str
    release: str
    sample: str | None = None
    """The file of the rows."""
    certificate: str | None = None
    """The file of the certificate, if it was saved."""


class Kind(NamedTuple):
    """The page's words for what a release holds."""

    title: str
    things: str
    source: str
    made: str
    guessed: str
    can: tuple[str, ...]
    cannot: tuple[str, ...]


ROWS = Kind(
    title="Synthetic rows",
    things="rows",
    source="table",
    made="None of its rows was copied from that table: all were drawn from a generator that was fitted to the table with noise.",
    guessed="whether one unit was in the table",
    can=(
        "Be used instead of the table where figures of many units matter: shares, means, relations between columns, training and testing of models.",
        "Be shared: anything computed from them reveals no more about a person than they do.",
        "Be drawn in any number from the same release, at no further cost in privacy.",
    ),
    cannot=(
        "Tell anything about one person: a row that looks like a person you know is not about that person.",
        "Give exact figures. Small groups, rare values and relations between many columns at once are blurred by noise or lost.",
        "Add evidence: a million synthetic rows hold no more information than the table. Tests of significance must count its units, not these rows.",
        "Correct the table: what was wrong, missing or biased in it is so here.",
    ),
)
IMAGES = Kind(
    title="Synthetic images",
    things="images",
    source="set of images",
    made="None of its images was copied from that set: all were drawn from a generator that was fitted to the set with noise.",
    guessed="whether one unit was in the set",
    can=(
        "Be used instead of the set where many images matter: what a class looks like, training and testing of models.",
        "Be shared: anything computed from them reveals no more about a person than they do.",
        "Be drawn in any number from the same release, at no further cost in privacy.",
    ),
    cannot=(
        "Tell anything about one person: an image that looks like a person you know is not of that person.",
        "Show what few images have. Fine detail and rare looks are blurred by noise or lost.",
        "Add evidence: a million synthetic images hold no more information than the set. Tests of significance must count its units, not these images.",
        "Correct the set: what was wrong, missing or biased in it is so here.",
    ),
)
COPIES = Kind(
    title="Noisy images",
    things="images",
    source="set of images",
    made="Each of its images is a copy of one private image, blurred and noisy. What can be recognised in it was released; noise hides one unit, which is named below.",
    guessed="whether one unit is in its image, or grey",
    can=(
        "Be shared: anything computed from them reveals no more than they do.",
        "Be drawn again from the same release, at no further cost in privacy.",
    ),
    cannot=(
        "Hide a person, unless the unit is all images of one: somebody whom you recognise in an image is in the private one.",
        "Show anything sharp: fine detail is left out, and the rest is noisy.",
    ),
)


def odds(epsilon: float) -> float:
    """The largest chance of guessing right whether somebody is in the table, where 1/2 is a coin: e^ε / (1 + e^ε)."""
    return 1.0 / (1.0 + math.exp(-epsilon))


def in_100(epsilon: float) -> str:
    """The same chance as "x in 100", never rounded to less than it is."""
    times = times_in_100(epsilon)
    return "practically 100 in 100" if times is None else f"{times} in 100"


def times_in_100(epsilon: float) -> str | None:
    """The number of these words; None where it is practically 100."""
    share = odds(epsilon) * 100.0
    if share > 99.99:
        return None
    tenths = 10 if share < 99.0 else 100
    return f"{math.ceil(share * tenths - 1e-9) / tenths:g}"


def fingerprint(public_key: str) -> str:
    """SHA-256 of the signing key, in groups of eight digits, to be compared by people."""
    try:
        raw = base64.b64decode(public_key, validate=True)
    except (binascii.Error, ValueError):
        return "not a key"
    digits = hashlib.sha256(raw).hexdigest()
    return " ".join(digits[i : i + 8] for i in range(0, len(digits), 8))


def kind_of(certificate: Mapping[str, Any]) -> Kind:
    """By its method, and by what a unit is: a method may make rows or images."""
    if certificate["method"] in COPIES_IMAGES:
        return COPIES
    unit = str(certificate.get("contribution_bound", {}).get("unit", ""))
    return IMAGES if "image" in unit else ROWS


def page(certificate: Mapping[str, Any], names: Names) -> str:
    """The whole page."""
    budget = certificate["dataset_budget"]
    kind = kind_of(certificate)
    title = f"{kind.title} of {names.dataset}: what is promised"
    parts = [
        f"<h1>{escape(title)}</h1>",
        _paragraph(
            f"Release {names.release} was made from the {kind.source} {names.dataset} on {str(certificate['issued_at'])[:10]}. {kind.made}"
        ),
        *_section("What is protected", _protected(certificate, budget, kind)),
        *_section("In figures", [_figures(certificate, budget, kind)]),
        *_section(f"What the {kind.things} can do", _list(_can(certificate, kind))),
        *_section("What they cannot do", _list((*kind.cannot, *certificate.get("not_protected", [])))),
        *_not_modelled(certificate),
        *_section("How to check it", _checking(certificate, names, kind)),
    ]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{MARK}\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(parts)
        + "\n</body>\n</html>\n"
    )


def _protected(certificate: Mapping[str, Any], budget: Mapping[str, Any], kind: Kind) -> list[str]:
    epsilon, delta = certificate["epsilon"], certificate["delta"]
    said = (
        f"Somebody who guesses {kind.guessed} is right 50 times in 100 without these {kind.things}. "
        f"With them, at most {in_100(epsilon)}, whatever else that person knows."
    )
    return [
        f'<p class="large">{escape(said)}</p>',
        _paragraph(
            f"The protected unit is {certificate['unit']}. This is differential privacy with ε = {epsilon:.4g}: the figure is e^ε / (1 + e^ε). "
            f"It holds except with a probability of at most δ = {delta:.2g}, which is over the noise."
        ),
        _paragraph(
            f"For everything that is ever released from this {kind.source} together, the promise is ε = {budget['epsilon']:g}, "
            f"δ = {budget['delta']:.2g}: at most {in_100(budget['epsilon'])}. A ledger refuses what would exceed it."
        ),
        *(_paragraph(f"Warning: {each}") for each in certificate.get("warnings", [])),
        *map(_paragraph, certificate.get("forecast", {}).get("sentences", [])),
    ]


def _figures(certificate: Mapping[str, Any], budget: Mapping[str, Any], kind: Kind) -> str:
    rows = {
        "Method": str(certificate["method"]),
        f"Units in the {kind.source} (public)": f"{certificate['units']:,}",
        "ε, δ of this release": f"{certificate['epsilon']:.6g}, {certificate['delta']:.3g}",
        "ε, δ of the budget, for all releases together": f"{budget['epsilon']:g}, {budget['delta']:.3g}",
        "Neighbouring datasets": str(certificate["adjacency"]),
        "Noise": str(certificate["noise"]),
        "Release": str(certificate["release_id"]),
    }
    others = certificate.get("other_releases")
    if others:
        rows["Other releases of the same data by then"] = (
            f"{others['charged'] + others['pending']}; with this one ε = {others['with_this']['epsilon']:.4g}"
        )
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>\n" for name, value in rows.items())
    return f"<table>\n{cells}</table>"


def _can(certificate: Mapping[str, Any], kind: Kind) -> Iterable[str]:
    yield from kind.can
    if certificate.get("audit"):
        yield f"Attacks on the mechanisms were run and compared with the claim: {certificate['audit']['says']}"


def _not_modelled(certificate: Mapping[str, Any]) -> list[str]:
    """Nothing where every declared column is modelled, and of certificates that do not say."""
    columns = certificate.get("not_modelled", [])
    cells = "".join(
        f"<tr><th>{escape(each['column'])}</th><td>{escape(each['becomes'])}</td></tr>\n" for each in columns
    )
    return _section("Columns that the generator does not learn", [f"<table>\n{cells}</table>"]) if columns else []


def _checking(certificate: Mapping[str, Any], names: Names, kind: Kind) -> list[str]:
    saved = names.certificate or "certificate.json"
    key = str(certificate["public_key"])
    lines = [
        _paragraph(
            f"The certificate of this release is signed (Ed25519) by the service that made it, Imprimatur {certificate['code_version']}. "
            "This page is a summary and is not signed: the certificate counts."
        ),
        _paragraph(
            "Fingerprint of the signing key (SHA-256); compare it with the one that the owner gives you by another way:"
        ),
        f"<p><code>{escape(fingerprint(key))}</code></p>",
        _paragraph("Check the certificate with the key, without asking the service:"),
    ]
    commands = [] if names.certificate else [f"imprimatur certificate {certificate['release_id']} -o {saved}"]
    commands.append(f"imprimatur verify --certificate {saved} --public-key {key}")
    lines += [f"<p><code>{escape(command)}</code></p>" for command in commands]
    if names.sample:
        lines.append(
            _paragraph(
                f"The certificate covers the generator that {names.sample} was drawn from, not that file. To be sure of the {kind.things}, trust the "
                f"sender or draw them yourself with `imprimatur sample {certificate['release_id']}`."
            )
        )
    return lines


def _section(title: str, parts: Iterable[str]) -> list[str]:
    return [f"<h2>{escape(title)}</h2>", *parts]


def _list(sentences: Iterable[str]) -> list[str]:
    return ["<ul>", *(f"<li>{escape(str(each))}</li>" for each in sentences), "</ul>"]


def _paragraph(sentence: str) -> str:
    return f"<p>{escape(sentence)}</p>"
