"""The secret key file: bound to its database, and replaced root by root while old data stay readable."""

from __future__ import annotations

import json
import os
import stat
import uuid
from pathlib import Path
from typing import Any

import psycopg
import pytest
from fastapi.testclient import TestClient

from service.base.errors import InvalidInput, Tampered, Unavailable, WrongSecretKey
from service.http.app import create_app
from service.platform.crypto import Secrets, unwrapped
from service.platform.database import transaction
from service.platform.keyring import Keyring, root_id
from service.platform.secret_roots import in_use, require_right
from service.upkeep import rotation
from service.upkeep.installation import install, install_secrets, owner_transaction
from tests.bare_rows import add_bare_dataset


class Broken(Exception):
    """A process that ends in the middle."""


def owner_key(settings: Any, tmp_path: Path) -> str:
    install(settings, tmp_path / "admin.key")
    return (tmp_path / "admin.key").read_text().strip()


def wrapped_keys(settings: Any) -> dict[uuid.UUID, bytes]:
    with psycopg.connect(settings.migration_database_url.replace("+psycopg", "")) as connection:
        rows = connection.execute("SELECT id, wrapped_data_key FROM datasets WHERE wrapped_data_key IS NOT NULL")
        return {row[0]: bytes(row[1]) for row in rows}


def add_wrapped(settings: Any, secrets: Secrets, number: int = 1) -> dict[uuid.UUID, bytes]:
    """Datasets whose data keys are wrapped under the newest root of these secrets."""
    keys = {}
    with owner_transaction(settings) as session:
        for _ in range(number):
            dataset_id, key = uuid.uuid4(), os.urandom(32)
            add_bare_dataset(session, id=dataset_id, wrapped_data_key=secrets.wrap_data_key(key, dataset_id))
            keys[dataset_id] = key
    return keys


def answers(settings: Any, key: str) -> int:
    with TestClient(create_app(settings)) as client:
        return client.get("/v1/keys", headers={"Authorization": f"Bearer {key}"}).status_code


# -- the file belongs to the database ------------------------------------------------------------------------------


def test_a_lost_file_is_never_made_anew_beside_data(settings, tmp_path):
    owner_key(settings, tmp_path)
    settings.keyring_path.unlink()
    with pytest.raises(WrongSecretKey, match="is missing"):
        install(settings, tmp_path / "admin.key")
    assert not settings.keyring_path.exists()


@pytest.mark.parametrize("content", [b"w" * 32, Keyring.new().to_bytes()], ids=["32 bytes", "keyring"])
def test_another_file_is_refused_by_install_start_and_readyz(settings, tmp_path, content):
    key = owner_key(settings, tmp_path)
    right = settings.keyring_path.read_bytes()
    with TestClient(create_app(settings)) as client:
        assert client.get("/readyz").json()["parts"]["secrets"] == "ok"
        settings.keyring_path.write_bytes(content)
        with pytest.raises(WrongSecretKey):
            install(settings, tmp_path / "admin.key")
        app = create_app(settings)  # a process that starts with the wrong file
        with pytest.raises(WrongSecretKey), TestClient(app):
            pass
        assert TestClient(app).get("/readyz").json()["parts"]["secrets"] == "wrong"
        settings.keyring_path.write_bytes(right)
    assert answers(settings, key) == 200


def test_an_older_installation_must_open_its_data_keys(settings, tmp_path):
    owner_key(settings, tmp_path)
    add_wrapped(settings, Secrets.load(settings.keyring_path))
    with owner_transaction(settings) as session:
        session.connection().exec_driver_sql("DELETE FROM secret_roots")  # as before there was such a table
    right = settings.keyring_path.read_bytes()
    settings.keyring_path.write_bytes(b"w" * 32)
    with pytest.raises(WrongSecretKey):
        install_secrets(settings)
    settings.keyring_path.write_bytes(right)
    ring = install_secrets(settings).ring
    with owner_transaction(settings) as session:
        assert in_use(session)["wrapping"] == {root_id("wrapping", ring.wrapping[0])}


def test_the_worker_has_the_wrapping_root_alone(settings, tmp_path):
    owner_key(settings, tmp_path)
    worker = Secrets.load(settings.worker_keyring_path)
    assert worker.ring == Keyring(wrapping=Secrets.load(settings.keyring_path).ring.wrapping)
    assert stat.S_IMODE(settings.worker_keyring_path.stat().st_mode) == 0o600
    with transaction(settings) as session:
        require_right(session, worker)
    for asks in (lambda: worker.api_key_digest("imp_a"), lambda: worker.fingerprint_key):
        with pytest.raises(Unavailable, match="no root"):
            asks()
    with pytest.raises(Unavailable, match="no root"):
        Secrets.load(None).wrap_data_key(bytes(32), "d")


