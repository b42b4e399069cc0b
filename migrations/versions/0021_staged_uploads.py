"""Staged uploads: files that an owner has sent at the web page and not published yet.

Revision: 0021; follows 0020. Expand: the version before works on beside it and knows nothing of the table.

File, draft and what was filled in lie in the object store, encrypted under a key that is here, wrapped. A row lives for an
hour at most. Only the relay's sweep and the API remove rows; the relay may not read the keys.
"""

from alembic import op

revision = "0021"
down_revision = "0020"

TABLE = """
CREATE TABLE public.staged_uploads (
    id uuid PRIMARY KEY,
    tenant_id uuid NOT NULL REFERENCES tenants (id),
    key_id uuid NOT NULL REFERENCES api_keys (id),
    wrapped_data_key bytea,
    filled_key text NOT NULL,
    version integer NOT NULL DEFAULT 0,
    dataset_id uuid REFERENCES datasets (id),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_staged_uploads_published CHECK ((dataset_id IS NULL) = (wrapped_data_key IS NOT NULL))
);
CREATE INDEX ix_staged_uploads_tenant_id ON public.staged_uploads (tenant_id);
GRANT SELECT, INSERT (id, tenant_id, key_id, wrapped_data_key, filled_key), UPDATE (wrapped_data_key, filled_key, version, dataset_id), DELETE
    ON public.staged_uploads TO imprimatur_api;
GRANT SELECT (id, created_at), DELETE ON public.staged_uploads TO imprimatur_relay;
"""


def upgrade() -> None:
    op.execute(TABLE)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
