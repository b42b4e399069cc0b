"""`imprimatur verify` of files that a service's own key signed, and that still say what must not be believed."""

import io
import itertools
import json
import uuid
import zipfile

import pytest

from imprimatur.cli.output import Failure
from imprimatur.cli.target import Target
from imprimatur.cli.verification import verify_certificates
from imprimatur.verify.heads import TreeHead
from imprimatur.verify.members import facts_of
from imprimatur.verify.signatures import PublicKey
from service.platform.signing import SigningKey
from tests.signed_histories import DATASET, EARLY, KEY, KEYS, LATER, history, signed
from workers.generators.archive import pack


@pytest.fixture
def verify(tmp_path):
    """Checks documents, or the texts of files, with keys that are known and a service or none."""
    numbers = itertools.count()

    def check(*documents, known=(KEY,), target=None):
        paths = []
        for document in documents:
            paths.append(tmp_path / f"{next(numbers)}.json")
            paths[-1].write_text(document if isinstance(document, str) else json.dumps(document))
        return verify_certificates(paths, target, [key.public_bytes for key in known])

    return check


def test_certificates_made_here_verify(verify):
    first, second, third = history("post", "post", "post")
    checks = verify(first, third, second)
    assert checks.verified, checks.faults
    assert verify(first, first).verified
    assert verify(signed({**first, "dataset_id": DATASET.upper()}), second).verified, "a UUID is one in capitals, too"


@pytest.mark.parametrize("twice", ['"epsilon": 0.1, ', '"epsilon": 3.0, '])
def test_a_member_that_is_given_twice_is_refused(verify, twice):
    text = json.dumps(history("post")[0]).replace('"epsilon"', f'{twice}"epsilon"')
    with pytest.raises(Failure, match="the same name twice"):
        verify(text)


def without_head(certificate, version, key, **transparency):
    """`transparency` is the member itself where it is given, and missing where not."""
    left = {name: value for name, value in certificate.items() if name != "transparency"}
    return signed({**left, "format": version, **transparency}, key)


@pytest.mark.parametrize("version", [2, 3, "1", True, None])
def test_only_format_1_may_lack_a_head(verify, version):
    (certificate,) = history("post")
    for missing in ({}, {"transparency": None}):
        (fault,) = verify(without_head(certificate, version, EARLY, **missing), known=[EARLY]).faults
        assert "is not of format 1" in fault


def test_only_the_key_from_before_the_log_signs_without_a_head(verify):
    """Which key that is, the list of keys in another certificate tells."""
    first, second = history("post", "post")
    cannot_be_compared = "it cannot be compared"

    def faults(checks):
        return [fault for fault in checks.faults if cannot_be_compared not in fault]

    assert faults(verify(without_head(first, 1, EARLY), second, known=[EARLY])) == []
    for key in (KEY, LATER):
        (fault,) = faults(verify(without_head(first, 1, key), second, known=[EARLY]))
        assert f"key {key.id} is not the one from before the log" in fault

    alone = verify(without_head(first, 1, EARLY), known=[EARLY])
    assert alone.verified
    assert any(f"if key {EARLY.id} is that of this time" in text for text in alone.notes)
    assert not verify(without_head(first, 1, EARLY), known=[KEY]).verified
    assert not verify(without_head(first, 1, EARLY), known=[]).verified

    # A service from after the log has no earlier key: its first one is told by the heads it signed.
    only = [PublicKey(KEY.id, KEY.public_bytes).to_json(), KEYS[2].to_json()]
    with_head = signed({**second, "transparency": {**second["transparency"], "keys": only}})
    (fault,) = faults(verify(without_head(first, 1, KEY), with_head))
    assert f"key {KEY.id} is not the one from before the log" in fault


class Service:
    """A client of a service that lists these keys and published this certificate."""

    def __init__(self, listed, published):
        self.listed, self.published = listed, published

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def signing_keys(self):
        return [key.to_json() for key in self.listed]

    def certificate(self, _):
        return self.published

    def ledger(self, _):
        return {"items": [self.published["ledger_entry"]]}


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize(
    ("listed", "key", "good"),
    [
        (KEYS, EARLY, True),
        (KEYS, KEY, False),
        (KEYS, LATER, False),
        ([PublicKey(KEY.id, KEY.public_bytes)], KEY, False),
    ],
)
def test_a_service_tells_which_key_is_from_before_the_log(verify, monkeypatch, listed, key, good, known):
    old = without_head(history("post")[0], 1, key)
    monkeypatch.setattr("imprimatur.client.Client", lambda *_: Service(listed, old))
    checks = verify(old, known=[key] if known else [], target=Target("http://service", None))
    assert checks.verified == (good and known)
    assert checks.result == ("failed" if not good else "verified" if known else "consistent")
    assert any("is not the one from before the log" in fault for fault in checks.faults) != good


@pytest.mark.parametrize("kind", ["reserve", "void", "release"])
def test_only_a_charge_pays(verify, kind):
    (certificate,) = history(kind)
    assert verify(certificate).faults == ["the entry it names is no charge: it paid nothing"]


