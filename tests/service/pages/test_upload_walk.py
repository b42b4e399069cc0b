"""A table from a file to a dataset, through the page alone: three steps, nothing typed is lost, and no cell leaves its owner."""

import base64
import html
import io
import json
import re
import time
import uuid
import zipfile
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from PIL import Image
from sqlalchemy import insert, select

from service.auth.models import ApiKey
from service.auth.principal import Principal
from service.base.errors import NotFound, RateLimited
from service.datasets import staging
from service.http.app import create_app
from service.intake.sealed import SealedFile
from service.pages import sample_table
from service.upkeep.installation import owner_transaction
from service.upkeep.sweep import sweep
from tests.service.http.conftest import TABLE
from tests.service.pages.conftest import Browser
from tests.tiny_images import make_images, npz

PATIENCE_SECONDS = 300
WAYS = {"several": "no", "declared": "on"}
CELL = "Quedlinburg-Ost"
PRIVATE = "town,age,email\n" + "".join(
    f"{CELL if n % 2 else 'Bonn'},{20 + n % 60},person{n}@private.example\n" for n in range(80)
)


def send(browser, table=TABLE, name="people.csv", **headers):
    """The form of the first step, as a browser without scripts sends it: the token first."""
    return browser.http.post(
        "/datasets/new",
        data={"csrf_token": browser.token()},
        files={"file": (name, table.encode() if isinstance(table, str) else table)},
        headers=headers,
    )


def once_read(browser, reply):
    """The page that follows the draft, which on a busy machine comes behind one that says how far it is."""
    last = time.monotonic() + PATIENCE_SECONDS
    while reply.url.path.endswith("/reading") and time.monotonic() < last:
        time.sleep(0.5)
        reply = browser.get(reply.url.path)
    return reply


def values_of(page):
    """What a browser would send of the page's form, as it is filled in."""
    form = page.split("<form")
    form = max(form, key=len)
    found = {}
    for tag in re.findall(r"<input[^>]*>", form):
        name, kind = re.search(r'name="([^"]+)"', tag), re.search(r'type="(\w+)"', tag)
        if name is None or (kind and kind[1] in {"checkbox", "radio"} and " checked" not in tag):
            continue
        value = re.search(r'value="([^"]*)"', tag)
        found[name[1]] = html.unescape(value[1]) if value else "on"
    for name, text in re.findall(r'<textarea[^>]*name="([^"]+)"[^>]*>(.*?)</textarea>', form, re.DOTALL):
        found[name] = html.unescape(text).replace("\n", "\r\n")
    for name, options in re.findall(r'<select[^>]* name="([^"]+)"[^>]*>(.*?)</select>', form, re.DOTALL):
        chosen = re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', options)
        first = re.search(r'<option(?: value="([^"]*)")?>([^<]*)', options)
        chosen = chosen or first
        found[name] = html.unescape(chosen[2] if chosen[1] is None else chosen[1])
    return found


def all_public(page):
    return {f"c{place}.public": "on" for place in re.findall(r'name="c(\d+)\.public"', page)}


@pytest.fixture
def owner(api, browser_of):
    return browser_of(api.owner)


@pytest.fixture
def staged(owner):
    """The second step of the usual table."""
    reply = send(owner)
    assert reply.status_code == 200, reply.text
    return reply


def declared(owner, page, **more):
    return owner.post(
        page.url.path, {**values_of(page.text), **all_public(page.text), **WAYS, "step": "continue", **more}
    )


# -- the whole way ------------------------------------------------------------------------------------------------------


def test_from_a_file_to_a_dataset_in_three_steps(api, owner, staged):
    assert staged.url.path.endswith("/declare")
    assert ">Oslo<" in staged.text
    budget = declared(owner, staged)
    assert budget.url.path.endswith("/budget")
    assert "The budget is for ever" in budget.text
    assert budget.text.index("The budget is for ever") < budget.text.index('value="publish"')
    assert "at most 95.3 in 100" in budget.text
    sent = {**values_of(budget.text), "step": "publish", "epsilon": "2,5"}
    assert sent["name"] == "people"
    done = owner.post(budget.url.path, sent)
    assert done.status_code == 200
    assert "Published: people" in done.text
    (dataset,) = api.http.get("/v1/datasets", headers=api.reader).json()["items"]
    assert (dataset["epsilon"], dataset["units"]) == (2.5, 200)
    assert "DRAFT" not in json.dumps(dataset["schema"])
    assert [field["type"] for field in dataset["schema"]["fields"]] == [
        "integer",
        "integer",
        "string",
        "boolean",
        "date",
    ]
    assert f"/datasets/{dataset['id']}/order" in done.text
    again = owner.post(budget.url.path, sent)
    assert again.url.path == f"/datasets/{dataset['id']}"


