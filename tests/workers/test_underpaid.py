"""What the application's role can write and the database cannot judge: dear events at a small price. The worker judges."""

import json
import uuid

import pytest

from service.audit.models import DONE
from service.datasets.models import Dataset
from service.methods.catalogue import CATALOGUE, parse_order
from service.platform.context import open_context
from service.privacy.calibration import is_paid
from service.privacy.filters import Shares, open_budget
from service.releases import repository
from service.releases.models import Release
from tests.conftest import small_table
from tests.orders import price_order
from workers.fitting import says_what_it_costs

pytestmark = pytest.mark.slow

BUDGET = open_budget(5.0, 1e-5)
MARGINALS = {"method": "marginals", "pairs": "chosen"}
ORDERS = [
    {"method": "idpgan", "condition_on": "colour"},
    {"method": "idpgan", "steps": 3, "sampling_probability": 1.0, "thresholds": {"kind": "fixed"}},
    {"method": "marginals", "pairs": "chosen"},
    {"method": "marginals", "pairs": "few_or_all"},
    {"method": "marginals", "pairs": "all"},
    {"method": "marginals", "pairs": "none"},
    {"method": "mixture"},
    *(
        {
            "method": name,
            **({"questions": [{"kind": "count"}, {"kind": "keys", "columns": ["a"]}]} if name == "queries" else {}),
        }
        for name in CATALOGUE
        if name not in {"idpgan", "marginals", "mixture", "choose", "gswgan", "declaration"}
    ),
    {"method": "gswgan", "discriminators": 50},
    {
        "method": "declaration",
        "purchases": [
            {"column": "a", "ends": [], "epsilon": 0.1},
            {"column": "b", "ends": ["maximum"], "epsilon": 0.2},
        ],
    },
    {"method": "choose", "candidates": [MARGINALS], "trials": [{"method": "marginals", "pairs": "none"}]},
    {"method": "choose", "candidates": [MARGINALS], "form": "repeat", "mean_runs": 3.0},
]


@pytest.mark.parametrize("order", ORDERS, ids=str)
@pytest.mark.parametrize("epsilon", [0.013, 1 / 3, 5.0])
def test_every_price_is_enough_for_its_own_events_and_a_smaller_one_is_not(order, epsilon):
    price = price_order(parse_order({**order, "epsilon": epsilon}), units=10_000, budget=BUDGET)
    paid, scale = price.shares, price.epsilon
    assert is_paid(price.events, paid, BUDGET, epsilon_scale=scale)
    assert says_what_it_costs(price.as_json, price.events, paid, BUDGET)
    assert not is_paid(price.events, Shares(paid.simple * 98 // 100, paid.renyi), BUDGET, epsilon_scale=scale)
    assert not is_paid(price.events, Shares(paid.simple, paid.renyi - 5), BUDGET, epsilon_scale=scale)


@pytest.mark.parametrize("scale", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_none_pays_for_nothing(scale):
    price = price_order(parse_order({"method": "mixture", "epsilon": 1.0}), units=10_000, budget=BUDGET)
    assert not is_paid(price.events, price.shares, BUDGET, epsilon_scale=scale)


def voided(stack, client, dataset, honest, *, cost=None, price=None):
    """Place it again by raw SQL, with these changes; how it ended, after the honest one was published."""
    context = open_context(stack.settings)
    with context.transaction() as session:
        release = session.get_one(Release, uuid.UUID(honest["id"]))
        budget = session.get_one(Dataset, release.dataset_id).budget
    priced = price_order(release.order, units=200, budget=budget)
    assert priced.shares == Shares(release.simple_cost, release.renyi_cost), "dear for another reason than this test's"
    costs = {"simple_cost": priced.shares.simple, "renyi_cost": priced.shares.renyi}
    with context.driver() as connection:
        (key,) = connection.execute("SELECT id FROM api_keys WHERE tenant_id = %s", (release.tenant_id,)).fetchone()
        forged = uuid.uuid4()
        placed = repository.place(
            connection,
            id=forged,
            tenant_id=release.tenant_id,
            dataset_id=release.dataset_id,
            **{name: value // 2 if name == cost else value for name, value in costs.items()},
            idempotency_key=None,
            body_digest=b"",
            steps=release.steps,
            declaration=1,
            order=release.order.model_dump_json(),
            price=json.dumps(priced.as_json | (price or {})),
            key_id=key,
            priority=3,
            estimate="null",
            most_of_key=10_000,
            most_of_tenant=10_000,
            action="order_release",
            request_id=uuid.uuid4(),
            audit_outcome=DONE,
        )
        repository.make_durable(connection)
    assert placed.outcome == "done"
    ended = client.wait(str(forged), timeout=600)
    assert client.wait(honest["id"], timeout=600)["state"] == "published"
    kinds = [entry["kind"] for entry in client.ledger(dataset["id"])["items"] if entry["release_id"] == str(forged)]
    return ended["state"], ended["failure"], sorted(kinds)


@pytest.fixture
def placed(client, small_schema, small_order, tmp_path):
    dataset = client.create_dataset(small_table(tmp_path / "t.csv"), small_schema, epsilon=5.0, name="t")
    return dataset, client.create_release(dataset["id"], {**small_order, "epsilon": 0.1})


@pytest.mark.parametrize("cost", ["simple_cost", "renyi_cost"])
def test_a_release_that_raw_sql_made_too_cheap_is_voided_before_a_row_is_read(stack, client, placed, cost):
    assert voided(stack, client, *placed, cost=cost) == ("voided", "underpaid", ["reserve", "void"])


def test_a_price_that_raw_sql_made_say_too_little_is_voided(stack, client, placed):
    said = {"delta": 1e-30, "renyi_divergence": 1e-9}  # which is on no list, and a certificate would have signed
    assert voided(stack, client, *placed, price=said) == ("voided", "underpaid", ["reserve", "void"])


@pytest.mark.parametrize("said", [{"renyi_divergence": None}, {"pld_epsilon": "cheap"}, {"events": "none"}], ids=str)
def test_a_price_that_raw_sql_wrote_a_word_into_is_voided_too(stack, client, placed, said):
    assert voided(stack, client, *placed, price=said) == ("voided", "underpaid", ["reserve", "void"])
