"""One role a process, a floor under settlements, keys and dates that only end sooner, and a chain over the audit log.

Revision: 0010; follows 0009. Expand: nothing is taken from anybody, and the version before works on as `imprimatur_app`.
0015 takes its rights away; its first lines say in which order to upgrade.

`imprimatur_api`, `imprimatur_relay` and `imprimatur_worker` have what their process needs and no more
(docs/decisions/0040-a-role-for-each-process.md has the table, and a test compares it with the database). What a role may
do only in part is a function that runs with the rights of the owner: cancel, erase, append to the audit log.

What anybody can have seen of a release is paid for: a worker records how far it came before a checkpoint is stored, and
no settlement is below that. Recorded steps never go down, whichever role writes.

Lines of the audit log get their place in their tenant's chain after they are committed, so that requests of all tenants
need no common lock. The lines there are get theirs with the first run of `audit_integrate`.
"""

from alembic import op

revision = "0010"
down_revision = "0009"

ROLES = ("imprimatur_api", "imprimatur_relay", "imprimatur_worker")

CREATE_ROLES = "".join(
    f"""
DO $$ BEGIN
    CREATE ROLE {role} LOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
"""
    for role in ROLES
)

OUTCOMES = """
OUT outcome text, OUT entry public.ledger_entries, OUT simple_left bigint, OUT renyi_left bigint
"""

RECORDED_STEPS = f"""
ALTER TABLE releases
    ADD COLUMN recorded_steps bigint NOT NULL DEFAULT 0,
    ADD COLUMN recorded_renyi bigint NOT NULL DEFAULT 0,
    ADD COLUMN recorded_token bigint NOT NULL DEFAULT 0;

CREATE FUNCTION public.release_keeps_its_record() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.recorded_steps < OLD.recorded_steps OR NEW.recorded_renyi < OLD.recorded_renyi
       OR NEW.recorded_token < OLD.recorded_token THEN
        RAISE EXCEPTION 'recorded steps of a release never go down' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER releases_keep_their_record BEFORE UPDATE ON releases
    FOR EACH ROW EXECUTE FUNCTION public.release_keeps_its_record();

CREATE FUNCTION public.release_record_steps(release uuid, token bigint, steps bigint, renyi bigint) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- What of a charged release may be seen from now on; false where the token is not the newest. Committed before the
-- checkpoint is stored: a settlement is never below it.
BEGIN
    IF (steps >= 0 AND renyi >= 0) IS NOT TRUE THEN
        RAISE EXCEPTION 'steps and their cost are not negative' USING ERRCODE = 'check_violation';
    END IF;
    UPDATE public.releases AS r SET
        recorded_steps = greatest(r.recorded_steps, release_record_steps.steps),
        recorded_renyi = greatest(r.recorded_renyi, least(renyi, r.renyi_cost)),
        recorded_token = token
    WHERE r.id = release AND r.lease_token = token AND r.state = 'charged';
    IF NOT FOUND THEN RETURN false; END IF;
    -- A settlement holds the release while it happens: it is seen here, or it sees what was recorded here.
    IF EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.release_id = release AND e.kind = 'settle') THEN
        RAISE EXCEPTION 'release % is settled: nothing more of it runs', release USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION public.ledger_settle(dataset uuid, release uuid, renyi bigint, {OUTCOMES})
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- As 0002, and never below what was recorded of the release.
DECLARE held public.balances;
        posted public.ledger_entries;
BEGIN
    -- The release before the balance, as everybody else does. What is published is paid for in full.
    PERFORM FROM public.releases AS r WHERE r.id = release FOR SHARE;
    held := public.ledger_hold(dataset);
    IF held.dataset_id IS NULL THEN outcome := 'no_account'; RETURN; END IF;
    SELECT * INTO entry FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'settle' AND e.dataset_id = dataset;
    IF FOUND THEN outcome := 'again'; RETURN; END IF;
    SELECT * INTO posted FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'post' AND e.dataset_id = dataset;
    IF NOT FOUND OR (renyi BETWEEN 0 AND posted.renyi) IS NOT TRUE
       OR EXISTS (SELECT FROM public.releases AS r
                  WHERE r.id = release AND (r.state = 'published' OR r.recorded_renyi > ledger_settle.renyi)) THEN
        outcome := 'conflict'; RETURN;
    END IF;
    outcome := 'done';
    entry := public.ledger_append(held, release, 'settle', posted.simple, renyi, 0, 0, 0, renyi - posted.renyi);
END $$;
"""  # noqa: S608 - constants of this module

