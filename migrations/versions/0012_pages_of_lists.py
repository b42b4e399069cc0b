"""Indexes for the pages of lists, newest first: releases of a tenant and of a dataset, datasets, keys.

Revision: 0012; follows 0011. Expand: the version before works on beside it. While an index is made, writes to its table
wait: about a second per million rows.
"""

from alembic import op

revision = "0012"
down_revision = "0011"

INDEXES = """
CREATE INDEX ix_releases_tenant_id_created_at_id ON releases (tenant_id, created_at, id);
CREATE INDEX ix_releases_dataset_id_created_at_id ON releases (dataset_id, created_at, id);
DROP INDEX ix_releases_dataset_id;
CREATE INDEX ix_datasets_tenant_id_created_at_id ON datasets (tenant_id, created_at, id);
DROP INDEX ix_datasets_tenant_id;
CREATE INDEX ix_api_keys_tenant_id_created_at_id ON api_keys (tenant_id, created_at, id);
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(INDEXES)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
