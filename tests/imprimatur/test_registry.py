"""Entries of OpenDP's registry: every field is one that it publishes, with a value that it takes."""

import copy

import pytest
import yaml
from pydantic import ValidationError

from imprimatur.registry import Entry, Owner, UnknownSector, entry_of, slug, to_yaml
from service.ledger.service import OtherReleases
from tests.certificates import IDPGAN, VISITS, made_certificate, of_format_1

OWNER = Owner(
    curators=("City of X", "Office: Y"),
    intended_use="Teaching\nand planning",
    region="Region 5 #2",
    sector="Government",
    justification="- The unit is a person.\n- ε was agreed on.",
)
MIXTURE = {"method": "mixture", "epsilon": 1.0, "cells": 8}


def written(certificate, owner=OWNER):
    return yaml.safe_load(to_yaml(entry_of(certificate, owner)))


@pytest.mark.parametrize("kind", ["rows", "visits", "images", "format 1"])
def test_the_file_meets_the_schema(kind):
    certificate = made_certificate(
        MIXTURE if kind == "images" else IDPGAN,
        image=kind == "images",
        privacy_unit=VISITS if kind == "visits" else None,
    )
    certificate = of_format_1(certificate) if kind == "format 1" else certificate
    document = written(certificate)
    assert Entry.model_validate(document) == entry_of(certificate, OWNER)
    assert document["tier"] == (2 if kind == "format 1" else 3)
    assert ("mechanisms" in document["deployment"]["implementation"]) == (kind != "format 1")


def test_it_says_what_the_certificate_says_and_what_the_owner_typed():
    others = OtherReleases(charged=3, pending=1, simple=10**8, renyi=10**7, entries=12)
    certificate = made_certificate(others=others, privacy_unit=VISITS)
    deployment = written(certificate)["deployment"]
    basic, loss = deployment["basic"], deployment["privacy_loss"]
    assert basic["data_curators"] == ["City of X", "Office: Y"]
    assert (basic["intended_use"], basic["data_product_region"]) == (OWNER.intended_use, OWNER.region)
    assert (basic["data_product_type"], basic["data_product_sector"]) == ("Synthetic data", "Government")
    assert basic["publication_date"] == certificate["issued_at"][:10]
    assert loss["privacy_parameters"] == {"epsilon": certificate["epsilon"], "delta": certificate["delta"]}
    assert loss["privacy_unit"] == certificate["unit"]
    assert "At most 3 rows" in loss["privacy_unit_details"]
    assert "(ε, δ) = (5, 1e-06)" in loss["privacy_parameters_details"]
    model = deployment["deployment_model"]
    assert model["model_name"] == "Central"
    assert "3 charged, 1 reserved" in model["release_type_details"]
    assert all(
        sentence in deployment["dp_variant"]["unprotected_quantities"] for sentence in certificate["not_protected"]
    )
    implementation = deployment["implementation"]
    assert implementation["justification"] == OWNER.justification
    for each in certificate["mechanisms"]:
        assert each["releases"] in implementation["mechanisms"]
        for run in each["runs"]:
            assert f"{run['count']} × noise multiplier {run['noise_multiplier']:.9g}" in implementation["mechanisms"]
    assert deployment["administrative"]["notes"] == certificate["audit"]["says"]
    assert deployment["administrative"]["registry_authors"] == ["City of X", "Office: Y"]


def test_no_text_is_folded():
    """The registry refuses folded scalars; texts of several lines are literal blocks."""
    text = to_yaml(entry_of(made_certificate(), OWNER))
    tokens = [token for token in yaml.scan(text) if isinstance(token, yaml.ScalarToken)]
    assert {token.style for token in tokens} <= {None, "|", "'", '"'}
    assert all(token.style == "|" for token in tokens if "\n" in token.value)


def test_slugs_are_made_as_there():
    assert slug("Births of 2014!", ("Ministry of Health", "Office"), "2024-02-01") == (
        "births-of-2014--ministry-of-health-office-2024"
    )
    entry = entry_of(made_certificate(), OWNER)
    assert entry.url_slug.endswith("-city-of-x-office-y-" + entry.deployment.basic.publication_date[:4])


def test_a_sector_that_is_not_listed_is_refused_and_none_is_left_out():
    owner = {**vars(OWNER), "sector": "Transport"}
    with pytest.raises(UnknownSector, match="Technology, Healthcare"):
        entry_of(made_certificate(), Owner(**owner))
    document = written(made_certificate(), Owner(**{**owner, "sector": None}))
    assert "data_product_sector" not in document["deployment"]["basic"]


def _with(document, path, value):
    changed = copy.deepcopy(document)
    at = changed
    for name in path[:-1]:
        at = at[name]
    at[path[-1]] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("surprise",), "x"),
        (("tier",), 4),
        (("status",), "Published"),
        (("url_slug",), "two words"),
        (("deployment", "basic", "publication_date"), "2026-13-01"),
        (("deployment", "basic", "data_curators"), []),
        (("deployment", "basic", "data_product_type"), "Generator"),
        (("deployment", "basic", "name"), ""),
        (("deployment", "privacy_loss", "privacy_parameters"), {"epsilon": "2"}),
        (("deployment", "deployment_model", "release_type"), "Some releases"),
        (("deployment", "administrative", "registry_authors"), []),
        (("deployment", "accounting", "theorem"), "x"),
    ],
)
def test_the_schema_refuses_what_the_registry_refuses(path, value):
    document = written(made_certificate())
    Entry.model_validate(document)
    with pytest.raises(ValidationError):
        Entry.model_validate(_with(document, path, value))