CANCEL = """
CREATE FUNCTION public.release_cancel(tenant uuid, release uuid, OUT outcome text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- done: voided in full before its charge, or its worker is asked to stop; null: no such release of the tenant; else the
-- state in which it had ended.
DECLARE found_ public.releases;
BEGIN
    SELECT * INTO found_ FROM public.releases AS r WHERE r.id = release AND r.tenant_id = tenant FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    outcome := found_.state;
    IF found_.state = 'reserved' THEN
        PERFORM public.ledger_void(found_.dataset_id, release);
        UPDATE public.releases AS r SET state = 'voided', phase = 'ended', cancel_requested = true, updated_at = now()
            WHERE r.id = release;
        outcome := 'done';
    ELSIF found_.state = 'charged' THEN
        UPDATE public.releases AS r SET cancel_requested = true, updated_at = now() WHERE r.id = release;
        outcome := 'done';
    END IF;
END $$;
"""

DATASETS = """
CREATE FUNCTION public.dataset_keeps_its_dates() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.erased_at IS NOT NULL AND (NEW.erased_at IS DISTINCT FROM OLD.erased_at OR NEW.storage_key IS NOT NULL
       OR NEW.wrapped_data_key IS NOT NULL) THEN
        RAISE EXCEPTION 'rows that were erased do not come back' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF OLD.rows_expire_at IS NOT NULL AND (NEW.rows_expire_at <= OLD.rows_expire_at) IS NOT TRUE THEN
        RAISE EXCEPTION 'a deletion date is never put off' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.upload_key IS NOT DISTINCT FROM OLD.upload_key AND NEW.upload_key IS NOT NULL
       AND (NEW.upload_key_id IS DISTINCT FROM OLD.upload_key_id OR NEW.upload_reads < OLD.upload_reads) THEN
        RAISE EXCEPTION 'a kept upload belongs to its sender, and its readings are counted'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.upload_key IS DISTINCT FROM OLD.upload_key AND NEW.upload_key IS NOT NULL AND (
       NEW.erased_at IS NOT NULL OR NEW.storage_key IS NULL OR EXISTS (
           SELECT FROM public.ledger_entries AS e WHERE e.dataset_id = NEW.id AND e.kind = 'post')) THEN
        RAISE EXCEPTION 'no upload is kept of a dataset that is charged or erased' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER datasets_keep_their_dates BEFORE UPDATE ON datasets
    FOR EACH ROW EXECUTE FUNCTION public.dataset_keeps_its_dates();

CREATE FUNCTION public.dataset_erase(dataset uuid, OUT storage_key text, OUT upload_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Forgets where rows and upload lie, and their keys; says once where they lie, nulls where it happened before.
BEGIN
    SELECT d.storage_key, d.upload_key INTO storage_key, upload_key FROM public.datasets AS d
        WHERE d.id = dataset FOR UPDATE;
    IF storage_key IS NULL THEN upload_key := NULL; RETURN; END IF;
    UPDATE public.datasets AS d SET storage_key = NULL, wrapped_data_key = NULL, erased_at = clock_timestamp(),
        upload_key = NULL, wrapped_upload_key = NULL, upload_key_id = NULL WHERE d.id = dataset;
END $$;

CREATE FUNCTION public.dataset_expire(dataset uuid, OUT storage_key text, OUT upload_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Erases rows whose deletion date has come, and writes that into the audit log; else nulls.
DECLARE tenant uuid;
BEGIN
    SELECT d.tenant_id INTO tenant FROM public.datasets AS d
        WHERE d.id = dataset AND d.rows_expire_at <= clock_timestamp() FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT e.storage_key, e.upload_key INTO storage_key, upload_key FROM public.dataset_erase(dataset) AS e;
    IF storage_key IS NULL THEN RETURN; END IF;
    INSERT INTO public.audit_events (tenant_id, action, object_kind, object_id, outcome, request_id)
        VALUES (tenant, 'expire_rows', 'dataset', dataset, 'done', gen_random_uuid());
END $$;

CREATE FUNCTION public.dataset_forget_upload(dataset uuid) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- The kept upload of a dataset that is charged or erased is no longer needed: its key goes. False: it is needed.
BEGIN
    UPDATE public.datasets AS d SET upload_key = NULL, wrapped_upload_key = NULL, upload_key_id = NULL
        WHERE d.id = dataset AND (d.erased_at IS NOT NULL OR EXISTS (
            SELECT FROM public.ledger_entries AS e WHERE e.dataset_id = dataset AND e.kind = 'post'));
    RETURN FOUND;
END $$;
"""

