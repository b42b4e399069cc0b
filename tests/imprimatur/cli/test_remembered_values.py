"""What the command remembers of services: private to one person, whole or not at all, and never believed when damaged."""

import json
import stat

import pytest

from imprimatur.cli.config import config_folder
from imprimatur.cli.output import Failure
from imprimatur.cli.target import Target
from imprimatur.cli.verification.memory import Memory
from imprimatur.verify.heads import TreeHead
from tests.signed_histories import EARLY, KEY, KEYS, LATER

HEAD = TreeHead.sign(KEY, tree_size=7, timestamp_ms=1, root_hash=b"r" * 32)
SERVICE = "https://one.example.org"


def remembered(service=SERVICE):
    memory = Memory.of(service)
    memory.pin(tuple(KEYS[:2]))
    memory.keep_head(HEAD)
    memory.keep_ledger("d", [b"a" * 32, b"b" * 32])
    memory.save()
    return memory


def test_what_is_saved_is_read_again():
    assert Memory.of(SERVICE).keys == []
    remembered()
    again = Memory.of(SERVICE)
    assert (again.public_keys, again.head) == ([KEY.public_bytes], HEAD)
    assert (again.ledgers["d"].entries, again.ledgers["d"].hash) == (2, b"b" * 32)
    assert Memory.of("https://two.example.org").keys == [], "each service has a memory of its own"


def test_it_is_for_one_person_alone():
    path = remembered().path
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert path.parent.parent == config_folder()
    path.chmod(0o620)
    with pytest.raises(Failure, match="others than you may write to it"):
        Memory.of(SERVICE)


DAMAGED = {
    "cut off": lambda text: text[:-20],
    "empty": lambda _: "",
    "no JSON object": lambda _: "[]",
    "another format": lambda text: text.replace('"format": 1', '"format": 2'),
    "of another service": lambda text: text.replace("one.example", "two.example"),
    "a key cut off": lambda text: json.dumps({**json.loads(text), "keys": [{"public_key": "AAAA", "since": ""}]}),
    "no head": lambda text: json.dumps({k: v for k, v in json.loads(text).items() if k != "head"}),
    "a size below 0": lambda text: text.replace('"tree_size": 7', '"tree_size": -7'),
    "a member twice": lambda text: text.replace('"format": 1', '"format": 1, "format": 1'),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_one_is_an_error_that_says_what_to_do(damage):
    path = remembered().path
    path.write_text(DAMAGED[damage](path.read_text()))
    with pytest.raises(Failure, match="it is damaged") as refused:
        Memory.of(SERVICE)
    assert str(path) in refused.value.detail
    assert "from a backup" in refused.value.detail
    assert "remove it" in refused.value.detail
    assert (refused.value.code, refused.value.exit_code) == ("memory_unreadable", 1)


def test_a_save_that_fails_leaves_what_was_there(monkeypatch):
    memory = remembered()
    before = memory.path.read_text()
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    memory.keep_ledger("e", [b"c" * 32])
    with pytest.raises(OSError, match="No space"):
        memory.save()
    assert memory.path.read_text() == before
    assert [path.name for path in memory.path.parent.iterdir()] == [memory.path.name]


def test_pins_follow_endorsements_and_nothing_else():
    memory = Memory.of(SERVICE)
    memory.pin(tuple(KEYS[:1]))
    memory.pin(tuple(KEYS))
    assert memory.public_keys == [EARLY.public_bytes, LATER.public_bytes]
    memory.pin(tuple(KEYS))
    assert len(memory.keys) == 2
    memory.pin((KEYS[1],))
    assert memory.public_keys == [KEY.public_bytes], "one that is named instead takes their place"


def test_the_larger_head_and_the_longer_ledger_stay():
    memory = remembered()
    memory.keep_head(TreeHead.sign(KEY, tree_size=3, timestamp_ms=2, root_hash=b"s" * 32))
    memory.keep_ledger("d", [b"x" * 32])
    assert (memory.head, memory.ledgers["d"].entries) == (HEAD, 2)


def test_a_service_is_known_by_its_address_and_an_embedded_one_by_its_folder(tmp_path):
    for url in ("https://One.example.org/", "https://one.example.org:443", "HTTPS://one.example.org"):
        assert Target(url, None).service == SERVICE
    assert Target("https://one.example.org/api/", None).service == f"{SERVICE}/api"
    assert Target("http://127.0.0.1:8000", "k", tmp_path).service == Target("http://127.0.0.1:9", "k", tmp_path).service