def test_nothing_of_it_is_left_once_it_is_published(context, owner, staged):
    budget = declared(owner, staged)
    assert len(list(context.storage.list(staging.STAGED))) == 3
    owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    assert list(context.storage.list(staging.STAGED)) == []


def test_the_sample_is_published_in_three_clicks_by_every_tenant(api, browser_of):
    for key in (api.owner, api.stranger):
        browser = browser_of(key)
        assert "Try with sample data" in browser.get("/").text
        page = browser.post("/datasets/new/sample")
        budget = browser.post(page.url.path, {**values_of(page.text), "step": "continue"})
        done = browser.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
        assert "Published: Sample" in done.text, done.text
        assert "made up" in browser.get("/").text


def test_the_sample_follows_its_own_declaration_whatever_is_drawn():
    fields = {field["name"]: field for field in sample_table.SCHEMA["fields"]}
    for seed in range(20):
        for row in sample_table.sample_rows(seed):
            for (name, field), cell in zip(fields.items(), row, strict=True):
                said = field["constraints"]
                assert cell or not said.get("required"), name
                if cell and "enum" in said:
                    assert cell in said["enum"]
                if cell and "minimum" in said and field["type"] in {"integer", "number"}:
                    assert said["minimum"] <= float(cell) <= said["maximum"]


def test_first_start_offers_both_ways_to_an_owner_alone(api, browser_of):
    owner, analyst = (browser_of(key).get("/").text for key in (api.owner, api.analyst))
    assert "Publish your first table" in owner
    assert 'href="/datasets/new"' in owner
    assert "/datasets/new" not in analyst
    assert "An owner of your tenant" in analyst


def shown_pictures(page):
    """What stands under each of the first images, and its first pixel."""
    found = re.findall(r'<img src="data:image/png;base64,([^"]+)"[^>]*><small>([^<]*)</small>', page)
    opened = [(said, Image.open(io.BytesIO(base64.b64decode(png)))) for png, said in found]
    return [(said, picture.getpixel((0, 0))) for said, picture in opened]


def test_images_are_declared_as_a_whole(api, owner):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number in range(6):
            picture = io.BytesIO()
            Image.new("L", (8, 8), 40 * number).save(picture, "PNG")
            archive.writestr(f"{number}.png", picture.getvalue())
        archive.writestr("labels.csv", "file,label\n" + "".join(f"{n}.png,{'ab'[n % 2]}\n" for n in range(6)))
    page = send(owner, content.getvalue(), "scans.zip")
    assert "Say what the images are" in page.text, page.text
    assert "The first images of your file" in page.text
    assert [(f"{place}: {'ab'[place % 2 - 1]}", 40 * (place - 1)) for place in range(1, 7)] == shown_pictures(page.text)
    fields = {name: value for name, value in values_of(page.text).items() if name.startswith("image.")}
    assert fields == {"image.width": "8", "image.height": "8", "image.channels": "1", "image.classes": "a\r\nb"}
    assert "A person with several rows" not in page.text
    typed = json.loads(values_of(page.text)["json"]) | {"classes": ["a", "b", "d"]}
    page = owner.post(page.url.path, {**values_of(page.text), "json": json.dumps(typed), "step": "json"})
    assert values_of(page.text)["image.classes"] == "a\r\nb\r\nd"
    typed = {"image.classes": "a\r\nb\r\nc\r\n", "image.height": "many", "declared": "on", "several": "no"}
    page = owner.post(page.url.path, {**values_of(page.text), **typed, "step": "continue"})
    assert page.status_code == 422
    assert values_of(page.text)["image.height"] == "many"  # nothing that was typed is lost
    page = owner.post(page.url.path, {**values_of(page.text), "image.height": "8", "step": "save"})
    budget = declared(owner, page)
    assert "Published: scans" in owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"}).text
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    assert dataset["schema"] == {"type": "image", "height": 8, "width": 8, "channels": 1, "classes": ["a", "b", "c"]}
    page = owner.get(f"/datasets/{dataset['id']}").text
    assert "Images of 8 × 8 pixels, in grey. Classes: a, b, c." in " ".join(page.split())
    priced = owner.post(f"/datasets/{dataset['id']}/order", {"method": "auto", "epsilon": "1", "step": "quote"}).text
    assert "There are too few images for this ε" in priced
    assert "report-noise" not in priced  # of tables alone
    assert f"imprimatur erase {dataset['id'][:8]}" in page