KEYS = """
CREATE FUNCTION public.api_key_ends_once() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF (OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at)
       OR (OLD.expires_at IS NOT NULL AND (NEW.expires_at <= OLD.expires_at) IS NOT TRUE)
       OR (OLD.replaced_by IS NOT NULL AND NEW.replaced_by IS DISTINCT FROM OLD.replaced_by) THEN
        RAISE EXCEPTION 'a key that was revoked, replaced or given an end keeps it; an end may only come sooner'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF (NEW.id, NEW.tenant_id, NEW.scope, NEW.created_at) IS DISTINCT FROM (OLD.id, OLD.tenant_id, OLD.scope, OLD.created_at) THEN
        RAISE EXCEPTION 'a key keeps its tenant and its scope' USING ERRCODE = 'insufficient_privilege';
    END IF;
    -- A key is revoked as of now, whatever the caller says.
    IF OLD.revoked_at IS NULL AND NEW.revoked_at IS NOT NULL THEN
        NEW.revoked_at := now();
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER api_keys_end_once BEFORE UPDATE ON api_keys
    FOR EACH ROW EXECUTE FUNCTION public.api_key_ends_once();
"""

AUDIT = """
-- Lines that have no place in the chain yet.
CREATE TABLE audit_pending (
    tenant_id uuid NOT NULL,
    id bigint NOT NULL
);
INSERT INTO audit_pending SELECT e.tenant_id, e.id FROM audit_events AS e;

CREATE TABLE audit_chain (
    tenant_id uuid NOT NULL,
    seq bigint NOT NULL CONSTRAINT ck_audit_chain_seq CHECK (seq >= 1),
    id bigint NOT NULL,
    previous_hash bytea NOT NULL,
    hash bytea NOT NULL,
    CONSTRAINT pk_audit_chain PRIMARY KEY (tenant_id, seq),
    CONSTRAINT uq_audit_chain_tenant_id_id UNIQUE (tenant_id, id)
);
CREATE TRIGGER audit_chain_append_only BEFORE UPDATE OR DELETE ON audit_chain
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_chain_no_truncate BEFORE TRUNCATE ON audit_chain
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();

CREATE FUNCTION public.audit_line_is_now() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    NEW.at := clock_timestamp();
    INSERT INTO public.audit_pending VALUES (NEW.tenant_id, NEW.id);
    RETURN NEW;
END $$;

CREATE TRIGGER audit_events_are_now BEFORE INSERT ON audit_events
    FOR EACH ROW EXECUTE FUNCTION public.audit_line_is_now();

CREATE FUNCTION public.audit_append(
    tenant uuid, key uuid, action text, object_kind text, object_id uuid, outcome text, unrecorded bigint, request uuid
) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- A line about a request of one of the tenant's keys. Number and time are the database's.
BEGIN
    IF NOT EXISTS (SELECT FROM public.api_keys AS k WHERE k.id = key AND k.tenant_id = tenant) THEN
        RAISE EXCEPTION 'a line of the audit log names a key of its own tenant' USING ERRCODE = 'insufficient_privilege';
    END IF;
    INSERT INTO public.audit_events (tenant_id, key_id, action, object_kind, object_id, outcome, unrecorded, request_id)
        VALUES (tenant, key, action, object_kind, object_id, outcome, unrecorded, request);
END $$;

CREATE FUNCTION public.audit_hash(line public.audit_events, seq bigint, previous bytea) RETURNS bytea
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- SHA-256 of the canonical JSON of imprimatur/verify/audit.py; no setting of the session changes a byte of it.
    SELECT sha256(convert_to(concat(
        '{"action":', to_json(line.action),
        ',"at":"', to_char(line.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '+00:00"',
        ',"id":', line.id,
        ',"key_id":', coalesce(to_json(line.key_id)::text, 'null'),
        ',"object_id":', coalesce(to_json(line.object_id)::text, 'null'),
        ',"object_kind":', coalesce(to_json(line.object_kind)::text, 'null'),
        ',"outcome":', to_json(line.outcome),
        ',"previous_hash":"', encode(previous, 'hex'),
        '","request_id":"', line.request_id,
        '","seq":', seq,
        ',"tenant_id":"', line.tenant_id,
        '","unrecorded":', line.unrecorded, '}'
    ), 'UTF8'))
$$;

CREATE FUNCTION public.audit_integrate(most bigint) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Gives up to `most` committed lines the next places in their tenants' chains; how many. One at a time: the lock is held
-- until the transaction ends, so run it in one of its own. It waits for no request, and none waits for it.
DECLARE line public.audit_events;
        tenant uuid;
        head_seq bigint;
        head bytea;
        placed bigint := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('imprimatur audit chain', 0));
    FOR line IN
        WITH taken AS (
            DELETE FROM public.audit_pending AS p
            WHERE p.ctid = ANY (ARRAY(SELECT q.ctid FROM public.audit_pending AS q LIMIT most))
            RETURNING p.tenant_id, p.id
        )
        SELECT e.* FROM taken AS t JOIN public.audit_events AS e ON (e.tenant_id, e.id) = (t.tenant_id, t.id)
        ORDER BY e.tenant_id, e.id
    LOOP
        IF tenant IS DISTINCT FROM line.tenant_id THEN
            tenant := line.tenant_id;
            SELECT c.seq, c.hash INTO head_seq, head FROM public.audit_chain AS c
                WHERE c.tenant_id = tenant ORDER BY c.seq DESC LIMIT 1;
            IF NOT FOUND THEN
                head_seq := 0;
                head := decode(repeat('00', 32), 'hex');
            END IF;
        END IF;
        head_seq := head_seq + 1;
        INSERT INTO public.audit_chain (tenant_id, seq, id, previous_hash, hash)
            VALUES (tenant, head_seq, line.id, head, public.audit_hash(line, head_seq, head))
            RETURNING hash INTO head;
        placed := placed + 1;
    END LOOP;
    RETURN placed;
END $$;
"""

