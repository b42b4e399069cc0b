"""A dataset keeps the Idempotency-Key of the request that made it and orders a release besides.

Revision: 0027; follows 0026. Expand: the version before works on beside it. Of datasets that it makes, such a request does not go on.

The API's role inserts the key and has no right to update it.
"""

from alembic import op

revision = "0027"
down_revision = "0026"

SCRIPT = """
ALTER TABLE public.datasets ADD COLUMN idempotency_key text;
GRANT INSERT (idempotency_key) ON public.datasets TO imprimatur_api;
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCRIPT)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
