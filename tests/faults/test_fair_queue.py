"""The whole service, one worker: how many releases begin between another tenant's order and its own begin."""

import re

import httpx
import pytest

from bench.faults.stack import BUDGET, ORDER, SCHEMA
from imprimatur import Client
from service.auth.principal import Principal
from service.auth.service import create_tenant
from service.datasets.models import Dataset
from service.platform.context import open_context
from service.releases import service
from tests.bare_rows import add_bare_key
from tests.faults.test_outages import wait_for

pytestmark = pytest.mark.slow

CHEAP = {**ORDER, "epsilon": BUDGET / 1_100, "steps": 1}
CLAIMED = re.compile(r"release ([0-9a-f-]{36}) claimed with token 1$", re.MULTILINE)


@pytest.fixture
def other(faulty, tmp_path):
    """A service, and a client of a second tenant with a dataset."""
    stack = faulty(open_orders_per_key=2_000, open_orders_per_tenant=2_000)
    context = open_context(stack.settings())
    with context.transaction() as session:
        key = create_tenant(session, context.secrets, "the other")
    table = tmp_path / "t.csv"
    table.write_text("colour,size\n" + "".join(f"red,{number % 1000}\nblue,3\n" for number in range(100)))
    with Client(stack.url, key) as client:
        yield stack, client, client.create_dataset(table, SCHEMA, epsilon=BUDGET, name="the other's")["id"]


def begun(stack):
    """Releases in the order in which the worker began with them."""
    return CLAIMED.findall((stack.logs / "worker.log").read_text(errors="replace"))


def begun_between(stack, client, dataset):
    """Order; how many others the worker begins with after that and before this one."""
    release = client.create_release(dataset, ORDER)["id"]
    before = len([each for each in begun(stack) if each != release])
    wait_for(lambda: release in begun(stack))
    return begun(stack).index(release) - before


def test_a_single_order_is_not_behind_another_tenants_thousand(other):
    stack, client, dataset = other
    crowded = stack.new_dataset()
    context = open_context(stack.settings())
    with context.transaction() as session:
        owner = session.get_one(Dataset, crowded).tenant_id
        keys = [add_bare_key(session, owner) for _ in range(2)]  # two keys gain nothing
    principals = [Principal(owner, key, "owner", "order_release") for key in keys]
    for number in range(1_000):
        service.order_release(context, principals[number % 2], crowded, CHEAP, priority=0)
    wait_for(lambda: begun(stack))
    assert begun_between(stack, client, dataset) <= 2
    assert begun_between(stack, client, dataset) <= 2


def test_250_orders_that_were_cancelled_delay_no_other(other):
    stack, client, dataset = other
    crowded = stack.new_dataset()
    with httpx.Client(base_url=stack.url, headers={"Authorization": f"Bearer {stack.admin_key}"}, timeout=600) as http:
        for _ in range(250):
            made = http.post(f"/v1/datasets/{crowded}/releases", json=CHEAP).raise_for_status().json()
            http.post(made["links"]["cancel"])
    assert begun_between(stack, client, dataset) == 0
    assert len(begun(stack)) < 250
