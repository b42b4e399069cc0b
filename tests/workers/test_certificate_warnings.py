"""What must be said beside a promise is in the signed certificate, and in the model cards made from it."""

from __future__ import annotations

import re

import pytest

from imprimatur.verify.signatures import UNSIGNED, verify_signature
from service.domain.image_schema import ImageSchema
from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import CATALOGUE
from service.privacy.filters import open_budget
from service.privacy.statements import statement_warnings
from tests.certificates import made_certificate
from workers.encoding.table import TableDomain
from workers.generators.image.card import image_card
from workers.generators.markdown import escaped
from workers.generators.table.card import table_card

SCHEMA = {"fields": [{"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"]}}]}


def certificate(epsilon: float, delta: float, units: int, release_epsilon: float):
    order = {"method": "marginals", "epsilon": release_epsilon, "pairs": "all"}
    return made_certificate(order, budget=open_budget(epsilon, delta), units=units)


def test_a_large_promise_is_signed_with_its_warnings_and_the_cards_repeat_them():
    made = certificate(15.0, 1 / 2_000, 200, 12.0)
    assert made["warnings"] == statement_warnings(epsilon=15.0, delta=1 / 2_000, units=200, release_epsilon=12.0)
    assert [warning.split(" is above")[0] for warning in made["warnings"]] == [
        "ε = 15 for everything that is released from this dataset",
        "ε = 12 for this release alone",
        "δ = 0.0005",
    ]
    signed = {name: value for name, value in made.items() if name not in UNSIGNED}
    assert verify_signature(signed, made["signature"], made["public_key"])
    assert not verify_signature({**signed, "warnings": []}, made["signature"], made["public_key"])
    for card in cards(made):
        assert all(f"- Warning: {warning}\n" in card for warning in made["warnings"])


def test_an_ordinary_promise_has_none():
    made = certificate(3.0, 1e-9, 20_000, 1.0)
    assert made["warnings"] == []
    for card in cards(made):
        assert "Warning" not in card


@pytest.mark.parametrize("old", [{"epsilon": 1.0, "delta": 1e-6}, {}])
def test_a_certificate_from_before_has_a_card_as_well(old):
    for card in cards(old):
        assert "Warning" not in card


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_method_is_described_on_its_card(name):
    makes = CATALOGUE[name].card
    for card in cards(certificate(3.0, 1e-6, 200, 1.0), name):
        assert f"This ZIP holds {makes.makes}. " in card
        assert f"by the method `{name}`" in card
        section = card.split("## The method")[1].split("\n## ")[0]
        assert all(words in section for words in (makes.summary, makes.source, makes.paper_holds))
        assert makes.cannot_learn in section
        says_so = name in {"marginals", "choose", "image_release", "gswgan", "declaration"}
        assert ("What it cannot learn: " in section) == (makes.cannot_learn != "") == says_so
        assert card.count("\n## ") == len(set(re.findall(r"^## .*", card, re.MULTILINE)))


def cards(made, method=None):
    domain = TableDomain.from_schema(parse_table_schema(SCHEMA), numeric_bins=8)
    yield table_card(domain=domain, condition=None, certificate=made, order={"method": method or "marginals"})
    images = ImageSchema.model_validate({"type": "image", "height": 4, "width": 4, "channels": 1})
    yield image_card(schema=images, certificate=made, order={"method": method or "mixture"})


def test_a_release_that_buys_next_to_nothing_says_so_in_certificate_and_card():
    made = made_certificate(
        {"method": "marginals", "epsilon": 1e-4, "pairs": "none"}, budget=open_budget(3.0, 1e-6), units=200
    )
    assert made["forecast"]["sentences"]
    assert made["forecast"]["one_way"]["off_by"] > 200
    assert any("next to nothing" in warning for warning in made["warnings"])
    for card in cards(made):
        assert "next to nothing" in card
        assert "## How far off counts are" in card


def test_names_in_warnings_and_forecasts_are_shown_and_not_carried_out():
    name = "![x](http://evil.example/pixel.png)"
    made = certificate(3.0, 1e-6, 200, 1.0)
    made |= {"warnings": [f"lost: {name}"], "forecast": {"sentences": [f"Of {name}."]}}
    for card in cards(made):
        assert name not in card
        assert card.count(escaped(name)) == 2


@pytest.mark.parametrize("place", [None, 0, 1])
def test_a_card_says_whether_its_own_generator_was_trained_on_public_rows(place):
    made = certificate(3.0, 1e-6, 200, 1.0) | {"public_dataset": {"id": "an id", "name": "older*"}}
    order = {"method": "idpgan", "public_dataset": "an id"}
    if place is not None:
        made |= {"choice": {"form": "parts", "candidate": place, "candidates": 2}}
        order = {"method": "choose", "candidates": [{"method": "idpgan"}, order]}
    domain = TableDomain.from_schema(parse_table_schema(SCHEMA), numeric_bins=8)
    card = table_card(domain=domain, condition=None, certificate=made, order=order)
    is_trained = place != 0
    assert ("It was first trained on the dataset an id (older\\*)" in card) == is_trained
    assert ("what is drawn may repeat them" in card) == is_trained
    assert (
        "It was not trained on public rows. A candidate that was not chosen begins from the dataset an id" in card
    ) != (is_trained)
