"""Tenants and keys, datasets, the ledger, releases, the outbox.

Revision: 0001; follows nothing.

The application role `imprimatur_app` may read and append; it may never change or remove a ledger entry, and of a
balance it may change only the amounts. Triggers refuse it to everybody else as well.
"""

from alembic import op

revision = "0001"
down_revision = None

NANO = 1_000_000_000

TABLES = f"""
CREATE TABLE tenants (
    id uuid CONSTRAINT pk_tenants PRIMARY KEY,
    name text NOT NULL CONSTRAINT uq_tenants_name UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE api_keys (
    id uuid CONSTRAINT pk_api_keys PRIMARY KEY,
    tenant_id uuid NOT NULL CONSTRAINT fk_api_keys_tenant_id_tenants REFERENCES tenants,
    name text NOT NULL,
    scope text NOT NULL CONSTRAINT ck_api_keys_scope CHECK (scope IN ('owner', 'analyst', 'reader')),
    digest bytea NOT NULL CONSTRAINT uq_api_keys_digest UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz
);

CREATE TABLE datasets (
    id uuid CONSTRAINT pk_datasets PRIMARY KEY,
    tenant_id uuid NOT NULL CONSTRAINT fk_datasets_tenant_id_tenants REFERENCES tenants,
    name text NOT NULL,
    schema jsonb NOT NULL,
    privacy_unit jsonb,
    units bigint NOT NULL CONSTRAINT ck_datasets_units CHECK (units >= 2),
    epsilon double precision NOT NULL CONSTRAINT ck_datasets_epsilon CHECK (epsilon > 0 AND epsilon < 'Infinity'),
    delta double precision NOT NULL CONSTRAINT ck_datasets_delta CHECK (delta > 0 AND delta < 1),
    renyi_order integer NOT NULL CONSTRAINT ck_datasets_renyi_order CHECK (renyi_order > 1),
    renyi_capacity double precision NOT NULL
        CONSTRAINT ck_datasets_renyi_capacity CHECK (renyi_capacity > 0 AND renyi_capacity < 'Infinity'),
    fingerprint bytea NOT NULL CONSTRAINT uq_datasets_fingerprint UNIQUE,
    storage_key text,
    wrapped_data_key bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    erased_at timestamptz,
    CONSTRAINT ck_datasets_erased
        CHECK ((erased_at IS NULL) = (storage_key IS NOT NULL) AND (erased_at IS NULL) = (wrapped_data_key IS NOT NULL))
);
CREATE INDEX ix_datasets_tenant_id ON datasets (tenant_id, created_at);

CREATE TABLE releases (
    id uuid CONSTRAINT pk_releases PRIMARY KEY,
    tenant_id uuid NOT NULL CONSTRAINT fk_releases_tenant_id_tenants REFERENCES tenants,
    dataset_id uuid NOT NULL CONSTRAINT fk_releases_dataset_id_datasets REFERENCES datasets,
    state text NOT NULL DEFAULT 'reserved'
        CONSTRAINT ck_releases_state CHECK (state IN ('reserved', 'charged', 'published', 'failed', 'voided')),
    order_ jsonb NOT NULL,
    price jsonb NOT NULL,
    simple_cost bigint NOT NULL CONSTRAINT ck_releases_simple_cost CHECK (simple_cost >= 0),
    renyi_cost bigint NOT NULL CONSTRAINT ck_releases_renyi_cost CHECK (renyi_cost >= 0),
    idempotency_key text,
    body_digest bytea NOT NULL,
    phase text NOT NULL DEFAULT 'queued',
    step bigint NOT NULL DEFAULT 0,
    steps bigint NOT NULL CONSTRAINT ck_releases_steps CHECK (steps >= 0),
    cancel_requested boolean NOT NULL DEFAULT false,
    failure text,
    attempts integer NOT NULL DEFAULT 0,
    lease_token bigint NOT NULL DEFAULT 0,
    lease_expires_at timestamptz,
    enqueued_at timestamptz NOT NULL DEFAULT now(),
    sends integer NOT NULL DEFAULT 1,
    bundle_key text,
    certificate jsonb,
    created_at timestamptz NOT NULL DEFAULT now(),
    updated_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT uq_releases_tenant_id_idempotency_key UNIQUE (tenant_id, idempotency_key),
    CONSTRAINT ck_releases_published
        CHECK ((state = 'published') = (bundle_key IS NOT NULL) AND (state = 'published') = (certificate IS NOT NULL))
);
CREATE INDEX ix_releases_dataset_id ON releases (dataset_id, created_at);
CREATE INDEX ix_releases_active ON releases (enqueued_at) WHERE state IN ('reserved', 'charged');

CREATE TABLE balances (
    dataset_id uuid CONSTRAINT pk_balances PRIMARY KEY
        CONSTRAINT fk_balances_dataset_id_datasets REFERENCES datasets,
    simple_pending bigint NOT NULL DEFAULT 0,
    simple_posted bigint NOT NULL DEFAULT 0,
    renyi_pending bigint NOT NULL DEFAULT 0,
    renyi_posted bigint NOT NULL DEFAULT 0,
    entry_count bigint NOT NULL DEFAULT 0,
    head_hash bytea NOT NULL DEFAULT '\\x0000000000000000000000000000000000000000000000000000000000000000',
    CONSTRAINT ck_balances_not_negative
        CHECK (simple_pending >= 0 AND simple_posted >= 0 AND renyi_pending >= 0 AND renyi_posted >= 0),
    CONSTRAINT ck_balances_one_account_has_room
        CHECK (simple_pending + simple_posted <= {NANO} OR renyi_pending + renyi_posted <= {NANO})
);

CREATE TABLE ledger_entries (
    dataset_id uuid NOT NULL CONSTRAINT fk_ledger_entries_dataset_id_balances REFERENCES balances,
    seq bigint NOT NULL CONSTRAINT ck_ledger_entries_seq CHECK (seq >= 1),
    release_id uuid NOT NULL,
    kind text NOT NULL CONSTRAINT ck_ledger_entries_kind CHECK (kind IN ('reserve', 'post', 'void', 'settle')),
    simple bigint NOT NULL CONSTRAINT ck_ledger_entries_simple CHECK (simple >= 0),
    renyi bigint NOT NULL CONSTRAINT ck_ledger_entries_renyi CHECK (renyi >= 0),
    created_at timestamptz NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT pk_ledger_entries PRIMARY KEY (dataset_id, seq),
    CONSTRAINT uq_ledger_entries_release_id_kind UNIQUE (release_id, kind)
);

CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_outbox PRIMARY KEY,
    task text NOT NULL,
    release_id uuid NOT NULL CONSTRAINT fk_outbox_release_id_releases REFERENCES releases,
    created_at timestamptz NOT NULL DEFAULT now(),
    sent_at timestamptz
);
CREATE INDEX ix_outbox_unsent ON outbox (id) WHERE sent_at IS NULL;

CREATE TABLE heartbeats (
    part text CONSTRAINT pk_heartbeats PRIMARY KEY,
    beat_at timestamptz NOT NULL
);
"""