def test_images_without_labels_are_told_how_labels_come(owner):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for number in range(4):
            picture = io.BytesIO()
            Image.new("L", (8, 8), 40 * number).save(picture, "PNG")
            archive.writestr(f"{number % 2}/{number}.png", picture.getvalue())
    assert "names of folders are not read" in send(owner, content.getvalue(), "scans.zip").text


def test_a_fault_of_the_declaration_leads_to_its_place(owner):
    page = send(owner, b"age,sex\n31,f\n42,m\n53,f\n64,m\n")
    typed = values_of(page.text)
    page = owner.post(page.url.path, {**typed, "step": "continue"})
    assert "3 things are still to be said or mended" in page.text
    assert re.findall(r'<li>[^<]*<a href="([^"]+)">Go there', page.text) == ["#column-0", "#unit", "#declared"]
    page = owner.post(page.url.path, {**values_of(page.text), "c0.low": "x", "several": "yes", "step": "continue"})
    assert re.findall(r'<a href="([^"]+)">Go there', page.text) == ["#column-0"] * 2 + ["#unit"] * 2 + ["#declared"]
    page = owner.post(
        page.url.path,
        {
            **values_of(page.text),
            **typed,
            "several": "",
            "version": values_of(page.text)["version"],
            "step": "continue",
        },
    )
    assert 'href="#unit"' in page.text
    assert 'id="unit"' in page.text
    page = owner.post(page.url.path, {**values_of(page.text), "several": "no", "step": "continue"})
    assert 'href="#column-0"' in page.text
    assert 'id="column-0"' in page.text
    ticked = {"c0.public": "on", "c1.public": "on"}
    page = owner.post(page.url.path, {**values_of(page.text), **ticked, "step": "continue"})
    assert 'href="#declared"' in page.text
    assert 'id="declared"' in page.text


# -- who sees what ------------------------------------------------------------------------------------------------------


def addresses(staged_path):
    base = staged_path.removesuffix("/declare")
    return ["/", "/datasets", "/datasets/new", base, f"{base}/declare", f"{base}/budget"]


def test_no_page_of_anybody_else_holds_a_cell_of_a_staged_file(api, browser_of, owner):
    page = send(owner, PRIVATE, "secret name.csv")
    assert CELL in page.text
    assert "person0@private.example" in page.text
    assert page.headers["cache-control"] == "no-store"
    second = api.http.post("/v1/keys", json={"name": "second", "scope": "owner"}, headers=api.owner).json()["key"]
    others = [api.analyst, api.reader, api.stranger, {"Authorization": f"Bearer {second}"}]
    for key in others:
        browser = browser_of(key)
        for path in addresses(page.url.path):
            for reply in (browser.get(path), browser.post(path, {**WAYS, "step": "continue", "version": "0"})):
                for text in (CELL, "private.example", "secret name"):
                    assert text not in reply.text, (path, reply.status_code)
        assert browser.get(page.url.path).status_code in {403, 404}
        assert browser.post(page.url.path.replace("declare", "discard")).status_code in {200, 403}
    assert CELL in owner.get(page.url.path).text


