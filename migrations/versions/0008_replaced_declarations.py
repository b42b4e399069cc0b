"""A declaration may be replaced until the first order is charged, under the lock that every order takes.

Revision: 0008; follows 0007.

The number of a dataset's declaration lies in its balance, the row that every reservation locks: an order says under which
declaration it was priced, and is refused where another one holds. Schema, unit, n, δ and what follows from them are
changed by `dataset_redeclare` alone; the application's role gets no right to change these columns. ε cannot be changed.

Beside it the version before works on: its `ledger_reserve` names no declaration and means the first. Orders it has priced
for a dataset that was declared anew since are refused (`conflict`) until its processes are replaced. What it erases or
charges keeps the upload's key until the sweep of the new version.
"""

from alembic import op

revision = "0008"
down_revision = "0007"

NANO = 1_000_000_000
LARGEST_COST = 1_000 * NANO

TABLES = """
ALTER TABLE balances ADD COLUMN declaration bigint NOT NULL DEFAULT 1
    CONSTRAINT ck_balances_declaration CHECK (declaration >= 1);
ALTER TABLE datasets ADD COLUMN declared_at timestamptz;
ALTER TABLE datasets ADD COLUMN upload_key text;
ALTER TABLE datasets ADD COLUMN wrapped_upload_key bytea;
ALTER TABLE datasets ADD COLUMN upload_key_id uuid;
ALTER TABLE datasets ADD COLUMN upload_reads integer NOT NULL DEFAULT 0;
ALTER TABLE datasets ADD CONSTRAINT ck_datasets_upload CHECK ((upload_key IS NULL) = (wrapped_upload_key IS NULL));
CREATE INDEX ix_datasets_upload_key ON datasets (upload_key) WHERE upload_key IS NOT NULL;
GRANT UPDATE (upload_key, wrapped_upload_key, upload_key_id, upload_reads) ON datasets TO imprimatur_app;
"""

OUTCOMES = """
OUT outcome text, OUT entry public.ledger_entries, OUT simple_left bigint, OUT renyi_left bigint
"""

