"""Erasing a dataset from which nothing was ordered frees its rows for a new upload.

Revision: 0018; follows 0017. `dataset_erase` forgets the fingerprints of a dataset without a charge and without an open
reservation; those of every other stay for good. It decides under the lock of the dataset's balance, which every
reservation takes. Rows that were erased so before are freed, too.
"""

from alembic import op

revision = "0018"
down_revision = "0017"

FUNCTIONS = """
CREATE FUNCTION public.dataset_was_ordered(dataset uuid) RETURNS boolean
LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- Whether a charge or an open reservation stands in its ledger: a reservation that was given back has read no row.
    SELECT EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.dataset_id = dataset AND e.kind <> 'void' AND (
        e.kind <> 'reserve' OR NOT EXISTS (
            SELECT FROM public.ledger_entries AS v WHERE v.release_id = e.release_id AND v.kind = 'void')))
$$;

CREATE OR REPLACE FUNCTION public.dataset_erase(dataset uuid, OUT storage_key text, OUT upload_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Forgets where rows and upload lie, and their keys; says once where they lie, nulls where it happened before. Of a dataset
-- that nothing was ordered from it forgets the fingerprints as well, so that the rows may be uploaded anew.
BEGIN
    -- Before the dataset's row, as reservations and redeclarations take them.
    PERFORM public.ledger_hold(dataset);
    SELECT d.storage_key, d.upload_key INTO storage_key, upload_key FROM public.datasets AS d
        WHERE d.id = dataset FOR UPDATE;
    IF storage_key IS NULL THEN upload_key := NULL; RETURN; END IF;
    UPDATE public.datasets AS d SET storage_key = NULL, wrapped_data_key = NULL, erased_at = clock_timestamp(),
        upload_key = NULL, wrapped_upload_key = NULL, upload_key_id = NULL WHERE d.id = dataset;
    IF NOT public.dataset_was_ordered(dataset) THEN
        DELETE FROM public.dataset_fingerprints AS f WHERE f.dataset_id = dataset;
        DELETE FROM public.dataset_column_fingerprints AS f WHERE f.dataset_id = dataset;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION public.dataset_expire(dataset uuid, OUT storage_key text, OUT upload_key text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Erases rows whose deletion date has come, and writes that into the audit log; else nulls.
DECLARE tenant uuid;
BEGIN
    SELECT d.tenant_id INTO tenant FROM public.datasets AS d
        WHERE d.id = dataset AND d.rows_expire_at <= clock_timestamp();
    IF NOT FOUND THEN RETURN; END IF;  -- a date is never put off, so what has come has come
    SELECT e.storage_key, e.upload_key INTO storage_key, upload_key FROM public.dataset_erase(dataset) AS e;
    IF storage_key IS NULL THEN RETURN; END IF;
    INSERT INTO public.audit_events (tenant_id, action, object_kind, object_id, outcome, request_id)
        VALUES (tenant, 'expire_rows', 'dataset', dataset, 'done', gen_random_uuid());
END $$;

REVOKE ALL ON FUNCTION public.dataset_was_ordered FROM PUBLIC;
"""

FREED = """
CREATE TEMP TABLE freed ON COMMIT DROP AS
    SELECT d.id FROM public.datasets AS d WHERE d.erased_at IS NOT NULL AND NOT public.dataset_was_ordered(d.id);
DELETE FROM public.dataset_fingerprints AS f USING freed WHERE f.dataset_id = freed.id;
DELETE FROM public.dataset_column_fingerprints AS f USING freed WHERE f.dataset_id = freed.id;
"""


def upgrade() -> None:
    for script in (FUNCTIONS, FREED):
        op.get_bind().exec_driver_sql(script)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