# -- rotation --------------------------------------------------------------------------------------------------------


def test_rotation_wraps_old_data_anew_and_finish_takes_the_old_root_out(settings, tmp_path):
    key = owner_key(settings, tmp_path)  # the fixture's file has 32 bytes: one master secret, as old installations have
    old = Secrets.load(settings.keyring_path)
    keys = add_wrapped(settings, old, 3)
    done = rotation.rotate(settings)
    assert (done.wrapped, done.new_root) == (3, True)
    new = Secrets.load(settings.keyring_path)
    assert new.ring.wrapping[1:] == old.ring.wrapping
    assert new.ring.fingerprints == old.ring.fingerprints  # the same rows must not get a second budget
    assert rotation.rotate(settings).wrapped == 0  # harmless to repeat
    assert Secrets.load(settings.keyring_path).ring == new.ring

    done = rotation.finish(settings)
    assert (done.finished, done.waiting_keys) == (True, 1)
    last = Secrets.load(settings.keyring_path)
    assert last.ring.wrapping == new.ring.wrapping[:1]
    assert answers(settings, key) == 200  # hashed under the old root of API keys, which therefore stays
    for dataset_id, wrapped in wrapped_keys(settings).items():
        assert last.unwrap_data_key(wrapped, dataset_id) == keys[dataset_id]
        assert unwrapped(old.ring.wrapping[0], wrapped, dataset_id) is None
    with pytest.raises(WrongSecretKey), transaction(settings) as session:
        require_right(session, Secrets(old.ring.to_bytes()))
    assert Secrets.load(settings.worker_keyring_path).ring.wrapping == last.ring.wrapping


def test_the_old_root_of_api_keys_leaves_with_its_last_living_key(settings, tmp_path):
    key = owner_key(settings, tmp_path)
    old = Secrets.load(settings.keyring_path).ring.api_keys[0]
    rotation.rotate(settings)
    with TestClient(create_app(settings)) as client:
        head = {"Authorization": f"Bearer {key}"}
        mine = client.get("/v1/keys", headers=head).json()["items"][0]["id"]
        made = client.post(f"/v1/keys/{mine}/replacement", headers=head, json={"overlap_seconds": 0}).json()["key"]
    done = rotation.finish(settings)
    assert done.waiting_keys == 0
    assert old not in Secrets.load(settings.keyring_path).ring.api_keys
    assert answers(settings, made) == 200
    assert answers(settings, key) == 401


def test_a_running_process_needs_no_restart(settings, tmp_path):
    key = owner_key(settings, tmp_path)
    running = Secrets.load(settings.keyring_path)
    keys = add_wrapped(settings, running)
    app = create_app(settings)
    with TestClient(app) as client:
        rotation.rotate(settings)
        ((dataset_id, wrapped),) = wrapped_keys(settings).items()
        assert running.unwrap_data_key(wrapped, dataset_id) == keys[dataset_id]
        head = {"Authorization": f"Bearer {key}"}
        assert client.get("/v1/keys", headers=head).status_code == 200
        # A key that another process made under the new root, before this one has seen it.
        with TestClient(create_app(settings)) as other:
            made = other.post("/v1/keys", headers=head, json={"name": "n", "scope": "reader"}).json()["key"]
        assert client.get("/v1/datasets", headers={"Authorization": f"Bearer {made}"}).status_code == 200
    stale = Secrets.load(settings.keyring_path)
    rotation.finish(settings)
    assert unwrapped(stale.ring.wrapping[0], stale.wrap_data_key(bytes(32), "d"), "d") == bytes(32)


