"""A choice among orders over HTTP: quoted, charged, run by a worker; its certificate names the winner, and nothing tells of the others."""

import io
import json
import zipfile

import pytest

from service.releases.models import Release
from workers import lease as leases
from workers.run import Attempt

pytestmark = pytest.mark.slow

CANDIDATES = [
    {"method": "marginals", "steps": 5, "numeric_bins": 4},
    {"method": "marginals", "steps": 5, "purpose": "tables"},
]
ORDER = {"method": "choose", "epsilon": 2.5, "target": "city", "rows": 300, "candidates": CANDIDATES}


@pytest.mark.parametrize("form", ["parts", "repeat"])
def test_one_of_two_candidates_is_published(api, context, dataset_id, signing_key, form):  # noqa: ARG001 - what signs
    order = ORDER | {"form": form} | ({"padded_runs": 2, "mean_runs": 1.5} if form == "repeat" else {})
    quote = api.http.post(f"/v1/datasets/{dataset_id}/quotes", json=order, headers=api.analyst)
    assert quote.status_code == 200, quote.text
    assert quote.json()["order"]["target"] == "city"
    reply = api.order(dataset_id, order)
    assert reply.status_code == 202, reply.text
    release = reply.json()
    lease = leases.claim_next(context.settings)
    Attempt(context, lease).run()
    release = api.http.get(f"/v1/releases/{release['id']}", headers=api.reader).json()
    assert release["state"] == "published", release
    certificate = api.http.get(f"/v1/releases/{release['id']}/certificate", headers=api.reader).json()
    assert certificate["choice"]["candidates"] == 2
    assert certificate["choice"]["candidate"] in {0, 1}
    assert certificate["choice"]["form"] == form
    purposes = [each["purpose"] for each in certificate["mechanisms"]]
    assert purposes == (["choose_trials", "choose_winner"] if form == "parts" else ["choose_repeated"])
    bundle = api.http.get(f"/v1/releases/{release['id']}/generator", headers=api.reader).content
    with zipfile.ZipFile(io.BytesIO(bundle)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    assert set(members) == {
        *("generator.onnx", "generator.safetensors", "config.json", "MODEL_CARD.md", "sample.py", "certificate.json"),
    }
    assert json.loads(members["certificate.json"])["choice"] == certificate["choice"]
    rows = api.http.get(f"/v1/releases/{release['id']}/sample?rows=5", headers=api.reader)
    assert rows.status_code == 200, rows.text
    accounts = api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()["accounts"]
    assert accounts["simple"]["posted"] == pytest.approx(2.5 / 3.0 * 10**9, rel=1e-6)
    with context.transaction() as session:
        assert session.get_one(Release, lease.release_id).checkpoint_key is None


def test_what_cannot_be_chosen_is_refused_before_a_charge(api, dataset_id):
    refused = api.order(dataset_id, ORDER | {"target": "age"})
    assert refused.status_code == 422
    assert "choose one of" in refused.json()["detail"]
    nested = api.order(dataset_id, ORDER | {"candidates": [ORDER]})
    assert "'marginals', 'idpgan'" in nested.json()["detail"]
    assert api.http.get(f"/v1/datasets/{dataset_id}/budget", headers=api.reader).json()["epsilon_spent"] == 0.0
