"""What is stored anew is bound to its name; erasing and cancelling leave their lines in the audit log by themselves.

Revision: 0030; follows 0029. Rows that are there stay as they are. Of the version before, workers cannot read what an API of this one
stores, and uploads and new declarations of an API are refused as if the database did not answer (503): see docs/operating.md.

The API's role, with access to the object store, could copy rows that were grouped by one privacy unit to a fresh name, and declare
that they are grouped by another; and a kept upload, for another key with readings of its own. Names are used once (0029), but a copy
has another name. Now ciphertexts are bound to their names (`service.datasets.stored_objects`). Those from before are not, and cannot be
encrypted anew here, where there is no key: they are told by the form of their names, which no row takes on any more.

`dataset_erase` and `release_cancel` write their lines themselves, as `dataset_redeclare` does since 0029.
"""

from alembic import op

revision = "0030"
down_revision = "0029"

BOUND = """
CREATE FUNCTION public.dataset_names_bound_objects() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Objects with such a name open whatever they are a copy of, so that those from before can be read. As
-- service.datasets.stored_objects.is_from_before.
DECLARE from_before CONSTANT text := '^datasets/[^/]*/(rows|upload)';
BEGIN
    IF (NEW.storage_key ~ from_before AND (TG_OP = 'INSERT' OR NEW.storage_key IS DISTINCT FROM OLD.storage_key))
       OR (NEW.upload_key ~ from_before AND (TG_OP = 'INSERT' OR NEW.upload_key IS DISTINCT FROM OLD.upload_key)) THEN
        -- Of this class, since the version before takes it for a database that does not answer, and says so.
        RAISE EXCEPTION 'rows and uploads are bound to names of their own' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER datasets_name_bound_objects BEFORE INSERT OR UPDATE OF storage_key, upload_key ON public.datasets
    FOR EACH ROW EXECUTE FUNCTION public.dataset_names_bound_objects();
"""

ACTS = """
CREATE FUNCTION public.audit_act(tenant uuid, key uuid, action text, object_kind text, object_id uuid, request uuid) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- The line of what a function has done, as of this key of the tenant or, where it was called without one, of none.
BEGIN
    IF key IS NULL THEN
        INSERT INTO public.audit_events (tenant_id, action, object_kind, object_id, outcome, request_id)
            VALUES (tenant, action, object_kind, object_id, 'done', request);
    ELSE
        PERFORM public.audit_append(tenant, key, action, object_kind, object_id, 'done', 0, request);
    END IF;
END $$;

-- What it was until now, without a line: its callers write one.
ALTER FUNCTION public.dataset_erase RENAME TO dataset_forget_rows;

CREATE FUNCTION public.dataset_erase(
    dataset uuid, key uuid DEFAULT NULL, request uuid DEFAULT gen_random_uuid(), OUT storage_key text, OUT upload_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Erases rows and upload, as an owner asks for; asked again it changes nothing, and the audit log says that it was asked.
DECLARE tenant uuid;
BEGIN
    SELECT f.storage_key, f.upload_key INTO storage_key, upload_key FROM public.dataset_forget_rows(dataset) AS f;
    SELECT d.tenant_id INTO tenant FROM public.datasets AS d WHERE d.id = dataset;
    IF FOUND THEN PERFORM public.audit_act(tenant, key, 'erase_dataset', 'dataset', dataset, request); END IF;
END $$;

CREATE OR REPLACE FUNCTION public.dataset_expire(dataset uuid, OUT storage_key text, OUT upload_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Erases rows whose deletion date has come, and writes that into the audit log; else nulls.
DECLARE tenant uuid;
BEGIN
    SELECT d.tenant_id INTO tenant FROM public.datasets AS d
        WHERE d.id = dataset AND d.rows_expire_at <= clock_timestamp();
    IF NOT FOUND THEN RETURN; END IF;  -- a date is never put off, so what has come has come
    SELECT f.storage_key, f.upload_key INTO storage_key, upload_key FROM public.dataset_forget_rows(dataset) AS f;
    IF storage_key IS NULL THEN RETURN; END IF;
    PERFORM public.audit_act(tenant, NULL, 'expire_rows', 'dataset', dataset, gen_random_uuid());
END $$;

DROP FUNCTION public.release_cancel;

CREATE FUNCTION public.release_cancel(
    tenant uuid, release uuid, key uuid DEFAULT NULL, request uuid DEFAULT gen_random_uuid(), OUT outcome text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- done: voided in full before its charge, or its worker is asked to stop, and the audit log says so; null: no such release of the
-- tenant; else the state in which it had ended.
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
    IF outcome = 'done' THEN PERFORM public.audit_act(tenant, key, 'cancel_release', 'release', release, request); END IF;
END $$;
"""

RIGHTS = """
REVOKE ALL ON FUNCTION public.dataset_names_bound_objects, public.audit_act, public.dataset_erase, public.release_cancel FROM PUBLIC;
REVOKE ALL ON FUNCTION public.dataset_forget_rows FROM imprimatur_api;
GRANT EXECUTE ON FUNCTION public.dataset_erase, public.release_cancel TO imprimatur_api;
"""


def upgrade() -> None:
    for script in (BOUND, ACTS, RIGHTS):
        op.get_bind().exec_driver_sql(script)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