@pytest.mark.parametrize("batch", [1, 2])
def test_a_rotation_that_is_broken_off_goes_on(settings, tmp_path, monkeypatch, batch):
    owner_key(settings, tmp_path)
    keys = add_wrapped(settings, Secrets.load(settings.keyring_path), 5)
    monkeypatch.setattr(rotation, "BATCH", batch)

    def ends(done: int) -> None:
        if done >= 2:
            raise Broken

    with pytest.raises(Broken):
        rotation.rotate(settings, ends)
    secrets = Secrets.load(settings.keyring_path)
    under_new = [unwrapped(secrets.ring.wrapping[0], w, d) is not None for d, w in wrapped_keys(settings).items()]
    assert 2 <= sum(under_new) < 5
    for dataset_id, wrapped in wrapped_keys(settings).items():  # all are readable in the middle
        assert secrets.unwrap_data_key(wrapped, dataset_id) == keys[dataset_id]
    assert rotation.rotate(settings).wrapped == 5 - sum(under_new)
    with pytest.raises(Broken):
        rotation.finish(settings, lambda _: ends(2))
    rotation.finish(settings)
    last = Secrets.load(settings.keyring_path)
    assert len(last.ring.wrapping) == 1
    for dataset_id, wrapped in wrapped_keys(settings).items():
        assert last.unwrap_data_key(wrapped, dataset_id) == keys[dataset_id]


def ends(*_: Any) -> None:
    raise Broken


def test_a_finish_that_is_broken_off_before_its_file_hinders_no_later_rotation(settings, tmp_path, monkeypatch):
    owner_key(settings, tmp_path)
    first = Secrets.load(settings.keyring_path).ring
    keys = add_wrapped(settings, Secrets.load(settings.keyring_path), 2)
    assert rotation.rotate(settings).new_root
    second = Secrets.load(settings.keyring_path).ring
    with monkeypatch.context() as patched:
        patched.setattr(rotation, "write", ends)
        with pytest.raises(Broken):
            rotation.finish(settings)
    assert Secrets.load(settings.keyring_path).ring == second, "the retired root was left in the file"

    done = rotation.rotate(settings)
    third = Secrets.load(settings.keyring_path)
    assert (done.new_root, done.wrapped) == (True, 2)
    assert third.ring.wrapping[1:] == second.wrapping[:1]
    assert third.ring.wrapping[0] not in (*first.wrapping, *second.wrapping)
    rotation.finish(settings)
    last = Secrets.load(settings.keyring_path)
    assert last.ring.wrapping == third.ring.wrapping[:1]
    for dataset_id, wrapped in wrapped_keys(settings).items():
        assert last.unwrap_data_key(wrapped, dataset_id) == keys[dataset_id]
        assert unwrapped(second.wrapping[0], wrapped, dataset_id) is None


@pytest.mark.parametrize("where", ["before the database", "before the file"])
def test_no_root_is_used_that_the_database_does_not_know(settings, tmp_path, monkeypatch, where):
    owner_key(settings, tmp_path)
    rotation.prepare(settings)
    before = settings.keyring_path.read_bytes()
    write = rotation.write

    def writes_what_is_prepared(of: Any, ring: Keyring) -> None:
        if ring.to_bytes() != before:
            raise Broken
        write(of, ring)

    with monkeypatch.context() as patched:
        if where == "before the database":
            patched.setattr(rotation.secret_roots, "register", ends)
        else:
            patched.setattr(rotation, "write", writes_what_is_prepared)
        with pytest.raises(Broken):
            rotation.rotate(settings)
    front = Secrets.load(settings.keyring_path).ring.wrapping[0]
    with owner_transaction(settings) as session:
        assert root_id("wrapping", front) in in_use(session)["wrapping"]
    with pytest.raises(InvalidInput, match="rotate first"):
        rotation.finish(settings)  # it would take the new root out instead of the old one
    done = rotation.rotate(settings)
    assert done.new_root
    after = Secrets.load(settings.keyring_path).ring
    assert after.wrapping == Keyring.from_bytes(before).wrapping[::-1]
    assert after.api_keys == Keyring.from_bytes(before).api_keys[::-1]


def test_an_older_file_is_refused_as_soon_as_a_newer_root_can_be_in_use(settings, tmp_path, monkeypatch):
    owner_key(settings, tmp_path)
    older = settings.keyring_path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(rotation, "_wrap_all", ends)
        with pytest.raises(Broken):
            rotation.rotate(settings)
    newer = Secrets.load(settings.keyring_path)
    data_key, dataset_id = os.urandom(32), uuid.uuid4()
    wrapped = newer.wrap_data_key(data_key, dataset_id)
    settings.keyring_path.write_bytes(older)
    with pytest.raises(WrongSecretKey), transaction(settings) as session:
        require_right(session, Secrets.load(settings.keyring_path))
    assert newer.unwrap_data_key(wrapped, dataset_id) == data_key


