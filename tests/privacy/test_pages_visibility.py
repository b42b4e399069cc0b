"""What stands in the HTML: nothing for owners on the page of another, and nothing of a row that was not charged.

Every page there is, by the routes of `service.pages`; a new one is looked at without being named here, as long as its
address asks for a dataset or a release at most.
"""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from dataclasses import dataclass

import httpx
import pytest

from imprimatur import Client
from imprimatur.verify.signatures import UNSIGNED
from service.pages.endpoints import router
from service.platform.context import open_context
from service.platform.signing import SigningKey
from service.upkeep.installation import owner_transaction
from tests.service.releases.test_owner_reports import once_there
from tests.service.releases.test_unnoised_figures import figures_in
from workers.generators.archive import pack

OTHER_PARAMETERS = {"digest": None, "name": None, "language": "en", "staged_id": None}
"""Of files and of the choice of a language; None: it is no page, or (files that wait) one of
`tests/service/pages/test_upload_walk.py`."""
MARKER = "7.318527"
"""A cell of the private table."""
OTHERS_KEY = "key of a second owner"
SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"], "required": True}},
        {"name": "weight", "type": "number", "constraints": {"minimum": 0, "maximum": 10}},
    ]
}
ORDER = {"method": "marginals", "epsilon": 1.0, "owner_report": True, "report": {"share": 0.2}}
FOR_OWNERS_OF_A_RELEASE = {f"/releases/{{release_id}}/owner-report{end}" for end in ("", "/waiting", ".html", ".json")}
FOR_OWNERS = {"/admin", "/admin/keys", "/admin/tenants", "/admin/audit", *FOR_OWNERS_OF_A_RELEASE}
FILLED = {"epsilon": "0.5", "method": "marginals"}


@dataclass(frozen=True)
class Stay:
    """A tenant with a dataset, and a release of it where there is one."""

    keys: dict[str, str]
    dataset: dict
    release: str | None


def table(salt: int, last_row: str) -> str:
    """Rows of this test alone; neighbours differ in the last one."""
    source = random.Random(salt)
    rows = [f"{source.choice(['red', 'green'])},{source.uniform(0, 10):.9f}" for _ in range(148)]
    return "\n".join(["colour,weight", *rows, f"red,{MARKER}", last_row]) + "\n"


def stay(stack, owner: str, text: str, folder, *, is_released: bool) -> Stay:
    file = folder / "visits.csv"
    file.write_text(text)
    with Client(stack.url, owner) as client:
        keys = {scope: client.create_key(f"the {scope}", scope)["key"] for scope in ("analyst", "reader")}
        client.create_key(OTHERS_KEY, "owner")
        dataset = client.create_dataset(file, SCHEMA, epsilon=4.0, name="visits")
        release = client.create_release(dataset["id"], ORDER)["id"] if is_released else None
        if release is not None:
            assert client.wait(release)["state"] == "published"
            once_there(client.release(release))
    return Stay({"owner": owner, **keys}, dataset, release)


def routes_of(router):
    """FastAPI keeps a router that was included as it is."""
    for route in router.routes:
        yield from routes_of(route.original_router) if hasattr(route, "original_router") else [route]


def paths_of(stay: Stay) -> dict[str, str]:
    """Address by template, of every page that can be opened without sending a form."""
    known = {"dataset_id": stay.dataset["id"], "release_id": stay.release, **OTHER_PARAMETERS}
    found = {}
    for route in routes_of(router):
        if "GET" not in route.methods:
            continue
        names = re.findall(r"{(\w+)}", route.path)
        assert set(names) <= set(known), f"say in this test how {route.path} is opened"
        if all(known[name] for name in names):
            found[route.path] = route.path.format(**known)
    return found


def pages_of(stack, stay: Stay, scope: str) -> dict[str, str]:
    """HTML by template, as this key sees it; prices and the step before an order as well."""
    seen = {}
    with httpx.Client(base_url=stack.url, timeout=600) as http:
        assert http.post("/sign-in", data={"key": stay.keys[scope]}).status_code == 303
        for template, path in paths_of(stay).items():
            reply = http.get(path)
            if reply.headers.get("content-type", "").startswith("text/html"):
                seen[template] = f"{reply.status_code}\n{reply.text}"
        token = re.search(r'name="csrf-token" content="(\w+)"', http.get("/").text)[1]
        for step in ("quote", "confirm"):
            form = {**FILLED, "step": step, "csrf_token": token}
            seen[step] = http.post(f"/datasets/{stay.dataset['id']}/order", data=form).text
    return seen


def give_the_same_bundle(stack, source: Stay, target: Stay) -> None:
    """The generator of one release as that of another, certified for it."""
    storage = open_context(stack.settings).storage
    with owner_transaction(stack.settings) as session:
        say = session.connection().exec_driver_sql
        key, certificate = say("SELECT bundle_key, certificate FROM releases WHERE id = %s", (source.release,)).one()
        with zipfile.ZipFile(io.BytesIO(storage.get(key))) as archive:
            files = {name: archive.read(name) for name in archive.namelist() if name != "certificate.json"}
        certificate |= {"release_id": target.release, "dataset_id": target.dataset["id"]}
        signed = {name: value for name, value in certificate.items() if name not in UNSIGNED}
        certificate["signature"] = SigningKey.load(stack.settings.signing_key_path).sign(signed)
        key = storage.put_content("bundles", pack(files, certificate))
        say("SET LOCAL session_replication_role = replica")  # past the triggers: an ended release never changes
        change = "UPDATE releases SET bundle_key = %s, certificate = %s WHERE id = %s"
        say(change, (key, json.dumps(certificate), target.release))