APPEND_ONLY = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER ledger_entries_append_only BEFORE UPDATE OR DELETE ON ledger_entries
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER ledger_entries_no_truncate BEFORE TRUNCATE ON ledger_entries
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER balances_no_delete BEFORE DELETE ON balances
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER balances_no_truncate BEFORE TRUNCATE ON balances
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""

ROLE_AND_GRANTS = """
DO $$ BEGIN
    CREATE ROLE imprimatur_app LOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;

GRANT USAGE ON SCHEMA public TO imprimatur_app;
GRANT SELECT, INSERT ON tenants, ledger_entries TO imprimatur_app;
GRANT SELECT, INSERT ON api_keys, balances, datasets, releases TO imprimatur_app;
GRANT UPDATE (revoked_at) ON api_keys TO imprimatur_app;
GRANT UPDATE (storage_key, wrapped_data_key, erased_at) ON datasets TO imprimatur_app;
GRANT UPDATE (simple_pending, simple_posted, renyi_pending, renyi_posted, entry_count, head_hash)
    ON balances TO imprimatur_app;
GRANT UPDATE (state, phase, step, cancel_requested, failure, attempts, lease_token, lease_expires_at,
              enqueued_at, sends,
              bundle_key, certificate, updated_at) ON releases TO imprimatur_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox, heartbeats TO imprimatur_app;
"""


def upgrade() -> None:
    # Through the driver, so that `:` and `%` in the text mean themselves.
    for script in (TABLES, APPEND_ONLY, ROLE_AND_GRANTS):
        op.get_bind().exec_driver_sql(script.replace("%", "%%") if "%" in script else script)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
