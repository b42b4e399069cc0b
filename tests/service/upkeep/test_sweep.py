"""The sweep deletes what no row names, and nothing else."""

import json
import uuid

from service.platform.context import open_context
from service.releases import repository
from service.upkeep.sweep import sweep
from tests.service.http.conftest import api, context, dataset_id  # noqa: F401 - fixtures


def test_orphans_go_and_everything_named_stays(api, context, dataset_id):  # noqa: F811 - the fixtures themselves
    order = {"method": "idpgan", "epsilon": 1, "steps": 5}
    running = api.order(dataset_id, order).json()["id"]
    ended = api.order(dataset_id, order).json()["id"]
    storage = context.storage
    current, of_the_ended = (f"checkpoints/{release}/current" for release in (running, ended))
    with context.transaction() as session:
        repository.change(session, uuid.UUID(running), checkpoint_key=current)
        repository.change(session, uuid.UUID(ended), checkpoint_key=of_the_ended)
    api.http.post(f"/v1/releases/{ended}/cancel", headers=api.analyst)
    kept = {f"datasets/{dataset_id}/rows", *storage.list(f"datasets/{dataset_id}"), current, "elsewhere/file"}
    assert len(kept) == 4  # the upload as it came is one of them
    for key in (current, "elsewhere/file"):
        storage.put(key, b"x")
    of_the_frozen = f"checkpoints/{running}/of-a-worker-that-was-frozen"
    orphans = {f"datasets/{uuid.uuid4()}/rows", of_the_ended, of_the_frozen, f"checkpoints/{uuid.uuid4()}"}
    orphans.add(storage.put_content("bundles", json.dumps({"of": "a crash"}).encode()))
    for key in orphans:
        storage.put(key, b"x")
    assert sweep(context, min_age_seconds=3_600) == 0
    assert sweep(context, min_age_seconds=0) == len(orphans)
    assert set(storage.list()) == kept
    assert sweep(open_context(context.settings), min_age_seconds=0) == 0
