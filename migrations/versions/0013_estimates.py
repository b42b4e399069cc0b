"""What a release was estimated to take when it was ordered.

Revision: 0013; follows 0012. The version before writes none, and reads the table as it did.
"""

from alembic import op

revision = "0013"
down_revision = "0012"

UPGRADE = """
DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['imprimatur_api', 'imprimatur_relay', 'imprimatur_worker'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;  -- another database of the same server has made it
        END;
    END LOOP;
END
$$;

ALTER TABLE releases ADD COLUMN estimate jsonb;
GRANT INSERT (estimate) ON releases TO imprimatur_app, imprimatur_api;
"""
"""Every role that may read the table may read it: SELECT was granted on the whole. It is written once, with the order."""


def upgrade() -> None:
    op.execute(UPGRADE)


def downgrade() -> None:
    op.execute("ALTER TABLE releases DROP COLUMN estimate")
