"""A dataset with an empty account, in a database of its own."""

import uuid

import pytest
from sqlalchemy import insert

from service.auth.models import Tenant
from service.datasets.models import Dataset
from service.db import transaction
from service.ledger import repository


@pytest.fixture
def dataset_id(settings):
    tenant, dataset = uuid.uuid4(), uuid.uuid4()
    with transaction(settings) as session:
        session.execute(insert(Tenant).values(id=tenant, name="t"))
        session.execute(
            insert(Dataset).values(
                id=dataset,
                tenant_id=tenant,
                name="d",
                schema={},
                units=100,
                epsilon=1.0,
                delta=1e-6,
                renyi_order=8,
                renyi_capacity=0.5,
                fingerprint=dataset.bytes,
                storage_key="k",
                wrapped_data_key=b"w",
            )
        )
        repository.open_account(session, dataset)
    return dataset