@pytest.fixture(scope="module")
def neighbours(stack, new_tenant, tmp_path_factory):
    """An ordinary last row, an outlier that is clamped, a missing cell; first without a release, then with the same one."""
    salt, rows = random.randrange(10**9), ("green,3.25", "red,1e300", "green,")
    made = {}
    for is_released in (False, True):
        made[is_released] = [
            stay(
                stack,
                new_tenant(),
                table(salt + is_released, row),
                tmp_path_factory.mktemp("t"),
                is_released=is_released,
            )
            for row in rows
        ]
    first, *others = made[True]
    for other in others:
        give_the_same_bundle(stack, first, other)
    return made


def owner_figures(stack, stay: Stay) -> set[str]:
    """Long numbers of the owner's report, as JSON writes them."""
    with Client(stack.url, stay.keys["owner"]) as client:
        report = once_there(client.release(stay.release))
    return {figure for figure in figures_in(report) if len(figure) > 10}


def secrets_of(stack, stay: Stay) -> dict[str, str]:
    """What an owner may see and no one else, as it would stand in a page."""
    with owner_transaction(stack.settings) as session:
        storage, upload = (
            session.connection()
            .exec_driver_sql("SELECT storage_key, upload_key FROM datasets WHERE id = %s", (stay.dataset["id"],))
            .one()
        )
    kept = {"where the rows are": storage, "where the upload is": upload, "another's key": OTHERS_KEY, "a cell": MARKER}
    with httpx.Client(base_url=stack.url, headers={"Authorization": f"Bearer {stay.keys['owner']}"}) as http:
        lines = http.get("/v1/audit").json()["items"]
        keys = http.get("/v1/keys").json()["items"]
    kept |= {f"request of an audit line {place}": line["request_id"] for place, line in enumerate(lines)}
    kept |= {f"id of a key {place}": key["id"] for place, key in enumerate(keys)}
    if stay.release is not None:
        kept |= {
            "a link to the owner's report": f'href="/releases/{stay.release}/owner-report',
            "what the owner's report is called": "beside synthetic",
        }
        kept |= {f"a figure of the owner's report {figure}": figure for figure in owner_figures(stack, stay)}
    kept |= {f"a notice {place}": notice for place, notice in enumerate(stay.dataset["notices"])}
    return {name: value for name, value in kept.items() if value}


@pytest.mark.parametrize("scope", ["analyst", "reader"])
def test_no_page_of_another_holds_what_is_the_owners(stack, neighbours, scope):
    ordinary, clamped, _ = neighbours[True]
    assert clamped.dataset["notices"]  # there is something to be kept
    for each in (ordinary, clamped, *neighbours[False]):
        kept = secrets_of(stack, each)
        pages = pages_of(stack, each, scope)
        assert len(pages) >= 10
        found = [(page, name) for page, text in pages.items() for name, value in kept.items() if value in text]
        assert found == []
        for template in FOR_OWNERS & pages.keys():
            assert pages[template].startswith("403"), template
        assert pages.keys() >= FOR_OWNERS_OF_A_RELEASE or each.release is None
        assert "Administration" not in pages["/"]


def test_an_owner_does_see_them(stack, neighbours):
    """Else the test above would pass on empty pages."""
    pages = pages_of(stack, neighbours[True][0], "owner")
    assert OTHERS_KEY in pages["/admin/keys"]
    assert "Not private: do not share." in pages["/releases/{release_id}/owner-report"]
    assert 'owner-report"' in pages["/releases/{release_id}"]
    assert 'title="read_owner_report"' in pages["/admin/audit"]  # older lines are on further pages


VARIES = (
    (r"<h2>Signed head of the log</h2>.*?</pre>", "HEAD"),  # of the log of all tenants
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "ID"),
    (r"[A-Za-z0-9+/]{86}==", "SIGNATURE"),
    (r"\b[0-9a-f]{64}\b", "HASH"),  # of a line of the ledger, or the token of a session
    (r"\b[0-9a-f]{32}\b", "TOKEN"),
    (r"\b[0-9a-f]{12}…", "HASH"),
    (r"(?<=[->])[0-9a-f]{8}\b", "ID"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|\+00:00|Z)?", "TIME"),
)


def without_what_varies(text: str) -> str:
    for pattern, word in VARIES:
        text = re.sub(pattern, word, text, flags=re.DOTALL)
    return text


@pytest.mark.parametrize("scope", ["analyst", "reader"])
@pytest.mark.parametrize("is_released", [False, True], ids=["nothing ordered", "the same release"])
def test_neighbouring_tables_have_the_same_pages_byte_by_byte(stack, neighbours, scope, is_released):
    first, *others = (
        {page: without_what_varies(text) for page, text in pages_of(stack, each, scope).items()}
        for each in neighbours[is_released]
    )
    assert any("<td" in text for page, text in first.items() if page.endswith("/rows")) is is_released
    for other in others:
        assert other.keys() == first.keys()
        for page, text in first.items():
            assert other[page] == text, page