def test_nobody_else_sees_the_first_images_of_a_staged_file(api, browser_of, owner):
    pixels, labels = make_images()
    page = send(owner, npz(pixels, labels), "scans.npz")
    assert "data:image/png" in page.text
    assert page.headers["cache-control"] == "no-store"
    assert "img-src 'self' data:" in page.headers["content-security-policy"]
    second = api.http.post("/v1/keys", json={"name": "second", "scope": "owner"}, headers=api.owner).json()["key"]
    for key, status in (
        (api.analyst, 403),
        (api.reader, 403),
        (api.stranger, 404),
        ({"Authorization": f"Bearer {second}"}, 404),
    ):
        browser = browser_of(key)
        assert browser.get(page.url.path).status_code == status
        for path in addresses(page.url.path):
            assert "data:image/png" not in browser.get(path).text, path
    page = owner.post(page.url.path, {**values_of(page.text), **WAYS, "step": "continue"})
    done = owner.post(page.url.path, {**values_of(page.text), "step": "publish"})
    assert "Published: scans" in done.text
    listed = owner.get("/datasets").text
    (dataset,) = re.findall(r'href="(/datasets/[0-9a-f-]{36})"', listed)
    for text in (done.text, listed, owner.get(dataset).text):
        assert "data:image/png" not in text


def test_an_analyst_stages_nothing(api, browser_of, context):
    for key in (api.analyst, api.reader):
        browser = browser_of(key)
        assert browser.get("/datasets/new").status_code == 403
        assert send(browser).status_code == 403
        assert browser.post("/datasets/new/sample").status_code == 403
    assert list(context.storage.list(staging.STAGED)) == []


def test_nothing_of_it_rests_unencrypted(context, owner):
    send(owner, PRIVATE, "secret name.csv")
    stored = b"".join(context.storage.get(key) for key in context.storage.list(staging.STAGED))
    assert len(stored) > len(PRIVATE)
    with owner_transaction(context.settings) as session:
        rows = session.connection().exec_driver_sql("SELECT to_json(s)::text FROM staged_uploads s").scalars().all()
    for text in (CELL, "private.example", "secret name"):
        assert text.encode() not in stored
        assert text not in rows[0]


