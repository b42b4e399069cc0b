"""The signing key: made once, never silently replaced, followed from one to the next."""

import stat

import pytest
from sqlalchemy import text

from imprimatur.verify.heads import TreeHead, signed_bytes
from imprimatur.verify.signatures import PublicKey, trusted_keys
from service.ledger import log, signing_keys
from service.platform.context import open_context
from service.platform.crypto import Secrets
from service.platform.signing import NoSigningKey, SigningKey
from service.upkeep.installation import install_signing_key, owner_transaction, replace_signing_key
from tests.bare_rows import add_bare_dataset


@pytest.fixture
def install(settings):
    def again():
        install_signing_key(settings, Secrets.load(settings.secret_key_file))
        return SigningKey.load(settings.signing_key_path)

    return again


def listed(settings):
    with owner_transaction(settings) as session:
        return signing_keys.registered(session)


def test_a_new_installation_has_one_key_in_a_private_file(settings, install):
    key = install()
    assert install().id == key.id
    assert [each.id for each in listed(settings)] == [key.id]
    assert stat.S_IMODE(settings.signing_key_path.stat().st_mode) == 0o600
    assert settings.signing_key_path.name == "signing.key"
    assert settings.signing_key_path.read_bytes() != settings.secret_key_file.read_bytes()


def test_what_signed_before_there_was_a_file_is_listed_first_and_endorses(settings, install):
    with open_context(settings).transaction() as session:
        add_bare_dataset(session)
    key, before = install(), SigningKey(Secrets.load(settings.secret_key_file).first_signing_seed)
    keys = listed(settings)
    assert [each.id for each in keys] == [before.id, key.id]
    assert set(trusted_keys([before.public_bytes], keys)) == {before.id, key.id}
    assert set(trusted_keys([key.public_bytes], keys)) == {key.id}


def test_a_missing_or_a_wrong_file_stops_the_installation_and_is_not_replaced(settings, install):
    install()
    kept = settings.signing_key_path.read_bytes()
    settings.signing_key_path.unlink()
    with pytest.raises(NoSigningKey, match="is missing"):
        install()
    assert not settings.signing_key_path.exists()
    settings.signing_key_path.write_bytes(b"2" * 32)
    with pytest.raises(NoSigningKey, match="newest"):
        install()
    with pytest.raises(NoSigningKey, match="newest"):
        replace_signing_key(settings)
    settings.signing_key_path.write_bytes(b"short")
    with pytest.raises(NoSigningKey, match="32 bytes"):
        install()
    settings.signing_key_path.write_bytes(kept)
    assert len(listed(settings)) == 1
    settings.signing_key_path.unlink()
    new = replace_signing_key(settings, lost=True)
    assert install().id == new.id
    assert [each.endorsed_by for each in listed(settings)] == [None, None]


@pytest.mark.parametrize("registered", [True, False])
def test_a_crash_while_the_key_is_replaced_is_put_right(settings, install, registered, monkeypatch):
    """Before its key is registered a new file counts for nothing; afterwards it is the one."""
    old = install()

    class Crash(Exception):
        pass

    def crash(*_, **__):
        raise Crash

    if registered:
        monkeypatch.setattr("pathlib.Path.replace", crash)
    else:
        monkeypatch.setattr(signing_keys, "_add", crash)
    with pytest.raises(Crash):
        replace_signing_key(settings)
    monkeypatch.undo()
    assert SigningKey.load(settings.signing_key_path).id == old.id
    now = install()
    assert (now.id == old.id) == (not registered)
    assert now.id == listed(settings)[-1].id
    assert replace_signing_key(settings).id == install().id == listed(settings)[-1].id


def test_a_head_of_the_same_log_is_signed_anew_by_a_new_key(settings, install):
    first = install()
    context = open_context(settings)
    head = log.sign_head(context)
    second = replace_signing_key(settings)
    again = log.sign_head(context)
    assert (head.key_id, again.key_id) == (first.id, second.id)
    with context.transaction() as session:
        assert log.newest_head(session) == again
        assert session.scalar(text("SELECT count(*) FROM tree_heads")) == 2


def test_endorsements_lead_forward_only_and_are_checked():
    first, second, third = (SigningKey(bytes([number]) * 32) for number in range(3))
    keys = [
        PublicKey(third.id, third.public_bytes, second.id, second.endorse(third.public_bytes)),
        PublicKey(second.id, second.public_bytes, first.id, first.endorse(second.public_bytes)),
        PublicKey(first.id, first.public_bytes),
    ]
    assert set(trusted_keys([first.public_bytes], keys)) == {first.id, second.id, third.id}
    assert set(trusted_keys([second.public_bytes], keys)) == {second.id, third.id}
    assert trusted_keys([], keys) == {}
    for forged in (first.sign_bytes(third.public_bytes), first.endorse(second.public_bytes), b""):
        chain = [PublicKey(third.id, third.public_bytes, first.id, forged)]
        assert third.id not in trusted_keys([first.public_bytes], chain)
    for key in keys:
        assert PublicKey.of_json(key.to_json()) == key


def test_a_head_is_the_50_bytes_of_the_rfc_and_each_of_them_counts():
    key = SigningKey(b"k" * 32)
    head = TreeHead.sign(key, tree_size=258, timestamp_ms=1, root_hash=b"r" * 32)
    assert signed_bytes(258, 1, b"r" * 32) == bytes.fromhex("000100000000000000010000000000000102") + b"r" * 32
    assert head.is_signed_by(key.public_bytes)
    assert TreeHead.of_json(head.to_json()) == head
    for name, other in (("tree_size", 259), ("timestamp_ms", 2), ("root_hash", "00" * 32)):
        assert not TreeHead.of_json({**head.to_json(), name: other}).is_signed_by(key.public_bytes)
    for name, wrong in (("tree_size", True), ("tree_size", -1), ("timestamp_ms", 1.0), ("signature", "!")):
        with pytest.raises(ValueError, match=r"whole|base64|Only|Incorrect|Invalid|Excess|Non"):
            TreeHead.of_json({**head.to_json(), name: wrong})