FUNCTIONS = f"""
CREATE FUNCTION public.ledger_reserve(
    dataset uuid, release uuid, simple bigint, renyi bigint, declaration bigint, {OUTCOMES})
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- As 0002, and the order must have been priced under the declaration that holds; `redeclared` where it was not.
DECLARE held public.balances;
BEGIN
    IF (simple BETWEEN 0 AND {LARGEST_COST}) IS NOT TRUE OR (renyi BETWEEN 0 AND {LARGEST_COST}) IS NOT TRUE
       OR dataset IS NULL OR release IS NULL OR declaration IS NULL THEN
        RAISE EXCEPTION 'a cost is a whole number of nano-shares from 0 to {LARGEST_COST}'
            USING ERRCODE = 'check_violation';
    END IF;
    -- First a look without the lock: an order for which no room is committed is refused as of this moment, and a crowd
    -- of refusals delays no other. Only an order that seems to fit takes the lock, and is checked again under it.
    SELECT * INTO held FROM public.balances AS b WHERE b.dataset_id = dataset;
    IF public.ledger_has_room(held, simple, renyi) THEN
        held := public.ledger_hold(dataset);
    END IF;
    simple_left := greatest(0, {NANO} - held.simple_pending - held.simple_posted);
    renyi_left := greatest(0, {NANO} - held.renyi_pending - held.renyi_posted);
    SELECT * INTO entry FROM public.ledger_entries AS e WHERE e.release_id = release AND e.kind = 'reserve';
    IF FOUND THEN
        outcome := CASE WHEN (entry.dataset_id, entry.simple, entry.renyi) = (dataset, simple, renyi)
                   THEN 'again' ELSE 'conflict' END;
    ELSIF held.dataset_id IS NULL THEN
        outcome := 'no_account';
    ELSIF held.declaration <> ledger_reserve.declaration THEN
        outcome := 'redeclared';
    ELSIF NOT public.ledger_has_room(held, simple, renyi) THEN
        outcome := 'exhausted';
    ELSE
        outcome := 'done';
        entry := public.ledger_append(held, release, 'reserve', simple, renyi, simple, 0, renyi, 0);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION public.ledger_reserve(dataset uuid, release uuid, simple bigint, renyi bigint, {OUTCOMES})
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    -- For callers that know of one declaration only, the first.
    SELECT CASE r.outcome WHEN 'redeclared' THEN 'conflict' ELSE r.outcome END, r.entry, r.simple_left, r.renyi_left
    FROM public.ledger_reserve(dataset, release, simple, renyi, 1::bigint) AS r
$$;

CREATE FUNCTION public.dataset_redeclare(
    dataset uuid, declaration bigint, name text, schema jsonb, privacy_unit jsonb, units bigint,
    delta double precision, renyi_order integer, renyi_capacity double precision, storage_key text,
    OUT outcome text, OUT open_releases uuid[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Replaces the declaration of a dataset from which nothing was ever charged and nothing is ordered. done; charged;
-- ordered: these releases are reserved; redeclared: another declaration than `declaration` holds; erased; no_account.
-- Only `done` has changed anything.
DECLARE held public.balances;
BEGIN
    -- A posted entry is never removed, so this look needs no lock and spares the ledger of a dataset in use a long one.
    IF EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.dataset_id = dataset AND e.kind = 'post') THEN
        outcome := 'charged'; RETURN;
    END IF;
    -- Every reservation and every charge takes this lock and holds it until it has committed: it came before, and is
    -- seen below, or it comes after, and sees what is written here.
    held := public.ledger_hold(dataset);
    IF held.dataset_id IS NULL THEN outcome := 'no_account'; RETURN; END IF;
    IF EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.dataset_id = dataset AND e.kind = 'post') THEN
        outcome := 'charged'; RETURN;
    END IF;
    SELECT array_agg(e.release_id ORDER BY e.seq) INTO open_releases FROM public.ledger_entries AS e
        WHERE e.dataset_id = dataset AND e.kind = 'reserve' AND NOT EXISTS (
            SELECT FROM public.ledger_entries AS v WHERE v.release_id = e.release_id AND v.kind = 'void');
    IF open_releases IS NOT NULL THEN outcome := 'ordered'; RETURN; END IF;
    IF held.declaration IS DISTINCT FROM dataset_redeclare.declaration THEN outcome := 'redeclared'; RETURN; END IF;
    UPDATE public.datasets AS d SET
        name = dataset_redeclare.name,
        schema = dataset_redeclare.schema,
        privacy_unit = dataset_redeclare.privacy_unit,
        units = dataset_redeclare.units,
        delta = dataset_redeclare.delta,
        renyi_order = dataset_redeclare.renyi_order,
        renyi_capacity = dataset_redeclare.renyi_capacity,
        storage_key = dataset_redeclare.storage_key,
        declared_at = clock_timestamp()
    WHERE d.id = dataset AND d.erased_at IS NULL AND (d.rows_expire_at <= clock_timestamp()) IS NOT TRUE;
    IF NOT FOUND THEN outcome := 'erased'; RETURN; END IF;
    UPDATE public.balances AS b SET declaration = held.declaration + 1 WHERE b.dataset_id = dataset;
    outcome := 'done';
END $$;

REVOKE ALL ON FUNCTION public.ledger_reserve(uuid, uuid, bigint, bigint, bigint), public.dataset_redeclare FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.ledger_reserve(uuid, uuid, bigint, bigint, bigint), public.dataset_redeclare
    TO imprimatur_app;
"""  # noqa: S608 - constants of this module


def upgrade() -> None:
    for script in (TABLES, FUNCTIONS):
        op.get_bind().exec_driver_sql(script)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