def test_a_form_without_the_token_is_refused_before_a_byte_is_kept(api, browser_of, context):
    browser = browser_of(api.owner)
    for fields in ({}, {"csrf_token": "0" * 64}):
        reply = browser.http.post("/datasets/new", data=fields, files={"file": ("a.csv", TABLE)})
        assert reply.status_code == 403
    late = (
        '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\na,b\r\n1,2\r\n'
        f'--b\r\nContent-Disposition: form-data; name="csrf_token"\r\n\r\n{browser.token()}\r\n--b--\r\n'
    )
    headers = {"Content-Type": "multipart/form-data; boundary=b"}
    assert browser.http.post("/datasets/new", content=late.encode(), headers=headers).status_code == 403
    assert send(browser, **{"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert list(context.storage.list(staging.STAGED)) == []


# -- what a draft may not become ----------------------------------------------------------------------------------------


def test_what_was_read_from_the_rows_is_published_only_where_its_owner_says_that_it_is_public(api, owner, staged):
    path = staged.url.path
    filled = {**values_of(staged.text), **WAYS, "step": "continue"}
    reply = owner.post(path, filled)
    assert reply.status_code == 422
    assert "&#39;age&#39;, &#39;income&#39;" in reply.text
    page = owner.get(path)
    some = {**values_of(page.text), **all_public(page.text), **WAYS, "step": "continue"}
    del some["c1.public"]
    reply = owner.post(path, some)
    assert reply.status_code == 422
    assert "&#39;income&#39;: this was read from the rows" in reply.text
    assert owner.get(path.replace("declare", "budget")).url.path == path
    refused = owner.post(path.replace("declare", "budget"), {"version": "2", "name": "x", "epsilon": "1"})
    assert refused.status_code == 422
    assert api.http.get("/v1/datasets", headers=api.owner).json()["items"] == []


def test_a_declaration_is_ticked_and_says_who_is_one_person(owner, staged):
    page = declared(owner, staged, several="")
    assert (page.status_code, "one person" in page.text) == (422, True)
    filled = {**values_of(page.text), "several": "no", "step": "continue"}
    del filled["declared"]
    page = owner.post(staged.url.path, filled)
    assert page.status_code == 422
    assert "tick at the end that this is your declaration" in page.text
    assert declared(owner, page).url.path.endswith("/budget")


def test_a_person_with_several_rows(api, owner):
    table = "person,age\n" + "".join(f"p{n % 40},{20 + n % 50}\n" for n in range(160))
    page = send(owner, table)
    filled = {**all_public(page.text), "c1.low": "0", "c1.high": "120"}
    for wrong, said in (({"column": ""}, "Choose the column"), ({"most": "many"}, "whole number")):
        reply = declared(
            owner, page, several="yes", **{"column": "person", "most": "4", **filled, **wrong, "version": "9"}
        )
        assert reply.status_code == 409
        reply = declared(owner, reply, several="yes", **{"column": "person", "most": "4", **wrong})
        assert said in reply.text
        page = owner.get(page.url.path)
    budget = declared(owner, page, several="yes", column="person", most="4", **filled)
    assert "Published" in owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"}).text
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    assert (dataset["units"], dataset["privacy_unit"]) == (40, {"column": "person", "max_rows_per_unit": 4})
    assert [field["name"] for field in dataset["schema"]["fields"]] == ["age"]


def test_columns_are_declared_otherwise_than_they_were_read(api, owner, staged):
    changed = {
        "c0.low": "0", "c0.high": "120", "c0.missing": "-9\r\nunknown",
        "c1.use": "number",
        "c2.categories": "Bonn\r\nOslo\r\nRome\r\nParis", "c2.required": "",
        "c3.use": "ignore",
        "target": "city",
    }  # fmt: skip
    filled = {**values_of(staged.text), **all_public(staged.text), **WAYS, **changed, "step": "continue"}
    del filled["c2.required"]
    budget = owner.post(staged.url.path, filled)
    assert budget.url.path.endswith("/budget"), budget.text
    owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    age, income, city, smoker, _ = dataset["schema"]["fields"]
    assert age["constraints"] == {"minimum": 0, "maximum": 120, "required": True}
    assert age["missingValues"] == ["", "-9", "unknown"]
    assert income["type"] == "number"
    assert city["constraints"] == {"enum": ["Bonn", "Oslo", "Rome", "Paris"]}
    assert smoker == {"name": "smoker", "type": "string", "role": "ignore"}
    assert dataset["schema"]["target"] == "city"


def test_what_is_wrong_stays_as_it_was_typed(owner, staged):
    page = declared(owner, staged, **{"c0.low": "young", "c2.categories": "Bonn\r\nBonn"})
    assert page.status_code == 422
    for shown in (page.text, owner.get(staged.url.path).text):
        assert 'name="c0.low" value="young"' in shown
        assert "Bonn\nBonn" in shown
    page = declared(owner, page, **{"c0.low": "0"})
    assert "city" in page.text.split('role="alert"')[1][:400]
    assert declared(owner, page, **{"c2.categories": "Bonn\r\nOslo\r\nRome"}).url.path.endswith("/budget")


def test_a_type_that_is_tried_out_and_taken_back_loses_no_categories(owner, staged):
    page = owner.post(staged.url.path, {**values_of(staged.text), "c2.use": "free_text", "step": "save"})
    assert 'value="free_text" selected' in page.text
    page = owner.post(staged.url.path, {**values_of(page.text), "c2.use": "string", "step": "save"})
    assert "Bonn\nOslo\nRome" in page.text


def test_the_whole_schema_as_json(api, owner, staged):
    page = owner.post(staged.url.path, {**values_of(staged.text), "json": '{"fields": [', "step": "json"})
    assert "{&#34;fields&#34;: [" in page.text
    page = declared(owner, page)
    assert "not JSON" in page.text
    schema = {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}]}
    typed = {**values_of(page.text), "json": json.dumps(schema), **WAYS, "step": "continue"}
    page = owner.post(staged.url.path, typed)
    assert "is not in use yet" in page.text
    page = owner.post(staged.url.path, {**values_of(page.text), "step": "json"})
    assert page.text.count("data-column>") == 1
    budget = declared(owner, page)
    refused = owner.post(budget.url.path, {**values_of(budget.text), "name": "only ages", "step": "publish"})
    assert refused.status_code == 422
    assert "the schema does not declare" in html.unescape(refused.text)
    assert 'value="only ages"' in refused.text
    assert api.http.get("/v1/datasets", headers=api.owner).json()["items"] == []


