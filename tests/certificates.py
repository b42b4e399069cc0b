"""Certificates without a service: made by the worker's own function from rows that no database holds."""

import datetime as dt
import os
import uuid
from types import SimpleNamespace

from imprimatur.verify.signatures import UNSIGNED
from service.datasets.models import Dataset
from service.ledger.models import LedgerEntry
from service.ledger.service import OtherReleases
from service.methods.catalogue import parse_order
from service.platform.signing import SigningKey
from service.privacy.filters import open_budget
from service.releases.models import Release
from tests.orders import price_order
from workers.certificate import certify, state

NEW_IN_2 = (
    *("contribution_bound", "neighbouring_relation", "other_releases", "mechanisms", "accounting", "trust_model"),
    *("not_protected", "audit", "warnings", "transparency"),
)
NEW_IN_3 = ("members", "not_modelled")
BUDGET = open_budget(5.0, 1e-6)
IDPGAN = {
    "method": "idpgan",
    "epsilon": 2.0,
    "steps": 40,
    "condition_on": "colour",
    "noise_decay": {"kind": "periodic", "period_epochs": 1},
    "thresholds": {"kind": "adaptive", "every_steps": 3},
    "sampling_probability": 0.2,
}
SCHEMA = {
    "fields": [
        {"name": "colour", "type": "string", "constraints": {"enum": ["red", "green"], "required": True}},
        {"name": "size", "type": "integer", "constraints": {"minimum": 0, "maximum": 4, "required": True}},
    ]
}
VISITS = {"column": "person", "max_rows_per_unit": 3}
NO_OTHERS = OtherReleases(charged=0, pending=0, simple=0, renyi=0, entries=2)
SIGNING_KEY = SigningKey(os.urandom(32))
TRANSPARENCY = {"tree_head": {"tree_size": 2}}
"""Passed through as it is; `tests/service/http/test_rewrites.py` has the real one."""
FILES = {"config.json": b"{}", "sample.py": b"print(1)"}
"""What is published with it."""


def made_certificate(
    order=IDPGAN, *, others=NO_OTHERS, privacy_unit=None, image=False, budget=BUDGET, units=10_000, table=SCHEMA
):
    """A signed certificate of an order."""
    resolved = parse_order(order)
    price = price_order(resolved, units=units, budget=budget)
    schema = {"type": "image", "height": 8, "width": 8, "channels": 1} if image else table
    dataset = Dataset(
        id=uuid.uuid4(),
        schema=schema,
        privacy_unit=privacy_unit,
        units=units,
        epsilon=budget.epsilon,
        delta=budget.delta,
        renyi_order=budget.renyi_order,
        renyi_capacity=budget.renyi_capacity,
    )
    release = Release(id=uuid.uuid4(), order_=resolved.model_dump(mode="json"), price=price.as_json)
    posted = LedgerEntry(
        seq=2,
        kind="post",
        simple=price.shares.simple,
        renyi=price.shares.renyi,
        hash=os.urandom(32),
        created_at=dt.datetime.now(dt.UTC),
    )
    made = SimpleNamespace(
        engine="outer_products", rows_per_unit=None, choice=None
    )  # all that a certificate says of training
    statement = state(
        dataset=dataset,
        release=release,
        posted=posted,
        made=made,
        others=others,
        issued_at=dt.datetime.now(dt.UTC),
    )
    return certify(SIGNING_KEY, statement, FILES, transparency=TRANSPARENCY, consistency=[])


def of_format_1(certificate):
    """As versions before format 2 made and signed it."""
    left = {k: v for k, v in certificate.items() if k not in {*NEW_IN_2, *NEW_IN_3, *UNSIGNED}}
    document = {**left, "format": 1, "noise": "Gaussian, from ChaCha20 seeded by the operating system"}
    return {**document, "public_key": SIGNING_KEY.public_key, "signature": SIGNING_KEY.sign(document)}
