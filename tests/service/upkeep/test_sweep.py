"""The sweep deletes what no row names, and nothing else."""

import json
import uuid

from sqlalchemy import text

from service.platform.context import open_context
from service.upkeep.installation import owner_transaction
from service.upkeep.sweep import sweep
from tests.service.http.conftest import api, context, dataset_id  # noqa: F401 - fixtures


def test_orphans_go_and_everything_named_stays(api, context, database, dataset_id):  # noqa: F811 - the fixtures themselves
    relay = open_context(context.settings.model_copy(update={"database_url": database.relay_url}))
    order = {"method": "idpgan", "epsilon": 1, "steps": 5}
    running = api.order(dataset_id, order).json()["id"]
    ended = api.order(dataset_id, order).json()["id"]
    storage = context.storage
    current, of_the_ended = (f"checkpoints/{release}/current" for release in (running, ended))
    with owner_transaction(context.settings) as session:
        for release, key in ((running, current), (ended, of_the_ended)):
            name = text("UPDATE releases SET checkpoint_key = :key, lease_token = 1, recorded_token = 1 WHERE id = :id")
            session.execute(name, {"key": key, "id": release})
    api.http.post(f"/v1/releases/{ended}/cancel", headers=api.analyst)
    kept = {*storage.list(f"datasets/{dataset_id}"), current, "elsewhere/file"}
    assert len(kept) == 4  # the upload as it came is one of them
    for key in (current, "elsewhere/file"):
        storage.put(key, b"x")
    of_the_frozen = f"checkpoints/{running}/of-a-worker-that-was-frozen"
    orphans = {f"datasets/{uuid.uuid4()}/rows", of_the_ended, of_the_frozen, f"checkpoints/{uuid.uuid4()}"}
    orphans.add(storage.put_content("bundles", json.dumps({"of": "a crash"}).encode()))
    for key in orphans:
        storage.put(key, b"x")
    assert sweep(relay, min_age_seconds=3_600) == 0
    assert sweep(relay, min_age_seconds=0) == len(orphans)
    assert set(storage.list()) == kept
    assert sweep(open_context(context.settings), min_age_seconds=0) == 0
