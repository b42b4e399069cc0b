"""Releases by the moment they ended, for the metrics of the last hour.

Revision: 0016; follows 0015. Expand: an index, and no right. It is built while no process writes releases: some seconds a
million of them.
"""

from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(
        "CREATE INDEX ix_releases_ended ON releases (updated_at) WHERE state IN ('published', 'failed', 'voided')"
    )


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
