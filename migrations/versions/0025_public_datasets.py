"""Datasets whose owner declared that their rows are public: a line each, which is never changed or removed.

Revision: 0025; follows 0024. Expand: the version before works on beside it and knows nothing of the table.
"""

from alembic import op

revision = "0025"
down_revision = "0024"

TABLE = """
CREATE TABLE public.public_datasets (
    dataset_id uuid PRIMARY KEY REFERENCES public.datasets (id),
    key_id uuid NOT NULL REFERENCES public.api_keys (id),
    declared_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
GRANT SELECT, INSERT (dataset_id, key_id) ON public.public_datasets TO imprimatur_api;
GRANT SELECT ON public.public_datasets TO imprimatur_worker;
"""


def upgrade() -> None:
    op.execute(TABLE)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
