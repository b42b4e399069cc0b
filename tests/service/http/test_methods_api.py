"""What may be ordered, as the API says it: `/v1/methods`, and the component `Order` of the OpenAPI document."""

import jsonschema_rs
import pytest

from service.methods.catalogue import CATALOGUE, ORDERS
from service.methods.interface import Method
from tests.service.http.test_datasets_api import _assert_problem

NEEDED = {"questions": [{"kind": "count"}], "candidates": [{"method": "marginals"}]}
"""Knobs without a default."""


@pytest.fixture
def methods(api):
    reply = api.http.get("/v1/methods", headers=api.reader)
    assert reply.status_code == 200, reply.text
    return {method["name"]: method for method in reply.json()["items"]}


@pytest.fixture
def schemas(api):
    return api.http.get("/openapi.json").json()["components"]["schemas"]


def test_every_method_of_the_catalogue_is_described(methods):
    assert list(methods) == list(CATALOGUE)
    for name, method in methods.items():
        card = CATALOGUE[name].card
        assert set(method["takes"]) == CATALOGUE[name].takes
        assert {key: method[key] for key in ("summary", "makes", "source", "paper_holds", "cannot_learn")} == {
            "summary": card.summary,
            "makes": card.makes,
            "source": card.source,
            "paper_holds": card.paper_holds,
            "cannot_learn": card.cannot_learn,
        }
        assert method["takes_public_rows"] is ("public_dataset" in method["order"]["properties"])
        assert set(method["order"]["properties"]) == set(CATALOGUE[name].order.model_fields)


def test_the_schema_of_a_method_takes_its_orders_and_no_others(methods):
    for name, method in methods.items():
        assert jsonschema_rs.meta.is_valid(method["order"])
        takes = jsonschema_rs.validator_for(method["order"]).is_valid
        asked = {knob: value for knob, value in NEEDED.items() if knob in method["order"].get("required", ())}
        assert takes({"method": name, "epsilon": 1.0, **asked})
        assert not takes({"method": "other", "epsilon": 1.0, **asked})
        assert not takes({"method": name, "epsilon": -1, **asked})
        assert not takes({"method": name, "epsilon": 1.0, "nonsense": 1, **asked})


def test_what_takes_public_rows_is_what_an_order_may_read_besides_its_own(methods):
    reads = {name for name, method in CATALOGUE.items() if method.also_reads is not Method.also_reads}
    assert {name for name, method in methods.items() if method["takes_public_rows"]} == reads - {"choose"}
    assert {"idpgan", "dpgan"} <= reads


def test_methods_are_for_keys(api):
    _assert_problem(api.http.get("/v1/methods"), 401, "unauthenticated")


def test_the_document_takes_an_order_of_any_method_or_of_auto(schemas):
    order = schemas["Order"]
    names = {"auto", *CATALOGUE}
    assert order["discriminator"]["propertyName"] == "method"
    assert set(order["discriminator"]["mapping"]) == names == set(ORDERS)
    assert {choice["$ref"] for choice in order["oneOf"]} == set(order["discriminator"]["mapping"].values())
    for name, reference in order["discriminator"]["mapping"].items():
        schema = schemas[reference.rpartition("/")[2]]
        assert schema["properties"]["method"]["const"] == name
        assert set(schema["properties"]) == set(ORDERS[name].model_fields)


def test_an_order_fits_one_choice_of_the_document(schemas):
    document = {"$ref": "#/components/schemas/Order", "components": {"schemas": schemas}}
    takes = jsonschema_rs.validator_for(document).is_valid
    assert takes({"epsilon": 4})
    asked = {"queries": {"questions": NEEDED["questions"]}, "choose": {"candidates": NEEDED["candidates"]}}
    assert all(takes({"method": name, "epsilon": 4, **asked.get(name, {})}) for name in ORDERS)
    assert not takes({"method": "queries", "epsilon": 4})
    assert not takes({"method": "choose", "epsilon": 4, "candidates": [{"method": "queries"}]})
    assert not takes({"method": "ctgan", "epsilon": 4})
    assert not takes({"method": "mixture", "epsilon": 4, "pairs": "all"})
