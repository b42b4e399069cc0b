"""Image datasets through HTTP: what is kept, what is refused, and that a refusal keeps nothing."""

import json
import uuid

import numpy as np
import pytest

from service.domain.shapes import ImageShape
from service.privacy.statements import default_delta
from service.releases import repository
from tests.tiny_images import idx_pair, image_schema, make_images, npz, pictures

pytestmark = pytest.mark.slow

MARKER = b"Zanzibar-90210"


@pytest.fixture
def upload(api):
    def send(content, schema=None, **fields):
        return api.upload(content, schema=json.dumps(schema or image_schema()), **fields)

    return send


def test_images_become_a_dataset_and_are_stored_encrypted(api, context, upload):
    pixels, labels = make_images()
    reply = upload(npz(pixels, labels))
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert (body["units"], body["schema"], body["notices"]) == (12, image_schema(), [])
    read = api.http.get(f"/v1/datasets/{body['id']}", headers=api.reader).json()
    assert read["schema"] == image_schema()
    stored = [context.storage.get(key) for key in context.storage.list("datasets")]
    assert len(stored) == 2  # the images, and the upload as it came
    assert not any(pixels[0].tobytes() in content for content in stored)
    assert all(len(content) > pixels.size for content in stored)


def test_a_declaration_of_images_is_replaced(api, upload):
    dataset = upload(npz(*make_images())).json()
    more = image_schema() | {"classes": image_schema()["classes"] + 1}
    reply = api.http.put(f"/v1/datasets/{dataset['id']}/declaration", json={"schema": more}, headers=api.owner)
    assert (reply.status_code, reply.json().get("schema")) == (200, more), reply.text
    wrong = {"schema": image_schema() | {"height": 7}}
    reply = api.http.put(f"/v1/datasets/{dataset['id']}/declaration", json=wrong, headers=api.owner)
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_file")


def test_the_same_pictures_in_another_format_have_one_budget(upload):
    pixels, labels = make_images()
    first = upload(pictures(pixels, labels)).json()["id"]
    for content in (npz(pixels[::-1], labels[::-1]), idx_pair(pixels, labels)):
        again = upload(content, name="again")
        assert (again.status_code, again.json()["dataset_id"]) == (409, first)


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"schema": {"height": 7}}, 422, "invalid_file"),
        ({"schema": {"classes": 2}}, 422, "invalid_file"),
        ({"schema": {"channels": 3}}, 422, "invalid_file"),
        ({"schema": {"channels": 4}}, 422, "invalid_schema"),
        ({"content": MARKER}, 422, "invalid_file"),
        ({"privacy_unit": {"column": "who", "max_rows_per_unit": 2}}, 422, "invalid_input"),
    ],
)
def test_a_refused_upload_keeps_nothing(api, context, upload, change, status, code):
    content = change.get("content") or npz(*make_images())
    unit = change.get("privacy_unit")
    reply = upload(
        content, image_schema() | change.get("schema", {}), privacy_unit=None if unit is None else json.dumps(unit)
    )
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert MARKER not in reply.content
    assert list(context.storage.list("datasets")) == []
    assert list(context.settings.scratch_dir.iterdir()) == []
    assert api.http.get("/v1/datasets", headers=api.reader).json()["items"] == []


def test_a_method_for_tables_is_refused_before_anything_is_reserved(api, upload):
    dataset = upload(npz(*make_images())).json()["id"]
    reply = api.order(dataset, {"method": "marginals", "epsilon": 1})
    assert (reply.status_code, reply.json()["code"], reply.json()["where"]) == (422, "invalid_order", "method")
    fields = {"schema": json.dumps(image_schema()), "budget": '{"epsilon": 3}'}
    order = json.dumps({"method": "marginals", "epsilon": 1})
    reply = api.http.post(
        "/v1/publish", data={**fields, "order": order}, files={"file": ("x", npz(*make_images()))}, headers=api.owner
    )
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_order")
    assert len(api.http.get("/v1/datasets", headers=api.reader).json()["items"]) == 1, "the images were not read"
    reply = api.order(dataset, {"epsilon": 1, "condition_on": "label"})
    assert (reply.status_code, reply.json()["where"]) == (422, "condition_on")
    assert np.isclose(api.http.get(f"/v1/datasets/{dataset}/budget", headers=api.reader).json()["remaining_share"], 1)


@pytest.mark.parametrize(
    ("knobs", "where", "says"),
    [
        ({"networks": {"critic_hidden": [8]}}, "networks", "image_networks"),
        ({"image_networks": {"critic_channels": [2, 2, 2]}}, "image_networks.critic_channels", "halved 2 times"),
        ({"image_networks": {"critic_channels": [0]}}, "image_networks.critic_channels", "greater than or equal to 1"),
        ({"gradient_penalty_at": "everywhere"}, "gradient_penalty_at", "interpolates"),
        ({"adaptive_critic_steps": {"threshold": 1.5}}, "adaptive_critic_steps.threshold", "less than 1"),
        ({"condition_on": "label"}, "condition_on", "by class"),
        ({"purpose": "tables"}, "purpose", "leave it out"),
    ],
)
def test_knobs_that_these_images_do_not_allow_are_refused(api, upload, knobs, where, says):
    dataset = upload(npz(*make_images())).json()["id"]
    reply = api.order(dataset, {"method": "idpgan", "epsilon": 1, **knobs})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_order")
    assert reply.json()["where"].startswith(where)
    assert says in reply.json()["detail"]


