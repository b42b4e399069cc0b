"""The least that foreign keys ask for: a tenant, a dataset that was never uploaded, an empty account, a bare release."""

import uuid

from sqlalchemy import insert

from service.auth.models import ApiKey, Tenant
from service.datasets.models import Dataset
from service.ledger import repository
from service.privacy.filters import open_budget
from service.releases.models import Release


def add_bare_dataset(session, **values):
    """Returns (tenant id, dataset id)."""
    tenant, dataset = uuid.uuid4(), values.get("id", uuid.uuid4())
    session.execute(insert(Tenant).values(id=tenant, name=str(tenant)))
    budget = open_budget(values.get("epsilon", 1.0), values.get("delta", 1e-6))
    defaults = {
        "id": dataset,
        "tenant_id": tenant,
        "name": "bare",
        "schema": {},
        "units": 100,
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "renyi_order": budget.renyi_order,
        "renyi_capacity": budget.renyi_capacity,
        "storage_key": "k",
        "wrapped_data_key": b"w",
    }
    session.execute(insert(Dataset).values({**defaults, **values}))
    repository.open_account(session, dataset)
    return tenant, dataset


def add_bare_key(session, tenant):
    """A key that no one has, for lines of the audit log; returns its id."""
    key = uuid.uuid4()
    session.execute(insert(ApiKey).values(id=key, tenant_id=tenant, name="bare", scope="owner", digest=key.bytes))
    return key


def add_bare_release(session, tenant, dataset, cost, **values):
    """A release that was never priced; returns its id. Its reservation is the caller's business."""
    release = uuid.uuid4()
    defaults = {"id": release, "tenant_id": tenant, "dataset_id": dataset, "order_": {}, "price": {}, "steps": 10}
    costs = {"simple_cost": cost.simple, "renyi_cost": cost.renyi, "body_digest": b""}
    session.execute(insert(Release).values({**defaults, **costs, **values}))
    return release