def test_one_release_and_one_entry_have_one_certificate(verify):
    first, second = history("post", "post")
    dearer = signed({**first, "epsilon": 0.1})
    (fault,) = verify(first, dearer).faults
    assert f"two different certificates of release {first['release_id']}" in fault
    of_release = signed({**second, "release_id": first["release_id"].upper()})
    assert any("two different certificates of release" in fault for fault in verify(first, of_release).faults)
    of_entry = signed({**first, "release_id": str(uuid.uuid4())})
    faults = verify(first, second, of_entry).faults
    assert sum(f"two different certificates of entry 1 of dataset {DATASET}" in fault for fault in faults) == 1
    assert verify(first, {**first, "consistency": [None]}).verified, "what is not signed may differ"


@pytest.mark.parametrize("proofs", [[1], [None], [[]], 7, {"tree_size": 1}])
def test_proofs_that_are_none_prove_nothing(verify, proofs):
    first, second = history("post", "post")
    faults = verify(first, {**second, "consistency": proofs}).faults
    assert ["carries no proof" in fault for fault in faults] == [True, True]
    assert verify(first, {**second, "consistency": [None, *second["consistency"]]}).verified


FILES = {"sample.py": b"print('rows')", "config.json": b"{}"}


@pytest.fixture
def verify_zip(tmp_path):
    """Checks a ZIP by the key that signed the certificate, or by none."""

    def check(content, known=(KEY,)):
        path = tmp_path / "generator.zip"
        path.write_bytes(content)
        return verify_certificates([path], None, [key.public_bytes for key in known])

    return check


def bound(certificate, files=FILES, key=KEY):
    """Of format 3: the same certificate, for these files."""
    members = {name: facts_of(content) for name, content in files.items()}
    return signed({**certificate, "format": 3, "members": members}, key)


def test_a_zip_is_verified_with_every_file_in_it(verify_zip):
    certificate = bound(history("post")[0])
    checks = verify_zip(pack(FILES, certificate))
    assert checks.verified, checks.faults
    assert ("verified", "the ZIP holds the 2 files that the certificate signs, and no other") in checks.held


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_zip_with_other_files_fails(verify_zip):
    first, second = history("post", "post")
    certificate = bound(first)
    twice = io.BytesIO(pack(FILES, certificate))
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("sample.py", b"print('evil')")
    for content, words in (
        (pack({**FILES, "sample.py": b"print('evil')"}, certificate), "sample.py was changed"),
        (pack({**FILES, "extra.py": b""}, certificate), "holds extra.py"),
        (pack({"config.json": b"{}"}, certificate), "lacks sample.py"),
        (pack(FILES, bound(second, {"sample.py": b"another"})), "holds config.json"),
        (pack({**FILES, "../x": b""}, certificate), "no plain path"),
        (twice.getvalue(), "no plain file"),
        (b"#!/bin/sh\n" + pack(FILES, certificate), "not where it says"),
    ):
        checks = verify_zip(content)
        assert not checks.verified
        (fault,) = checks.faults
        assert words in fault
        assert "Do not use the ZIP" in fault


def test_members_are_signed(verify_zip):
    """Who changes a file and what the certificate says of it has not signed that."""
    certificate = bound(history("post")[0])
    evil = {**FILES, "sample.py": b"print('evil')"}
    members = {name: facts_of(content) for name, content in evil.items()}
    (fault,) = verify_zip(pack(evil, {**certificate, "members": members})).faults
    assert "it was changed" in fault


def test_a_self_made_certificate_is_self_signed_whatever_it_holds(verify_zip):
    own = SigningKey(b"o" * 32)
    certificate = bound(history("post")[0])
    document = {**certificate, "transparency": {**certificate["transparency"]}}
    head = TreeHead.of_json(document["transparency"]["tree_head"])
    again = TreeHead.sign(own, tree_size=head.tree_size, timestamp_ms=1, root_hash=head.root_hash)
    document["transparency"]["tree_head"] = again.to_json()
    checks = verify_zip(pack(FILES, signed(document, own)), known=())
    assert (checks.result, checks.verified, checks.faults) == ("self_signed", False, [])
    assert checks.to_json()["reason"] == "self_signed"
    assert {word for word, _ in checks.held} == {"consistent"}
    assert checks.statement.startswith("self-signed, not verified")
    assert not verify_zip(pack(FILES, signed(document, own))).verified


def test_a_zip_of_an_earlier_format_says_that_it_is_not_bound(verify_zip, verify):
    (certificate,) = history("post")
    assert certificate["format"] == 2
    checks = verify_zip(pack(FILES, certificate))
    assert checks.verified
    assert any("NOT BOUND" in text for text in checks.notes)
    assert not any("NOT BOUND" in text for text in verify(certificate).notes)
    assert any("were not looked at" in text for text in verify(bound(certificate)).notes)


def test_what_is_no_json_number_is_a_fault_and_no_crash(verify):
    (certificate,) = history("post")
    text = json.dumps({**certificate, "epsilon": float("nan")})
    assert any("it was changed" in fault for fault in verify(text, certificate).faults)