def test_the_rest_of_a_budget_is_priced_for_the_list_that_will_run(api, upload):
    dataset = upload(npz(*make_images(400))).json()["id"]
    order = {"method": "idpgan", "share": "rest"}
    quote = api.http.post(f"/v1/datasets/{dataset}/quotes", json=order, headers=api.reader).json()
    assert quote["fits"]
    assert (quote["order"]["condition_on"], quote["order"]["image_networks"]["critic_channels"]) == ("label", [32])


def test_auto_means_the_mixture_and_a_quote_reserves_nothing(api, upload):
    dataset = upload(npz(*make_images())).json()["id"]
    quote = api.http.post(f"/v1/datasets/{dataset}/quotes", json={"epsilon": 1}, headers=api.reader).json()
    assert (quote["order"]["method"], quote["order"]["cells"], quote["steps"], quote["fits"]) == ("mixture", 1, 5, True)
    assert api.order(dataset, {"method": "mixture", "epsilon": 1}).status_code == 202
    budget = api.http.get(f"/v1/datasets/{dataset}/budget", headers=api.reader).json()
    assert 2.0 <= budget["largest_next_epsilon"] < 3.0, "the Rényi account has room for more than the difference"


def test_a_table_has_no_mixture_of_images(api, dataset_id):
    reply = api.order(dataset_id, {"method": "mixture", "epsilon": 1})
    assert (reply.status_code, reply.json()["where"]) == (422, "method")
    reply = api.order(dataset_id, {"method": "idpgan", "epsilon": 1, "image_networks": {}})
    assert (reply.status_code, reply.json()["where"]) == (422, "image_networks")
    reply = api.order(dataset_id, {"method": "idpgan", "epsilon": 1, "warm_start": {"kind": "mixture"}})
    assert (reply.status_code, reply.json()["where"]) == (422, "warm_start")


PEOPLE = [f"person {i // 3}" for i in range(12)]


def test_units_of_images_are_counted_and_stored_and_decide_the_shape(context, upload):
    pixels, labels = make_images()
    unit = {"max_images_per_unit": 2}
    reply = upload(npz(pixels, labels, units=np.array(PEOPLE)), privacy_unit=json.dumps(unit))
    assert reply.status_code == 201, reply.text
    body = reply.json()
    assert (body["units"], body["privacy_unit"], body["delta"]) == (4, unit, default_delta(4))
    assert body["notices"] == ["4 units have more than 2 images; of each, only 2 are used."]
    rows, upload_as_it_came = (context.storage.get(key) for key in sorted(context.storage.list("datasets")))
    assert b"person" not in rows + upload_as_it_came
    with context.driver() as connection:
        tenant = connection.execute("SELECT tenant_id FROM datasets").fetchone()[0]
        ground = repository.find_ground(connection, tenant, uuid.UUID(body["id"]))
    assert ground.facts.shape(32) == ImageShape(6, 5, 1, 3, max_images_per_unit=2)


def test_training_on_very_many_images_of_a_unit_is_refused_at_the_order(api, upload):
    pixels, labels = make_images()
    unit = json.dumps({"max_images_per_unit": 101})
    dataset = upload(pictures(pixels, labels, units=PEOPLE), privacy_unit=unit).json()["id"]
    reply = api.order(dataset, {"method": "idpgan", "epsilon": 1})
    assert (reply.status_code, reply.json()["where"]) == (422, "method")
    assert "at most 100 images of a unit" in reply.json()["detail"]
    assert api.order(dataset, {"epsilon": 1}).status_code == 202


@pytest.mark.parametrize(
    ("units", "unit", "code", "says"),
    [
        (None, {"max_images_per_unit": 2}, "invalid_file", "does not say whose"),
        (PEOPLE, None, "invalid_file", "no privacy unit is declared"),
        ([*PEOPLE[:-2], "NA", ""], {"max_images_per_unit": 2}, "invalid_file", "2 images have no unit id"),
        (PEOPLE, {"max_images_per_unit": 0}, "invalid_input", "greater than or equal to 1"),
        (PEOPLE, {"max_images_per_unit": 2, "missing": "drop"}, "invalid_input", "refuse"),
        (PEOPLE, {"column": "unit", "max_rows_per_unit": 2}, "invalid_input", "max_images_per_unit"),
    ],
)
def test_units_that_do_not_fit_are_refused(api, upload, units, unit, code, says):
    content = pictures(*make_images(), units=units)
    reply = upload(content, privacy_unit=None if unit is None else json.dumps(unit))
    assert (reply.status_code, reply.json()["code"]) == (422, code)
    assert says in reply.json()["detail"]
    assert api.http.get("/v1/datasets", headers=api.reader).json()["items"] == []
