"""Columns that no generator learns are named, with what becomes of them, in certificate, card and page."""

from __future__ import annotations

import copy

from imprimatur.cli.certificates import as_text
from imprimatur.explanation import Names, page
from service.domain.outcomes import outcomes
from service.domain.table_schema import parse_table_schema
from tests.certificates import SCHEMA, made_certificate
from workers.encoding.table import TableDomain
from workers.generators.markdown import escaped
from workers.generators.table.card import table_card

MODELLED = SCHEMA["fields"]
OTHERS = [
    {"name": "twice", "type": "integer", "role": "derived"},
    {"name": "row", "type": "integer", "role": "ignore"},
    {"name": "patient", "type": "string", "role": "identifier", "pattern": "P[0-9]{6}"},
    {"name": "<b>note</b>", "type": "string", "role": "free_text", "placeholder": "(a note)"},
    {"name": "remark", "type": "string", "role": "free_text"},
    {"name": "diagnosis", "type": "string", "hierarchy": {"I": ["I10", "I20"], "J": ["J00"]}},
    {"name": "shade", "type": "string", "constraints": {"enum": ["warm", "cold"]}},
]
RELATIONS = [
    "twice = size * 2",
    {"column": "shade", "by": "colour", "table": {"red": "warm", "green": "cold"}},
]
WHOLE = {"fields": [*MODELLED, *OTHERS], "relations": RELATIONS}
SAID = {
    "twice": "computed: twice = size * 2",
    "row": "left out: not stored, and not in synthetic rows",
    "patient": "made anew: other unique values in the declared pattern P[0-9]{6}",
    "<b>note</b>": "not stored: the declared placeholder stands in every synthetic row",
    "remark": "left out: not stored, and not in synthetic rows",
    "diagnosis": "2 coarse categories are modelled; the finer ones are drawn by their declared shares",
    "shade": "looked up: follows from 'colour' by a declared table of 2 entries",
}


def test_each_column_that_is_not_modelled_is_said():
    schema = parse_table_schema(WHOLE)
    assert outcomes(schema) == SAID
    assert {name for name in schema.names if name not in schema.modelled.names} == set(SAID) - {"diagnosis"}
    assert outcomes(parse_table_schema(SCHEMA)) == {}


def test_certificate_card_and_page_name_them():
    certificate = made_certificate(table=WHOLE)
    assert {each["column"]: each["becomes"] for each in certificate["not_modelled"]} == SAID
    domain = TableDomain.from_schema(parse_table_schema(WHOLE), numeric_bins=8)
    card = table_card(domain=domain, condition=None, certificate=certificate, order={"method": "marginals"})
    shown = page(certificate, Names("table", "first"))
    lines = "\n".join(as_text(certificate))
    for name, said in SAID.items():
        assert f"{name!r}: {said}" in lines
        assert said.replace("'", "&#x27;") in shown
        assert f"| {escaped(name)} | {escaped(said)} |" in card
    assert "<b>" not in shown + card.replace("\\<b", "")


def test_where_every_column_is_modelled_nothing_is_added():
    certificate = made_certificate()
    assert certificate["not_modelled"] == []
    assert made_certificate(image=True)["not_modelled"] == []
    domain = TableDomain.from_schema(parse_table_schema(SCHEMA), numeric_bins=8)
    earlier = copy.deepcopy(certificate)
    del earlier["not_modelled"]
    order = {"method": "marginals"}
    for each in (certificate, earlier):
        assert "becomes" not in table_card(domain=domain, condition=None, certificate=each, order=order)
        assert "Columns that the generator does not learn" not in page(each, Names("table", "first"))
