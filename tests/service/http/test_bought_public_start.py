"""A table whose bounds and categories were bought begins from public rows, which are read by them."""

from __future__ import annotations

import json

import pytest

from tests.service.http.test_bought_declarations import OPEN, bought, carried_out, fields_of, read, uploaded
from tests.service.http.test_public_datasets import refused
from tests.service.pages.conftest import browser_of
from tests.service.pages.test_public_rows_pages import choices
from workers.encoding.table import TableDomain
from workers.methods.idpgan import run as idpgan_run

__all__ = ["browser_of"]

pytestmark = pytest.mark.slow

PUBLIC = {
    "fields": [
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 150, "required": True}},
        {"name": "income", "type": "number", "decimals": 0, "constraints": {"minimum": 0, "maximum": 10_000_000}},
        {"name": "city", "type": "string", "constraints": {"enum": ["Paris", "Oslo", "Bonn"], "required": True}},
        {"name": "smoker", "type": "boolean"},
        {"name": "born", "type": "date", "constraints": {"minimum": "1850-01-01", "maximum": "2030-12-31"}},
    ]
}
ROWS = "age,income,city,smoker,born\n130,9000000,Paris,true,1860-05-05\n31,1500,Oslo,false,2001-01-01\n" + "".join(
    f"{40 + n % 20},{2000 + 31 * n},{('Oslo', 'Bonn', 'Paris')[n % 3]},{'true' if n % 2 else 'false'},19{50 + n % 50}-03-04\n"
    for n in range(60)
)


def public(api, schema, rows=ROWS):
    return uploaded(api, schema, rows, rows_are_public="true")["id"]


def changed(name, **words):
    return {"fields": [{**field, **words} if field["name"] == name else field for field in PUBLIC["fields"]]}


def start(api, private, public_id):
    networks = {"noise_dimension": 4, "generator_hidden": [8], "critic_hidden": [8]}
    return api.order(
        private,
        {
            "method": "idpgan",
            "epsilon": 1.0,
            "steps": 2,
            "sampling_probability": 0.1,
            "public_steps": 2,
            "networks": networks,
            "public_dataset": public_id,
        },
    )


@pytest.fixture
def private(api, context, signing_key):  # noqa: ARG001 - what signs certificates
    made = uploaded(api)
    bought(api, context, made)
    return made["id"]


@pytest.mark.parametrize("schema", [PUBLIC, OPEN], ids=["declared otherwise", "still open"])
def test_public_rows_are_read_by_what_was_bought(api, context, browser_of, private, schema, monkeypatch):
    begun = []
    original = idpgan_run._public_rows

    def seen(source, order, domain: TableDomain):
        begun.append((original(source, order, domain), domain))
        return begun[-1][0]

    monkeypatch.setattr(idpgan_run, "_public_rows", seen)
    fits = public(api, schema)
    page = browser_of(api.analyst).get(f"/datasets/{private}/order/knobs?method=idpgan")
    assert choices(page.text) == [fits]
    reply = start(api, private, fits)
    assert reply.status_code == 202, reply.text
    release = carried_out(api, context, reply.json())
    assert release["state"] == "published", release
    ((rows, domain),) = begun
    first, second = rows.codes[0], rows.codes[1]
    columns = dict(zip(domain.names, domain.columns, strict=True))
    cities = columns["city"].values
    assert cities == tuple(fields_of(read(api, {"id": private}))["city"]["constraints"]["enum"])
    place = domain.names.index("city")
    assert cities[first[place]] == "other"  # Paris, which was not bought
    assert cities[second[place]] == "Oslo"
    for name in ("age", "income"):
        top = columns[name].size - columns[name].missing - 1
        assert first[domain.names.index(name)] == top  # beyond the bound
    assert first[domain.names.index("born")] == 0


def test_what_was_declared_is_still_to_be_the_same(api, private):
    says = "'smoker' has another constraints.required there"
    assert says in refused(start(api, private, public(api, changed("smoker", constraints={"required": True}))))


@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("age", {"constraints": {"minimum": 0, "maximum": 150}}, "'age' has another constraints.required there"),
        ("born", {"type": "string", "constraints": {"enum": ["1860-05-05"]}}, "'born' has another type there"),
    ],
)
def test_values_that_this_table_could_not_have_are_refused(api, private, name, words, says):
    rows = "age,income,city,smoker,born\n" + "".join(f"{n},5,Oslo,true,1860-05-05\n" for n in range(90))
    assert says in refused(start(api, private, public(api, changed(name, **words), rows)))


def test_what_is_open_there_and_declared_here_is_refused(api, signing_key):  # noqa: ARG001
    here = uploaded(api, PUBLIC, ROWS, budget=json.dumps({"epsilon": 3.0}))["id"]
    other = "age,income,city,smoker,born\n" + "".join(f"{n},{7 * n},Oslo,true,1990-01-01\n" for n in range(90))
    assert "of 'age' bounds or categories are still open in the other one" in refused(
        start(api, here, public(api, OPEN, other))
    )