def test_identifiers_and_texts_are_left_out_and_their_owner_told(api, owner):
    page = send(owner, PRIVATE)
    assert "e-mail addresses" in page.text
    budget = declared(owner, page)
    owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    (dataset,) = api.http.get("/v1/datasets", headers=api.owner).json()["items"]
    assert dataset["schema"]["fields"][2] == {"name": "email", "type": "string", "role": "identifier"}


# -- what goes wrong ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "The file is empty"),
        (b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj", "The file is PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "save it as .xlsx or CSV"),
        (b"34,Rome,2024-01-02\n35,Oslo,2024-01-03\n36,Bonn,2024-01-09\n", "The first line looks like a row"),
        (b"PK\x03\x04" + bytes(100), "The archive is damaged"),
    ],
)
def test_a_wrong_file_is_a_page_that_says_what_to_do(owner, content, said):
    whole = send(owner, content)
    assert whole.status_code == 422
    assert said in whole.text.split('role="alert"')[1]
    assert 'type="file"' in whole.text
    part = send(owner, content, **{"HX-Request": "true"})
    assert part.status_code == 422
    assert said in part.text
    assert "<html" not in part.text
    assert "Not published yet" not in owner.get("/datasets/new").text


def test_no_file_at_all(owner):
    empty = {"file": ("", b"")}
    reply = owner.http.post("/datasets/new", data={"csrf_token": owner.token()}, files=empty)
    assert reply.status_code == 422
    assert 'type="file"' in reply.text


def test_a_file_that_is_too_large_is_refused_as_a_page(api, context, database):
    settings = context.settings.model_copy(update={"database_url": database.api_url, "upload_limit_bytes": 3_000})
    browser = Browser(TestClient(create_app(settings), raise_server_exceptions=False))
    browser.sign_in(api.owner)
    assert "At most 2.9 KiB" in browser.get("/datasets/new").text
    refused = send(browser)
    assert refused.status_code == 413
    assert "larger than 3000 bytes" in refused.text.split('role="alert"')[1]
    assert 'type="file"' in refused.text
    part = send(browser, **{"HX-Request": "true"})
    assert (part.status_code, "<html" in part.text) == (413, False)


def test_a_row_that_is_uneven_is_named_with_what_can_be_done_on_the_page(owner):
    uneven = "sex;age;k\n" + "".join(f"m;{n};a\n" if n != 7 else "m;7\n" for n in range(40))
    refused = send(owner, uneven, **{"Accept-Language": "de"})
    assert refused.status_code == 422
    assert "(Zeile 8 unter der Kopfzeile). Berichtigen Sie diese Zeilen" in refused.text
    assert "dialect" not in refused.text


def test_a_form_that_is_too_large_is_refused_as_a_page(owner, staged, monkeypatch):
    monkeypatch.setattr("service.requests.uploads.MAX_JSON_BODY_BYTES", 1_000)
    reply = owner.post(staged.url.path, {**values_of(staged.text), "json": "x" * 2_000, "step": "json"})
    assert reply.status_code == 413
    assert "<h1>" in reply.text


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["utf-16", "cp1252", "utf-8-sig"])
def test_an_unusual_encoding_is_found_and_shown(owner, encoding):
    rows = "".join(f"{('Köln', 'Zürich', 'Genève')[n % 3]};{n % 40}\n" for n in range(200))
    page = send(owner, f"Städte;Größe\n{rows}".encode(encoding))
    assert ">Köln<" in page.text
    budget = declared(owner, page)
    assert "Published" in owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"}).text


def test_known_rows_are_a_conflict_and_what_was_typed_stays(owner, dataset_id):
    page = send(owner)
    budget = declared(owner, page)
    typed = {**values_of(budget.text), "name": "once more", "epsilon": "1.25", "step": "publish"}
    refused = owner.post(budget.url.path, typed)
    assert refused.status_code == 409
    assert "These rows already have a budget" in refused.text
    assert f'href="/datasets/{dataset_id}"' in refused.text
    for shown in (refused.text, owner.get(budget.url.path).text):
        assert 'value="once more"' in shown
        assert 'value="1.25"' in shown


