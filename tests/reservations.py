"""A reservation as an order makes it, without the order; a claim; what a check of the ledger finds."""

from sqlalchemy import text

from imprimatur.verify.chain import verify_ledger
from service.ledger import repository
from service.ledger.models import LedgerEntry
from service.ledger.service import require_done
from workers.lease import Lease

# The call of the ledger in `service.releases.repository.PLACE`.
RESERVE = text(
    "SELECT outcome, (entry).*, simple_left, renyi_left "
    "FROM ledger_reserve(:dataset, :release, :simple, :renyi, :declaration)"
)


def reserve(session, dataset, release, cost, *, declaration=1):
    """The ledger's entry; raises what an order would be refused with."""
    costs = {"simple": cost.simple, "renyi": cost.renyi}
    row = session.execute(RESERVE, {"dataset": dataset, "release": release, "declaration": declaration, **costs}).one()
    require_done(row, cost)
    return LedgerEntry(**{column.name: getattr(row, column.name) for column in LedgerEntry.__table__.columns})


def claim(session, release, *, lease_seconds=600.0):
    """A worker's claim on this very release, whose turn it may not be."""
    query = text(
        "UPDATE releases SET lease_token = lease_token + 1, attempts = attempts + 1,"
        " lease_expires_at = clock_timestamp() + make_interval(secs => :seconds) WHERE id = :id RETURNING lease_token"
    )
    return Lease(release, session.execute(query, {"id": release, "seconds": lease_seconds}).scalar_one())


def faults_of(session, dataset):
    """Every disagreement between the chain, the balances and each other; needs one snapshot of both tables."""
    return verify_ledger(repository.entries_of_dataset(session, dataset), repository.read_balance(session, dataset))
