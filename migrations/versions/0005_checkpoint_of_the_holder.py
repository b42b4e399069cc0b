"""Which checkpoint counts is a fenced write of the worker that holds the release, not the last object put into storage.

Revision: 0005; follows 0004.

A release that is being trained during the upgrade begins again: its checkpoint lies under a key that is recorded nowhere.
"""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("ALTER TABLE releases ADD COLUMN checkpoint_key text")
    op.execute("GRANT UPDATE (checkpoint_key) ON releases TO imprimatur_app")


def downgrade() -> None:
    op.execute("ALTER TABLE releases DROP COLUMN checkpoint_key")
