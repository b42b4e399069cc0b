"""Releases have names, unique in their dataset.

Revision: 0017; follows 0016. Expand: the version before writes none, and reads the table as it did. A release without a name is
shown under one made of its method and its id.
"""

from alembic import op

revision = "0017"
down_revision = "0016"

UPGRADE = """
ALTER TABLE releases ADD COLUMN name text;
CREATE UNIQUE INDEX uq_releases_name ON releases (dataset_id, name) WHERE name IS NOT NULL;
GRANT INSERT (name) ON releases TO imprimatur_api;
"""
"""Every role that may read the table may read it. It is written once, with the order."""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
