"""The capacity of the Rényi account follows from ε and δ, whatever who may replace a declaration has written into its row."""

import json
import uuid

import psycopg
import pytest

from service.base.errors import InvalidFile, Tampered
from service.datasets.models import Dataset
from service.datasets.promise import promised
from service.datasets.repository import Account
from service.methods.catalogue import parse_order
from service.privacy.calibration import is_paid
from service.privacy.filters import Shares, open_budget
from service.privacy.renyi import renyi_capacity
from tests.orders import price_order
from tests.reservations import claim
from tests.stored_before import store_as_before
from workers.run import Attempt
from workers.stored_rows import StoredRows

WRITE = "SET session_replication_role = replica; UPDATE datasets SET renyi_capacity = 1e6 WHERE id = '{}'"
"""As the API's role could until revision 0029; the database refuses it since (`tests/service/test_what_is_promised.py`)."""
MARGINALS = {"method": "marginals", "epsilon": 3.0}


@pytest.mark.parametrize("delta", [1e-5, 1e-12])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_what_was_opened_stays_and_no_more_is_taken(epsilon, delta):
    budget = open_budget(epsilon, delta)
    fields = {"epsilon": epsilon, "delta": delta, "renyi_order": budget.renyi_order}
    without_failures = renyi_capacity(epsilon, delta / 2.0, budget.renyi_order)  # as versions before opened it
    for stored, taken in (
        (budget.renyi_capacity, budget.renyi_capacity),
        (without_failures,) * 2,
        (1e6, without_failures),
    ):
        spent = dict.fromkeys(("simple_pending", "simple_posted", "renyi_pending", "renyi_posted"), 0)
        assert promised(*fields.values(), stored).renyi_capacity == taken
        assert Dataset(**fields, renyi_capacity=stored).budget.renyi_capacity == taken
        assert Account(units=100, **fields, renyi_capacity=stored, **spent).budget.renyi_capacity == taken


def test_a_cost_in_shares_of_a_larger_capacity_does_not_pay():
    """What the worker asks before it charges."""
    honest = open_budget(3.0, 1e-5)
    order = Dataset(epsilon=3.0, delta=1e-5, renyi_order=honest.renyi_order, renyi_capacity=1e6)
    price = price_order(parse_order(MARGINALS), units=200, budget=honest)
    cheap = Shares(price.shares.simple, price.shares.renyi // 10**5)
    assert not is_paid(price.events, cheap, order.budget, epsilon_scale=price.epsilon)
    assert is_paid(price.events, price.shares, honest, epsilon_scale=price.epsilon)


@pytest.mark.parametrize("is_from_before", [True, False])
@pytest.mark.parametrize("unit", [None, '{"column": "city", "max_rows_per_unit": 1}'])
def test_rows_are_read_under_the_unit_alone_that_they_were_stored_under(
    api, context, dataset_id, database, unit, is_from_before
):
    """Who writes to the database could say that all rows of a city are one unit, where each row is.

    Rows from before revision 0030 tell whether they name units; later ones are bound to their unit.
    """
    if is_from_before:
        store_as_before(context, database, dataset_id)
    with context.transaction() as session:
        lease = claim(session, uuid.UUID(api.order(dataset_id, MARGINALS).json()["id"]))
    with psycopg.connect(database.owner_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute("UPDATE datasets SET privacy_unit = %s::jsonb WHERE id = %s", (unit, dataset_id))
    rows = StoredRows(Attempt(context, lease))
    if unit is None:
        assert len(rows.table(numeric_bins=4)[0].codes)
        return
    for read in (lambda: rows.table(numeric_bins=4), lambda: rows.values(["age"])):
        with pytest.raises(InvalidFile if is_from_before else Tampered, match=r"privacy unit|another key"):
            read()


def test_the_api_s_role_cannot_make_room_in_the_renyi_account(api, dataset_id, database):
    """Tried: four releases of the whole ε were published, each for a millionth of the Rényi account, and the ledger verified."""
    with psycopg.connect(database.owner_url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(WRITE.format(dataset_id))
    first, second = (api.order(dataset_id, MARGINALS) for _ in range(2))
    assert first.status_code == 202, first.text
    assert second.status_code == 409, second.text
    assert json.loads(second.text)["code"] == "budget_exhausted"