def test_rows_that_only_look_alike_can_be_said_to_be_others(owner, dataset_id):
    lines = TABLE.splitlines()
    other = "\n".join(
        [lines[0], *(line.rsplit(",", 1)[0] + f",1933-01-{1 + n % 28:02}" for n, line in enumerate(lines[1:]))]
    )
    budget = declared(owner, send(owner, other))
    refused = owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    assert refused.status_code == 409
    assert f'name="distinct_from" value="{dataset_id}"' in refused.text
    done = owner.post(budget.url.path, {**values_of(refused.text), "distinct_from": dataset_id, "step": "publish"})
    assert "holds other people&#39;s rows" in done.text


def test_numbers_that_are_none_stay_in_their_fields(owner, staged):
    budget = declared(owner, staged)
    for wrong in ({"epsilon": "much"}, {"epsilon": "-1"}, {"epsilon": "1000"}, {"delta": "x"}, {"name": " "}):
        page = owner.get(budget.url.path)
        refused = owner.post(budget.url.path, {**values_of(page.text), **wrong, "step": "publish"})
        assert refused.status_code == 422, wrong
        ((name, value),) = wrong.items()
        assert re.search(rf'name="{name}"[^>]*value="{value}"', refused.text), wrong
    assert "a right guess" not in refused.text


def test_a_mistyped_declaration_is_found_when_the_file_is_read_and_corrected(owner, staged):
    budget = declared(owner, staged, **{"c0.low": "100", "c0.high": "120"})
    refused = owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    assert refused.status_code == 422
    assert "outside the declared range" in refused.text
    page = owner.get(staged.url.path)
    budget = declared(owner, page, **{"c0.low": "30", "c0.high": "120"})
    done = owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    assert "For you alone, and only now" in done.text
    assert "age" in done.text.split("For you alone")[1][:400]


def test_two_windows_overwrite_nothing_unseen(owner, staged):
    first = {**values_of(staged.text), "c0.low": "1", "step": "save"}
    second = {**values_of(staged.text), "c0.low": "2", "step": "save"}
    assert owner.post(staged.url.path, first).status_code == 200
    late = owner.post(staged.url.path, second)
    assert late.status_code == 409
    assert 'name="c0.low" value="2"' in late.text
    assert "another window" in late.text
    assert 'name="c0.low" value="1"' in owner.get(staged.url.path).text
    owner.post(staged.url.path, {**values_of(late.text), "step": "save"})
    assert 'name="c0.low" value="2"' in owner.get(staged.url.path).text


def test_reloading_and_going_back_find_everything_again(owner, staged):
    budget = declared(owner, staged, **{"c0.high": "111"})
    back = owner.post(
        budget.url.path, {**values_of(budget.text), "name": "half a name", "epsilon": "0.7", "step": "back"}
    )
    assert back.url.path == staged.url.path
    assert 'name="c0.high" value="111"' in back.text
    assert 'value="half a name"' in owner.get(budget.url.path).text
    assert owner.get(staged.url.path.removesuffix("/declare")).url.path == staged.url.path
    assert f'href="{staged.url.path.removesuffix("/declare")}"' in owner.get("/datasets/new").text


def test_a_file_waits_for_an_hour_and_no_longer(context, owner, staged):
    with owner_transaction(context.settings) as session:
        session.connection().exec_driver_sql(
            "UPDATE staged_uploads SET created_at = created_at - interval '61 minutes'"
        )
    for path in (staged.url.path, staged.url.path.replace("declare", "budget")):
        gone = owner.get(path)
        assert gone.status_code == 404
        assert "Choose it again" in gone.text
    assert "Not published yet" not in owner.get("/datasets/new").text
    assert list(context.storage.list(staging.STAGED)) != []
    sweep(context)
    assert list(context.storage.list(staging.STAGED)) == []


def test_the_relay_may_remove_what_is_over_and_read_no_key(context, database, owner, staged):
    with owner_transaction(context.settings) as session:
        session.connection().exec_driver_sql("UPDATE staged_uploads SET created_at = created_at - interval '2 hours'")
    relay = replace(context, settings=context.settings.model_copy(update={"database_url": database.relay_url}))
    with pytest.raises(Exception, match="permission denied"), relay.statement() as session:
        session.connection().exec_driver_sql("SELECT wrapped_data_key FROM staged_uploads")
    assert staging.remove_expired(relay) == 1
    assert list(context.storage.list(staging.STAGED)) == []
    assert owner.get(staged.url.path).status_code == 404


