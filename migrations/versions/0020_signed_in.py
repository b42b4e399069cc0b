"""Sessions of the web page: who is signed in, by which key.

Revision: 0020; follows 0019. Expand: the version before works on beside it and knows nothing of the table.

Of the cookie only a hash is kept. A session ends with its key, whatever is written here.
"""

from alembic import op

revision = "0020"
down_revision = "0019"

TABLE = """
CREATE TABLE public.page_sessions (
    digest bytea PRIMARY KEY CHECK (octet_length(digest) = 32),
    key_id uuid NOT NULL REFERENCES api_keys (id),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ix_page_sessions_created_at ON public.page_sessions (created_at);
GRANT SELECT, INSERT (digest, key_id), UPDATE (seen_at), DELETE ON public.page_sessions TO imprimatur_api;
"""


def upgrade() -> None:
    op.execute(TABLE)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
