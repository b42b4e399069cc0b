"""Pictures of a generator in training: those of the recorded checkpoint, for its tenant, while it trains."""

import io
import json

import numpy as np
import pytest
import torch
from PIL import Image
from sqlalchemy import text

from service.base.errors import NotFound, Tampered
from service.methods.catalogue import parse_resolved_order
from service.privacy.events import events_from_json
from service.upkeep.installation import owner_transaction
from tests.tiny_images import image_schema, make_images, npz
from workers import lease as leases
from workers.checkpoints import Checkpoint
from workers.encoding.images import EncodedImages
from workers.kept import Checkpoints
from workers.mechanism.secure_random import SecureRandom
from workers.methods.idpgan.images import PREVIEWED, ImageIdpgan
from workers.plan import Plan
from workers.run import Attempt

ORDER = {"method": "idpgan", "epsilon": 1, "steps": 30, "image_networks": {"generator_channels": [4]}}


@pytest.fixture
def release(api):
    pixels, labels = make_images(40)
    dataset = api.upload(npz(pixels, labels), schema=json.dumps(image_schema())).json()["id"]
    made = api.order(dataset, ORDER).json()
    return {**made, "images": EncodedImages(pixels.reshape(40, -1), labels.astype(np.int64), (6, 5, 1), 3)}


def claim(context, release_id):
    lease = leases.claim_next(context.settings)
    assert str(lease.release_id) == release_id
    return lease


def preview(api, release_id, key=None):
    return api.http.get(f"/v1/releases/{release_id}/preview", headers=key or api.reader)


def test_the_preview_is_that_of_the_recorded_checkpoint(api, context, release):
    nothing = preview(api, release["id"])
    assert (nothing.status_code, nothing.json()["code"]) == (409, "not_ready")
    attempt = Attempt(context, claim(context, release["id"]))
    attempt.charge()
    order, events = parse_resolved_order(attempt.release.order_), events_from_json(attempt.release.price["events"])
    torch.manual_seed(0)
    randomness = SecureRandom.from_test_seed(1)
    method = ImageIdpgan(order, Plan(events), release["images"], randomness, torch.device("cpu"))
    method.measure()
    seen = []
    for _ in range(2):
        method.critic_step()
        method.generator_step()
        unrecorded = preview(api, release["id"])
        assert unrecorded.content not in seen[:-1]
        attempt.checkpoints.put(method.checkpoint().to_bytes())
        reply = preview(api, release["id"])
        assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png")
        if seen:
            assert unrecorded.content == seen[-1], "what is not recorded is not shown"
        seen.append(reply.content)
    assert seen[0] != seen[1]
    grid = np.asarray(Image.open(io.BytesIO(seen[1])))
    assert grid.shape == (3 * 8 - 2, PREVIEWED * 7 - 2)
    first = method.preview()[0, 0, :, :, 0].numpy()
    assert np.array_equal(grid[:6, :5], first)
    assert preview(api, release["id"], api.stranger).status_code == 404

    # The next attempt goes on from what was shown, never from before.
    again = Attempt(context, attempt.lease)
    saved = Checkpoint.from_bytes(again.checkpoints.get())
    assert saved.values["step"] == 2

    # Who writes to the store puts no other in its place.
    put_in_its_place = Checkpoint(saved.tensors, {**saved.values, "step": 1}).to_bytes()
    context.storage.put(again.release.checkpoint_key, put_in_its_place)
    with pytest.raises(Tampered):
        again.checkpoints.get()
    assert preview(api, release["id"]).json()["code"] == "tampered"
    context.storage.delete(again.release.checkpoint_key)
    with pytest.raises(NotFound):
        again.checkpoints.get()
    assert preview(api, release["id"]).status_code == 409
    assert isinstance(again.checkpoints, Checkpoints)


def test_tables_and_ended_releases_have_none(api, context, dataset_id, release):
    table = api.order(dataset_id, {"method": "idpgan", "epsilon": 1, "steps": 50}).json()["id"]
    with owner_transaction(context.settings) as session:
        key = context.storage.put_content("checkpoints/x", Checkpoint({"a": torch.zeros(1)}, {}).to_bytes())
        name = "UPDATE releases SET checkpoint_key = :key, lease_token = 1, recorded_token = 1 WHERE id = :id"
        session.execute(text(name), {"key": key, "id": table})
    assert preview(api, table).status_code == 409
    assert api.http.post(f"/v1/releases/{release['id']}/cancel", headers=api.analyst).status_code == 200
    gone = preview(api, release["id"])
    assert (gone.status_code, gone.json()["code"]) == (409, "not_ready")
