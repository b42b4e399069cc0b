"""An entry of OpenDP's registry of deployments of differential privacy, made from a certificate.

The classes say which fields that registry publishes, which of them it requires and which values it lists, as of July 2026
(opendp/deployments-registry-data). What only people know is typed by the curator and kept nowhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

from imprimatur.errors import MissingExtra
from imprimatur.wording import run_in_words

try:
    import yaml
    from pydantic import BaseModel, ConfigDict, Field
except ModuleNotFoundError as error:
    raise MissingExtra("an entry of the registry", "registry") from error

Sector = Literal["Technology", "Healthcare", "Education", "Government", "Energy", "Finance"]
SECTORS: tuple[str, ...] = get_args(Sector)
Words = Annotated[str, Field(min_length=1)]

TO_BE_FILLED_IN = "to be filled in by the curator"
FULL_TIER, SHORT_TIER = 3, 2
"""Certificates of format 1 do not say what the registry's third tier asks for."""

POST_PROCESSING = (
    "Everything after the noise: fitting the generator, drawing any number of rows or images from it, rounding them to declared values. "
    "None of it reads a private row."
)
PREPROCESSING = (
    "Values are clamped to the declared domain, record by record. All else follows from the declaration, the order and the number of "
    "units, or was charged. What the curator did with the data before declaring the schema is not known to the service."
)
ACTORS = (
    "- Those who run the service, and the curator: see the data, are trusted.\n"
    "- Analysts who order releases: see prices, balances and what is released; may combine all of it; not trusted.\n"
    "- Users of the synthetic data: see what is released; not trusted."
)


class UnknownSector(ValueError):
    """A sector that the registry does not list."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Basic(_Part):
    """Tier 1: what it is and who published it."""

    name: Words
    data_curators: Annotated[list[Words], Field(min_length=1)]
    intended_use: Words
    data_product_type: Literal[
        "Summary statistics", "Machine learning model", "Dataset", "Synthetic data", "Interactive API", "SQL queries"
    ]
    data_product_region: Words
    description: Words
    publication_date: Annotated[str, Field(pattern=r"^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])$")]
    data_product_sector: Sector | None = None


class Variant(_Part):
    """How privacy loss is measured."""

    variant_name: Literal["Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom"]
    data_domain: Words | None = None
    unprotected_quantities: Words | None = None


class Parameters(_Part):
    """How much may be lost."""

    epsilon: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None
    delta: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    rho: Annotated[float, Field(ge=0.0, allow_inf_nan=False)] | None = None


class Loss(_Part):
    """What is protected, and how strongly."""

    privacy_unit: Words
    privacy_unit_details: Words | None = None
    privacy_parameters: Parameters
    privacy_parameters_details: Words | None = None


class Deployment(_Part):
    """Who is trusted, and how data come in and results go out."""

    model_name: Literal["Local", "Central", "Shuffle", "Federated", "Varies"]
    model_name_details: Words | None = None
    actors: Words | None = None
    release_type: Literal["One release", "Many releases"]
    release_type_details: Words | None = None
    data_source_type: Literal["Static", "Dynamic"]
    data_source_type_details: Words | None = None
    access_type: Literal["Interactive", "Non-interactive"]
    access_type_details: Words | None = None


class Accounting(_Part):
    """How losses add up."""

    post_processing: Words | None = None
    composition: Words | None = None


class Implementation(_Part):
    """The mechanisms of a deployment, and the justification of its parameters."""

    preprocessing_and_hyperparameter_tuning: Words | None = None
    mechanisms: Words | None = None
    justification: Words


class Administrative(_Part):
    """The sources of the entry, and who wrote it."""

    sources: Words | None = None
    notes: Words | None = None
    registry_authors: Annotated[list[Words], Field(min_length=1)]


class Description(_Part):
    """The deployment itself."""

    basic: Basic
    dp_variant: Variant
    privacy_loss: Loss
    deployment_model: Deployment
    accounting: Accounting
    implementation: Implementation
    administrative: Administrative


class Entry(_Part):
    """One file of the registry."""

    url_slug: Annotated[str, Field(pattern=r"^[^\s_]+$")]
    status: Literal[
        "Converted",
        "Draft",
        "Pending",
        "Changes Required",
        "Approved",
        "Approved (Update Requested)",
        "Approved (Pending)",
    ]
    tier: Literal[1, 2, 3]
    deployment: Description


@dataclass(frozen=True)
class Owner:
    """What the curator says about a release, which no service can know."""

    curators: tuple[str, ...]
    intended_use: str
    region: str
    sector: str | None
    justification: str
    name: str | None = None
    authors: tuple[str, ...] = ()


def entry_of(certificate: Mapping[str, Any], owner: Owner) -> Entry:
    """The entry of one release. What a certificate of format 1 does not say is left out."""
    if owner.sector is not None and owner.sector not in SECTORS:
        raise UnknownSector(f"sector: the registry lists {', '.join(SECTORS)}")
    day = str(certificate["issued_at"])[:10]
    name = owner.name or f"Synthetic data, release {certificate['release_id']}"
    document = {
        "url_slug": slug(name, owner.curators, day),
        "status": "Draft",
        "tier": FULL_TIER if "mechanisms" in certificate else SHORT_TIER,
        "deployment": {
            "basic": {
                "name": name,
                "data_curators": list(owner.curators),
                "intended_use": owner.intended_use,
                "data_product_type": "Synthetic data",
                "data_product_region": owner.region,
                "description": (
                    f"A generator made by the method {certificate['method']} from {certificate['units']} units (unit: "
                    f"{certificate['unit']}), and any number of synthetic rows or images drawn from it."
                ),
                "publication_date": day,
                "data_product_sector": owner.sector,
            },
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": f"Datasets of {certificate['units']} units within a schema that was {certificate['schema_source']}.",
                "unprotected_quantities": _points(certificate.get("not_protected")),
            },
            "privacy_loss": {
                "privacy_unit": certificate["unit"],
                "privacy_unit_details": _neighbours(certificate),
                "privacy_parameters": {"epsilon": float(certificate["epsilon"]), "delta": float(certificate["delta"])},
                "privacy_parameters_details": _parameters(certificate),
            },
            "deployment_model": {
                "model_name": "Central",
                "model_name_details": certificate.get("trust_model"),
                "actors": ACTORS,
                "release_type": "One release",
                "release_type_details": _other_releases(certificate),
                "data_source_type": "Static",
                "data_source_type_details": "The rows never change after the upload.",
                "access_type": "Non-interactive",
                "access_type_details": "Users draw from the published generator; drawing costs no privacy.",
            },
            "accounting": {"post_processing": POST_PROCESSING, "composition": certificate.get("accounting")},
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": PREPROCESSING,
                "mechanisms": _mechanisms(certificate),
                "justification": owner.justification,
            },
            "administrative": {
                "sources": f"Certificate of release {certificate['release_id']}, signed (Ed25519) by the key {certificate['public_key']}.",
                "notes": certificate["audit"]["says"] if "audit" in certificate else None,
                "registry_authors": list(owner.authors or owner.curators),
            },
        },
    }
    return Entry.model_validate(document)


def to_yaml(entry: Entry) -> str:
    """The file. Several lines are written as they are, as people read them."""
    text: str = yaml.dump(
        entry.model_dump(exclude_none=True), Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=1_000_000
    )
    return text


def slug(name: str, curators: Iterable[str], day: str) -> str:
    """The entry's name as the registry makes it: name, curators and year in lower case, parted by hyphens."""
    parts = (name, "-".join(curators), day.split("-", maxsplit=1)[0])
    return "_".join(re.sub(r"\W+", "_", part.lower()) for part in parts).replace("_", "-")


