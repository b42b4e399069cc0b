"""The audit log, the end and the replacement of API keys, the deletion date of raw rows.

Revision: 0004; follows 0003.

The application role may append to the audit log and read it; no role may change or remove a line of it.
"""

from alembic import op

revision = "0004"
down_revision = "0003"

TABLES = """
CREATE TABLE audit_events (
    tenant_id uuid NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    key_id uuid,
    action text NOT NULL CONSTRAINT ck_audit_events_action CHECK (length(action) BETWEEN 1 AND 100),
    object_kind text CONSTRAINT ck_audit_events_object_kind CHECK (length(object_kind) BETWEEN 1 AND 100),
    object_id uuid,
    outcome text NOT NULL CONSTRAINT ck_audit_events_outcome CHECK (length(outcome) BETWEEN 1 AND 100),
    unrecorded bigint NOT NULL DEFAULT 0 CONSTRAINT ck_audit_events_unrecorded CHECK (unrecorded >= 0),
    request_id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT pk_audit_events PRIMARY KEY (tenant_id, id)
);
-- No foreign keys: a line must outlive whatever it speaks of, and writing one must not lock anything.

ALTER TABLE api_keys ADD COLUMN expires_at timestamptz;
ALTER TABLE api_keys ADD COLUMN replaced_by uuid CONSTRAINT fk_api_keys_replaced_by_api_keys REFERENCES api_keys;

ALTER TABLE datasets ADD COLUMN rows_expire_at timestamptz;
CREATE INDEX ix_datasets_rows_expire_at ON datasets (rows_expire_at) WHERE erased_at IS NULL;
"""

APPEND_ONLY = """
CREATE TRIGGER audit_events_append_only BEFORE UPDATE OR DELETE ON audit_events
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_events_no_truncate BEFORE TRUNCATE ON audit_events
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""

GRANTS = """
GRANT SELECT, INSERT ON audit_events TO imprimatur_app;
GRANT UPDATE (expires_at, replaced_by) ON api_keys TO imprimatur_app;
GRANT UPDATE (rows_expire_at) ON datasets TO imprimatur_app;
"""


def upgrade() -> None:
    for script in (TABLES, APPEND_ONLY, GRANTS):
        op.get_bind().exec_driver_sql(script)


def downgrade() -> None:
    raise RuntimeError("the audit log is never taken down; restore a backup instead")
