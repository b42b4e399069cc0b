"""The ZIP of a release is the one that was certified, or nothing of it is used: samples, answers and downloads alike.

Attacked by somebody who can write to the storage, to the database, or to both.
"""

import io
import json
import uuid
import zipfile

import psycopg
import pytest

from imprimatur.verify.members import check_bundle
from imprimatur.verify.signatures import UNSIGNED
from service.base.errors import Tampered
from service.methods.catalogue import CATALOGUE, ORDERS
from service.platform.signing import SigningKey
from tests import toy_answers
from tests.reservations import claim
from tests.service.http.test_datasets_api import _assert_problem
from workers.generators.archive import pack
from workers.run import Attempt

pytestmark = pytest.mark.slow

NETWORK = {
    "method": "idpgan",
    "epsilon": 0.3,
    "steps": 2,
    "condition_on": "city",
    "networks": {"generator_hidden": [4], "critic_hidden": [4], "noise_dimension": 2},
}
ANSWERS = {"method": toy_answers.NAME, "epsilon": 0.5, "column": "city"}


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setitem(CATALOGUE, toy_answers.NAME, toy_answers.METHOD)
    monkeypatch.setitem(ORDERS, toy_answers.NAME, toy_answers.ToyOrder)


@pytest.fixture
def publish(api, context, dataset_id, signing_key):  # noqa: ARG001 - what signs certificates
    def one(order):
        release = api.order(dataset_id, order).json()["id"]
        with context.transaction() as session:
            lease = claim(session, uuid.UUID(release))
        Attempt(context, lease).run()
        return release

    return one


@pytest.fixture
def owner(settings):
    """The role that owns the database, which may write anything."""
    url = settings.migration_database_url.replace("+psycopg", "")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


class Stored:
    """The ZIP of a release where it is stored, and what somebody else makes of it."""

    def __init__(self, context, owner, release):
        self.context, self.owner, self.release = context, owner, release
        (self.key,) = owner.execute("SELECT bundle_key FROM releases WHERE id = %s", (release,)).fetchone()
        self.content = context.storage.get(self.key)
        with zipfile.ZipFile(io.BytesIO(self.content)) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist()}
        self.certificate = json.loads(self.files.pop("certificate.json"))

    def swap(self, content):
        """In the storage alone."""
        self.context.storage.put(self.key, content)

    def replace(self, content, certificate=None):
        """In the storage under a name of its own, and in the database; perhaps with another certificate."""
        key = self.context.storage.put_content("bundles", content)
        self.owner.execute("UPDATE releases SET bundle_key = %s WHERE id = %s", (key, self.release))
        if certificate is not None:
            change = "UPDATE releases SET certificate = %s::jsonb WHERE id = %s"
            self.owner.execute(change, (json.dumps(certificate), self.release))


@pytest.fixture
def stored(context, owner):
    return lambda release: Stored(context, owner, release)


def doors(api, release):
    """Every reply that is made from the ZIP."""
    for door in ("generator", "sample?rows=3", "answers"):
        yield door, api.http.get(f"/v1/releases/{release}/{door}", headers=api.reader)


def assert_nothing_is_used(api, release, words):
    for _, reply in doors(api, release):
        _assert_problem(reply, 500, "tampered")
        assert words in reply.json()["detail"], reply.json()
        assert "operator must put" in reply.json()["detail"]


def changed_script(stored):
    return pack({**stored.files, "sample.py": b"print('evil')\n"}, stored.certificate)


def test_what_is_published_signs_its_members_and_is_handed_out(api, publish, stored):
    for order, refused in ((NETWORK, "answers"), (ANSWERS, "sample?rows=3")):
        release = publish(order)
        for _ in range(2):
            statuses = {door: reply.status_code for door, reply in doors(api, release)}
            assert statuses.pop(refused) == 409
            assert set(statuses.values()) == {200}
        reply = api.http.get(f"/v1/releases/{release}/generator", headers=api.reader)
        assert reply.content == stored(release).content
        certificate = api.http.get(f"/v1/releases/{release}/certificate", headers=api.reader).json()
        assert certificate["format"] == 3
        assert set(certificate["members"]) == set(stored(release).files)
        assert check_bundle(io.BytesIO(reply.content), certificate)["signature"] == certificate["signature"]


@pytest.mark.parametrize("order", [NETWORK, ANSWERS], ids=["generator", "answers"])
def test_a_swapped_object_is_not_used(api, publish, stored, order):
    ours = stored(publish(order))
    for content in (changed_script(ours), ours.content + b"x", b"", stored(publish({**order, "epsilon": 0.2})).content):
        ours.swap(content)
        assert_nothing_is_used(api, ours.release, "is not what was stored under this name")
    ours.swap(ours.content)
    assert api.http.get(f"/v1/releases/{ours.release}/generator", headers=api.reader).status_code == 200


