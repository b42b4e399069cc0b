"""`imprimatur verify` of files that a service's own key signed, and that still say what must not be believed."""

import io
import itertools
import json
import re
import struct
import tracemalloc
import uuid
import warnings
import zipfile

import pytest

from imprimatur.cli.output import Exit, Failure
from imprimatur.cli.target import Target
from imprimatur.cli.verification import known_head, known_key, read_certificate, verify_certificates
from imprimatur.verify.heads import TreeHead
from imprimatur.verify.members import MOST_CERTIFICATE_BYTES, facts_of
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
    assert verify(certificate).faults == ["the entry it names is not a charge"]


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


def test_a_zip_with_other_files_fails(verify_zip):
    first, second = history("post", "post")
    certificate = bound(first)
    for content, words in (
        (pack({**FILES, "sample.py": b"print('evil')"}, certificate), "sample.py was changed"),
        (pack({**FILES, "extra.py": b""}, certificate), "holds extra.py"),
        (pack({"config.json": b"{}"}, certificate), "lacks sample.py"),
        (pack(FILES, bound(second, {"sample.py": b"another"})), "holds config.json"),
    ):
        checks = verify_zip(content)
        assert not checks.verified
        (fault,) = checks.faults
        assert words in fault
        assert "Do not use the ZIP" in fault


def flagged(content, at_local, at_central, value):
    """The ZIP with two bytes of every header changed, in both places."""
    changed = bytearray(content)
    for mark, at in ((b"PK\x03\x04", at_local), (b"PK\x01\x02", at_central)):
        for found in re.finditer(re.escape(mark), content):
            struct.pack_into("<H", changed, found.start() + at, value)
    return bytes(changed)


def damaged(content):
    """The first bytes of the packed certificate are others."""
    changed, start = bytearray(content), content.index(b"certificate.json") + len(b"certificate.json")
    changed[start : start + 8] = b"\xff" * 8
    return bytes(changed)


def bomb(megabytes):
    """A certificate that is unpacked to as much; a ZIP of a thousandth of that."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("certificate.json", "w") as file:
            for _ in range(megabytes):
                file.write(b" " * (1 << 20))
        archive.infolist()[0].external_attr = 0o100644 << 16
    return buffer.getvalue()


def understated(content, size):
    """Both headers of a ZIP of one member say another size than its content has."""
    changed = bytearray(content)
    for mark, at in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", changed, content.rindex(mark) + at, size)
    return bytes(changed)


def other_forms():
    certificate = bound(history("post")[0])
    good, twice, packed_otherwise = pack(FILES, certificate), io.BytesIO(pack(FILES, certificate)), io.BytesIO()
    with zipfile.ZipFile(twice, "a") as archive:
        archive.writestr("sample.py", b"print('evil')")
    with zipfile.ZipFile(packed_otherwise, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("certificate.json", json.dumps(certificate))
    return {
        "a name that is not a plain path": (pack({**FILES, "../x": b""}, certificate), "not a plain path"),
        "a name twice": (twice.getvalue(), "no plain file"),
        "something before the first member": (b"#!/bin/sh\n" + good, "not where it says"),
        "encrypted": (flagged(good, 6, 8, 1), "is encrypted"),
        "an unknown method": (flagged(good, 8, 10, 99), "packed in an unknown way"),
        "another method": (packed_otherwise.getvalue(), "packed in an unknown way"),
        "damaged": (damaged(good), "certificate.json cannot be unpacked"),
        "cut off": (good[: len(good) // 2] + good[-22:], ""),
        "too much": (bomb(65), "holds no certificate.json"),
        "more than it says": (understated(bomb(65), 1000), "certificate.json cannot be unpacked"),
        "no certificate": (zip_without_certificate(), "holds no certificate.json"),
    }


def zip_without_certificate():
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        info = zipfile.ZipInfo("other.json")
        info.external_attr = 0o100644 << 16
        archive.writestr(info, b"{}")
    return buffer.getvalue()


@pytest.fixture(scope="module")
def forms():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a name twice
        return other_forms()


FORMS = (
    "a name that is not a plain path", "a name twice", "something before the first member", "encrypted",
    "an unknown method", "another method", "damaged", "cut off", "too much", "more than it says", "no certificate",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_zip_of_another_form_is_no_generator_zip(verify_zip, forms, tmp_path, form):
    content, words = forms[form]
    with pytest.raises(Failure, match="neither a certificate nor a generator ZIP") as refused:
        verify_zip(content)
    assert refused.value.exit_code == Exit.BAD_INPUT
    assert words in refused.value.detail
    assert "do not use it" in refused.value.detail
    with pytest.raises(Failure) as again:
        read_certificate(tmp_path / "generator.zip")
    assert again.value.detail == refused.value.detail


def test_never_more_of_a_certificate_is_unpacked_than_one_can_have(forms, tmp_path):
    """A hundred times as much in a ZIP of a few kilobytes: what is held at once is counted, not timed."""
    for form in ("too much", "more than it says"):
        path = tmp_path / "generator.zip"
        path.write_bytes(forms[form][0])
        tracemalloc.start()
        try:
            with pytest.raises(Failure):
                read_certificate(path)
            assert tracemalloc.get_traced_memory()[1] < 16 << 20
        finally:
            tracemalloc.stop()


def test_a_text_that_is_too_long_for_a_certificate_is_refused(tmp_path):
    path = tmp_path / "certificate.json"
    with path.open("wb") as file:
        file.truncate(MOST_CERTIFICATE_BYTES + 1)
    with pytest.raises(Failure, match="neither a certificate nor a generator ZIP"):
        read_certificate(path)
    with pytest.raises(Failure, match="is not a public key"):
        known_key(str(path))
    with pytest.raises(Failure, match="not a head of a log"):
        known_head(str(path))


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