def test_a_rotation_that_made_no_new_root_says_so(settings, tmp_path):
    owner_key(settings, tmp_path)
    assert rotation.prepare(settings)
    assert rotation.rotate(settings).new_root
    assert not rotation.rotate(settings).new_root
    assert not rotation.prepare(settings)
    rotation.finish(settings)
    assert rotation.prepare(settings)


def test_the_order_of_roots_does_not_depend_on_the_clock(settings, tmp_path):
    owner_key(settings, tmp_path)
    with owner_transaction(settings) as session:
        session.connection().exec_driver_sql("UPDATE secret_roots SET in_use_since = now() + interval '1 year'")
    older = Secrets.load(settings.keyring_path).ring.wrapping
    assert rotation.rotate(settings).new_root
    assert Secrets.load(settings.keyring_path).ring.wrapping[1:] == older
    rotation.finish(settings)


def test_data_wrapped_under_an_older_file_that_was_put_back_are_wrapped_anew(settings, tmp_path):
    """The prepared file holds all roots in use, so it is taken; its root in front is retired by now."""
    owner_key(settings, tmp_path)
    rotation.prepare(settings)
    prepared = settings.keyring_path.read_bytes()
    rotation.rotate(settings)
    rotation.finish(settings)
    settings.keyring_path.write_bytes(prepared)
    keys = add_wrapped(settings, Secrets.load(settings.keyring_path))
    assert rotation.rotate(settings).wrapped == 1
    rotation.finish(settings)
    last = Secrets.load(settings.keyring_path)
    assert last.ring.wrapping == Keyring.from_bytes(prepared).wrapping[1:]
    ((dataset_id, wrapped),) = wrapped_keys(settings).items()
    assert last.unwrap_data_key(wrapped, dataset_id) == keys[dataset_id]


def test_prepared_roots_are_not_used_before_they_are_everywhere(settings, tmp_path):
    owner_key(settings, tmp_path)
    before = Secrets.load(settings.keyring_path)
    rotation.prepare(settings)
    prepared = Secrets.load(settings.keyring_path)
    assert prepared.ring.wrapping[0] == before.ring.wrapping[0]
    assert len(prepared.ring.wrapping) == 2
    with transaction(settings) as session:
        require_right(session, before)  # a machine that has no copy yet goes on
    with pytest.raises(Exception, match="rotate first"):
        rotation.finish(settings)
    rotation.rotate(settings)
    assert Secrets.load(settings.keyring_path).ring.wrapping == prepared.ring.wrapping[::-1]


def test_an_upload_between_rotate_and_finish_is_wrapped_anew(settings, tmp_path):
    owner_key(settings, tmp_path)
    stale = Keyring.from_bytes(settings.keyring_path.read_bytes())
    rotation.rotate(settings)
    keys = add_wrapped(settings, Secrets(Keyring(wrapping=stale.wrapping).to_bytes()), 2)
    assert rotation.finish(settings).wrapped == 2
    last = Secrets.load(settings.keyring_path)
    for dataset_id, wrapped in wrapped_keys(settings).items():
        assert last.unwrap_data_key(wrapped, dataset_id) == keys[dataset_id]


def test_a_key_that_no_root_opens_stops_the_rotation_and_keeps_the_roots(settings, tmp_path):
    owner_key(settings, tmp_path)
    add_wrapped(settings, Secrets(b"x" * 32))
    with pytest.raises(Tampered, match="no root"):
        rotation.rotate(settings)
    with pytest.raises(Tampered, match="no root"):
        rotation.finish(settings)
    assert len(Secrets.load(settings.keyring_path).ring.wrapping) == 2


# -- the file ----------------------------------------------------------------------------------------------------------


def test_a_broken_file_is_refused_without_its_contents():
    good = json.loads(Keyring.new().to_bytes())
    for broken in (
        b"",
        b"x" * 31,
        b"[1]",
        json.dumps(good | {"version": 3}).encode(),
        json.dumps(good | {"wrapping": ["c2hvcnQ="]}).encode(),
        json.dumps(good | {"other": []}).encode(),
        json.dumps(good | {"wrapping": "SECRETSECRET"}).encode(),
    ):
        with pytest.raises(Unavailable) as caught:
            Keyring.from_bytes(broken)
        assert "SECRET" not in str(caught.value.detail)
    ring = Keyring.new()
    assert Keyring.from_bytes(ring.to_bytes()) == ring
    assert ring.wrapping[0].hex() not in repr(ring)