def test_an_object_that_is_swapped_after_it_was_checked_is_not_used(api, publish, stored):
    ours = stored(publish(NETWORK))
    assert api.http.get(f"/v1/releases/{ours.release}/generator", headers=api.reader).status_code == 200
    ours.swap(changed_script(ours))
    assert_nothing_is_used(api, ours.release, "is not what was stored")


def test_a_large_object_that_was_swapped_is_never_sent_in_full(context):
    content = bytes(range(256)) * 4_096
    key = context.storage.put_content("bundles", content)
    assert b"".join(context.storage.stream_content(key, chunk_bytes=65_536)) == content
    context.storage.put(key, content[:-1] + b"!")
    given = []
    with pytest.raises(Tampered):
        given.extend(context.storage.stream_content(key, chunk_bytes=65_536))
    assert 0 < sum(map(len, given)) < len(content)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_that_the_database_names_instead_is_not_used(api, publish, stored):
    """Its name is its hash; only the certificate says that it is another."""
    ours = stored(publish(NETWORK))
    other = stored(publish({**NETWORK, "epsilon": 0.2}))
    more = pack({**ours.files, "setup.py": b""}, ours.certificate)
    twice = io.BytesIO(ours.content)
    with zipfile.ZipFile(twice, "a") as archive:
        script = zipfile.ZipInfo("sample.py")
        script.external_attr = 0o100644 << 16
        archive.writestr(script, b"print('evil')\n")
    for content, words in (
        (changed_script(ours), "sample.py was changed"),
        (more, "holds setup.py"),
        (twice.getvalue(), "lists sample.py more than once"),
        (other.content, "that of another release"),
        (pack(ours.files, other.certificate), "that of another release"),
        (pack(ours.files, {**ours.certificate, "epsilon": 0.1}), "not the one of its release"),
    ):
        ours.replace(content)
        assert_nothing_is_used(api, ours.release, words)
    ours.replace(ours.content)
    assert api.http.get(f"/v1/releases/{ours.release}/generator", headers=api.reader).status_code == 200


def test_a_certificate_that_was_not_signed_here_is_not_used(api, publish, stored):
    """Neither with a key of one's own, nor that of another release, nor one whose format signs no members."""
    ours = stored(publish(NETWORK))
    other = stored(publish({**NETWORK, "epsilon": 0.2}))
    own = SigningKey(b"u" * 32)
    files = {**ours.files, "sample.py": b"print('evil')\n"}

    def signed(**changes):
        document = {k: v for k, v in {**ours.certificate, **changes}.items() if k not in UNSIGNED}
        return {**document, "consistency": [], "public_key": own.public_key, "signature": own.sign(document)}

    without = {name: value for name, value in ours.certificate.items() if name != "members"}
    for certificate in (
        signed(members={}),
        {**without, "format": 2},
        {**ours.certificate, "members": {}},
        other.certificate,
    ):
        ours.replace(pack(files, certificate), certificate)
        assert_nothing_is_used(api, ours.release, "not one that this service signed for it")


def test_a_zip_of_an_earlier_format_is_used_as_it_was(api, publish, stored, signing_key):
    ours = stored(publish(NETWORK))
    document = {k: v for k, v in ours.certificate.items() if k not in {*UNSIGNED, "members"}} | {"format": 2}
    earlier = {
        **document,
        "consistency": [],
        "public_key": signing_key.public_key,
        "signature": signing_key.sign(document),
    }
    ours.replace(pack(ours.files, earlier), earlier)
    for door in ("generator", "sample?rows=3"):
        assert api.http.get(f"/v1/releases/{ours.release}/{door}", headers=api.reader).status_code == 200


def test_a_network_that_names_other_files_is_not_used(api, publish, stored, signing_key, tmp_path):
    """Signed by the service itself, as an earlier worker might have: it is refused where it is read."""
    import onnx
    from onnx.external_data_helper import convert_model_to_external_data

    ours = stored(publish(NETWORK))
    model = onnx.load_from_string(ours.files["generator.onnx"])
    convert_model_to_external_data(model, location="passwd", size_threshold=0, convert_attribute=True)
    onnx.save(model, tmp_path / "model.onnx")
    outside = (tmp_path / "model.onnx").read_bytes()
    files = {**ours.files, "generator.onnx": outside}
    document = {k: v for k, v in ours.certificate.items() if k not in {*UNSIGNED, "members"}} | {"format": 2}
    certificate = {
        **document,
        "consistency": [],
        "public_key": signing_key.public_key,
        "signature": signing_key.sign(document),
    }
    ours.replace(pack(files, certificate), certificate)
    reply = api.http.get(f"/v1/releases/{ours.release}/sample?rows=3", headers=api.reader)
    _assert_problem(reply, 500, "tampered")
    assert "external data" in reply.json()["detail"]
