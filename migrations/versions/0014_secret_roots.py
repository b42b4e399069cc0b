"""Which roots of the secret key file the service's data were made with.

Revision: 0014; follows 0013. Expand: the version before works on beside it, and notices nothing.

An id is a keyed hash of a constant under the root, so it tells nothing about the root. A process compares its file with
the roots that are in use before it does anything: with a wrong or a lost file every API key would look unknown, and no row
could be read. Only the role that owns the database writes here.
"""

from alembic import op

revision = "0014"
down_revision = "0013"

TABLES = """
CREATE TABLE secret_roots (
    purpose text NOT NULL CONSTRAINT ck_secret_roots_purpose CHECK (purpose IN ('wrapping', 'api_keys', 'fingerprints')),
    id text NOT NULL CONSTRAINT ck_secret_roots_id CHECK (id ~ '^[0-9a-f]{32}$'),
    in_use_since timestamptz NOT NULL DEFAULT clock_timestamp(),
    retired_at timestamptz,
    CONSTRAINT pk_secret_roots PRIMARY KEY (purpose, id)
);

-- Under which root the digest of a key was made; null: the first one.
ALTER TABLE api_keys ADD COLUMN root_id text;

DO $$
DECLARE role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['imprimatur_api', 'imprimatur_relay', 'imprimatur_worker'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
        END;
    END LOOP;
END $$;
GRANT SELECT ON secret_roots TO imprimatur_app, imprimatur_api, imprimatur_worker;
GRANT INSERT (root_id) ON api_keys TO imprimatur_app, imprimatur_api;
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(TABLES.replace("%", "%%"))


def downgrade() -> None:
    op.get_bind().exec_driver_sql("ALTER TABLE api_keys DROP COLUMN root_id; DROP TABLE secret_roots")
