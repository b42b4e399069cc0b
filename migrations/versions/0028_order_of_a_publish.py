"""A dataset keeps a digest of the order that the request which made it brought along.

Revision: 0028; follows 0027. Expand: the version before works on beside it. Of datasets that it makes, a repeated request may
name another order until one is recorded, as before.

The API's role inserts the digest and has no right to update it.
"""

from alembic import op

revision = "0028"
down_revision = "0027"

SCRIPT = """
ALTER TABLE public.datasets ADD COLUMN order_digest bytea;
GRANT INSERT (order_digest) ON public.datasets TO imprimatur_api;
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCRIPT)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