def _points(sentences: Iterable[str] | None) -> str | None:
    return None if sentences is None else "\n".join(f"- {sentence}" for sentence in sentences)


def _neighbours(certificate: Mapping[str, Any]) -> str:
    bound, relation = certificate.get("contribution_bound"), certificate.get("neighbouring_relation")
    parts = [f"Neighbouring datasets: {certificate['adjacency']}."]
    if bound is not None:
        parts.append(f"At most {bound['max_rows']} rows or images of a unit are used.")
    if relation is not None:
        parts.append(f"Against replacing one unit by another: {relation['replacing_a_unit_by_another']}.")
    return " ".join(parts)


def _parameters(certificate: Mapping[str, Any]) -> str:
    pld, renyi, whole = certificate["pld"], certificate["renyi"], certificate["dataset_budget"]
    figures = (
        f"ε = {pld['epsilon']:.6g} at the same δ by privacy-loss distribution; Rényi divergence {renyi['divergence']:.6g} of order "
        f"{renyi['order']}. All releases of the dataset together stay within (ε, δ) = ({whole['epsilon']:g}, {whole['delta']:g})."
    )
    return " ".join([figures, *certificate.get("warnings", [])])


def _other_releases(certificate: Mapping[str, Any]) -> str | None:
    others = certificate.get("other_releases")
    if others is None:
        return None
    whole = certificate["dataset_budget"]
    return (
        f"Other releases of the same data when this one was made: {others['charged']} charged, {others['pending']} reserved, together "
        f"ε = {others['epsilon']:.6g}; with this one ε = {others['with_this']['epsilon']:.6g}. A ledger refuses releases beyond "
        f"(ε, δ) = ({whole['epsilon']:g}, {whole['delta']:g}) for the whole life of the data; it is never reset."
    )


def _mechanisms(certificate: Mapping[str, Any]) -> str | None:
    listed = certificate.get("mechanisms")
    if listed is None:
        return None
    lines = [
        f"- {each['releases']}: {each['mechanism']}; sensitivity ({each['sensitivity']['norm']}) {each['sensitivity']['of_one_unit']}; "
        f"{'; '.join(run_in_words(run, digits=9) for run in each['runs'])}"
        for each in listed
    ]
    code = f"- Imprimatur {certificate['code_version']}, {certificate['accountant']}; noise: {certificate['noise']}; {listed[0]['noise_std']}"
    return "\n".join([*lines, code])


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    """Texts of several lines as literal blocks: the registry refuses folded ones."""


def _text(dumper: Any, text: str) -> Any:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