def test_a_row_that_names_another_key_opens_nothing(context, staged):
    """The API's role may delete rows and insert them: with a key of its own in it, a stranger read the rows of the draft."""
    (staged_id,) = map(uuid.UUID, re.findall(r"[0-9a-f-]{36}", staged.url.path))
    with context.transaction() as session:
        row = session.get_one(staging.StagedUpload, staged_id)
        principal = Principal(row.tenant_id, row.key_id, "owner")
        kept = {name: getattr(row, name) for name in ("id", "wrapped_data_key", "filled_key")}
        assert staging.open_staged(context, principal, staged_id).draft
        query = select(ApiKey.tenant_id, ApiKey.id).where(ApiKey.tenant_id != row.tenant_id)
        stranger = Principal(*session.execute(query).first(), "owner")
        session.delete(row)
        session.flush()
        session.execute(
            insert(staging.StagedUpload).values(tenant_id=stranger.tenant_id, key_id=stranger.key_id, **kept)
        )
    with pytest.raises(NotFound):
        staging.open_staged(context, stranger, staged_id)


def test_the_sweep_takes_what_no_row_names_and_leaves_what_waits(context, owner, staged):
    context.storage.put(f"{staging.STAGED}/{uuid.uuid4()}/file", b"x")
    assert sweep(context, min_age_seconds=0.0) == 1
    assert owner.get(staged.url.path).status_code == 200


def test_a_tenant_s_files_do_not_pile_up(owner, context):
    most = context.settings.staged_uploads_per_tenant
    pages = [owner.post("/datasets/new/sample") for _ in range(most)]
    assert all(page.status_code == 200 for page in pages)
    full = send(owner)
    assert (full.status_code, full.headers["retry-after"].isdecimal()) == (429, True)
    assert "discard one" in full.text
    owner.post(pages[0].url.path.replace("declare", "discard"))
    assert owner.get(pages[0].url.path).status_code == 404
    assert send(owner).status_code == 200


def test_a_file_that_is_refused_after_its_commit_is_not_said_to_be_here(api, context, owner, tmp_path):
    """Of two that come at once the second is counted after it was kept. The log said that it was uploaded, and no more."""
    most = context.settings.staged_uploads_per_tenant
    for _ in range(most):
        owner.post("/datasets/new/sample")
    with context.driver() as connection:
        (tenant, key) = connection.execute("SELECT DISTINCT tenant_id, key_id FROM staged_uploads").fetchone()
    path = tmp_path / "a.csv"
    path.write_text("a\n1\n")
    with SealedFile.in_the_clear(path) as file, pytest.raises(RateLimited):
        staging.stage(context, Principal(tenant, key, "owner", action="stage_upload"), file, {}, {})
    newest, before = api.http.get("/v1/audit", headers=api.owner).json()["items"][:2]
    assert [line["action"] for line in (before, newest)] == ["stage_upload", "discard_upload"]
    assert before["object_id"] == newest["object_id"]
    assert not list(context.storage.list(f"{staging.STAGED}/{newest['object_id']}"))


def test_a_wide_table_is_declared_in_parts(owner):
    names = [f"x{n}" for n in range(45)]
    rows = "".join(",".join(str((n * 7 + place) % 9) for place in range(45)) + "\n" for n in range(40))
    page = send(owner, ",".join(names) + "\n" + rows)
    assert page.text.count("data-column>") == 40
    assert len(page.content) < 300_000
    page = declared(owner, page)
    assert "this was read from the rows" in page.text
    assert '<a href="?part=1#column-40">Go there' in page.text
    second = owner.post(page.url.path, {**values_of(page.text), "step": "next"})
    assert second.text.count("data-column>") == 5
    assert "x44" in second.text
    assert declared(owner, second).url.path.endswith("/budget")


def test_the_audit_log_names_what_was_done(api, owner, staged):
    budget = declared(owner, staged)
    owner.post(budget.url.path, {**values_of(budget.text), "step": "publish"})
    actions = {line["action"] for line in api.http.get("/v1/audit", headers=api.owner).json()["items"]}
    assert {"stage_upload", "create_dataset"} <= actions