NEW_FUNCTIONS = """
public.release_keeps_its_record, public.release_record_steps, public.release_cancel, public.dataset_keeps_its_dates,
public.dataset_erase, public.dataset_expire, public.dataset_forget_upload, public.api_key_ends_once,
public.audit_line_is_now, public.audit_append, public.audit_hash, public.audit_integrate
"""

GRANTS = f"""
REVOKE ALL ON FUNCTION {NEW_FUNCTIONS} FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO {", ".join(ROLES)};

GRANT SELECT ON api_keys, datasets, dataset_fingerprints, dataset_column_fingerprints, releases, balances, ledger_entries,
    merkle_leaves, merkle_nodes, signing_keys, tree_heads, heartbeats, audit_events, audit_chain TO imprimatur_api;
GRANT INSERT (id, tenant_id, name, scope, digest, expires_at), UPDATE (revoked_at, expires_at, replaced_by)
    ON api_keys TO imprimatur_api;
GRANT INSERT (id, tenant_id, name, schema, privacy_unit, units, epsilon, delta, renyi_order, renyi_capacity, storage_key,
              wrapped_data_key, rows_expire_at, upload_key, wrapped_upload_key, upload_key_id, upload_reads),
      UPDATE (rows_expire_at, upload_key, wrapped_upload_key, upload_key_id, upload_reads)
    ON datasets TO imprimatur_api;
GRANT INSERT ON dataset_fingerprints, dataset_column_fingerprints TO imprimatur_api;
GRANT INSERT (id, tenant_id, dataset_id, order_, price, simple_cost, renyi_cost, idempotency_key, body_digest, steps)
    ON releases TO imprimatur_api;
GRANT EXECUTE ON FUNCTION public.ledger_open, public.ledger_reserve(uuid, uuid, bigint, bigint, bigint),
    public.dataset_redeclare, public.dataset_erase, public.release_cancel, public.audit_append TO imprimatur_api;

GRANT SELECT (id, state, bundle_key, checkpoint_key) ON releases TO imprimatur_relay;
GRANT SELECT (id, tenant_id, storage_key, upload_key, erased_at, rows_expire_at) ON datasets TO imprimatur_relay;
GRANT SELECT (dataset_id, kind) ON ledger_entries TO imprimatur_relay;
GRANT SELECT (created_at), DELETE ON outbox TO imprimatur_relay;
GRANT SELECT, INSERT, UPDATE (beat_at) ON heartbeats TO imprimatur_relay;
GRANT SELECT ON merkle_nodes, signing_keys TO imprimatur_relay;
GRANT SELECT, INSERT ON tree_heads TO imprimatur_relay;
GRANT EXECUTE ON FUNCTION public.merkle_integrate, public.audit_integrate, public.dataset_expire,
    public.dataset_forget_upload TO imprimatur_relay;

GRANT SELECT ON releases, datasets, balances, ledger_entries, merkle_leaves, merkle_nodes, merkle_certified, signing_keys
    TO imprimatur_worker;
GRANT UPDATE (state, phase, step, failure, attempts, lease_token, lease_expires_at, checkpoint_key, bundle_key,
              certificate, updated_at) ON releases TO imprimatur_worker;
GRANT SELECT, INSERT, UPDATE (beat_at) ON heartbeats TO imprimatur_worker;
GRANT SELECT, INSERT ON tree_heads TO imprimatur_worker;
GRANT EXECUTE ON FUNCTION public.ledger_post, public.ledger_void, public.ledger_settle, public.release_record_steps,
    public.merkle_certify, public.dataset_forget_upload TO imprimatur_worker;

-- Processes of this version on the role of the version before, until 0015.
GRANT SELECT ON audit_chain TO imprimatur_app;
GRANT EXECUTE ON FUNCTION public.release_record_steps, public.release_cancel, public.dataset_erase, public.dataset_expire,
    public.dataset_forget_upload, public.audit_append, public.audit_integrate TO imprimatur_app;
"""


def upgrade() -> None:
    for script in (CREATE_ROLES, RECORDED_STEPS, CANCEL, DATASETS, KEYS, AUDIT, GRANTS):
        # Through the driver, where a lone % would begin a parameter.
        op.get_bind().exec_driver_sql(script.replace("%", "%%"))


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
