"""No release without its reservation; δ and capacity of a promise are checked by the database; names of objects are used once.

Revision: 0029; follows 0028. Expand: the version before works on beside it. Rows that are there stay as they are: what is checked is
checked of what is written from here on.

The API's role could write

- a release that nothing was reserved for, or of one tenant on the rows of another. Workers stumbled over the first one after another;
- another δ, and a larger capacity of the Rényi account, into a dataset that is not charged yet;
- another privacy unit, beside rows that were stored under the one before. Another declaration has rows of its own, so they have a name
  of their own, too;
- the kept upload of a dataset anew, as that of another key, with its readings forgotten.

`dataset_redeclare` writes the lines of the audit log itself: who calls it without the API leaves them, too.
"""

from alembic import op

revision = "0029"
down_revision = "0028"

RESERVED = """
CREATE FUNCTION public.release_has_its_reservation() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- At the end of the transaction, so that order and money may come one after the other.
BEGIN
    IF NOT EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.release_id = NEW.id AND e.kind = 'reserve'
                   AND (e.dataset_id, e.simple, e.renyi) = (NEW.dataset_id, NEW.simple_cost, NEW.renyi_cost)) THEN
        RAISE EXCEPTION 'nothing is reserved for release %', NEW.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NOT EXISTS (SELECT FROM public.datasets AS d WHERE d.id = NEW.dataset_id AND d.tenant_id = NEW.tenant_id) THEN
        RAISE EXCEPTION 'release % is on rows of another tenant', NEW.id USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER releases_have_their_reservation AFTER INSERT ON public.releases
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.release_has_its_reservation();
"""

PROMISED = """
CREATE FUNCTION public.largest_capacity(epsilon double precision, delta double precision, renyi_order integer)
RETURNS double precision LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    -- As service.privacy.renyi.renyi_capacity at the half of δ that the account owns.
    SELECT epsilon - ln(1.0::float8 - 1.0::float8 / renyi_order)
        + (ln(renyi_order::float8) + ln(delta) - ln(2.0::float8)) / (renyi_order - 1.0::float8)
$$;

CREATE FUNCTION public.default_delta(units bigint)
RETURNS double precision LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp AS $$
    -- As service.privacy.statements.default_delta.
    SELECT least(1.0::float8 / (10.0::float8 * units),
                 greatest(1e-12::float8, least(1e-6::float8, 1.0::float8 / (units::float8 * units::float8))))
$$;

CREATE FUNCTION public.dataset_keeps_its_promise() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- ε and δ are given once, with the upload. δ follows the number of units where it was the default, and else only becomes smaller.
DECLARE rounding CONSTANT double precision := 1.0::float8 + 1e-9::float8;
BEGIN
    IF (NEW.epsilon > 0 AND NEW.epsilon < 'Infinity' AND NEW.delta > 0 AND NEW.delta < 1 AND NEW.units >= 1
        AND NEW.renyi_order > 1 AND NEW.renyi_capacity > 0 AND NEW.renyi_capacity < 'Infinity') IS NOT TRUE THEN
        RETURN NEW;  -- what is no promise at all is for the constraints of the table to refuse
    END IF;
    IF TG_OP = 'UPDATE' THEN
        IF NEW.epsilon IS DISTINCT FROM OLD.epsilon THEN
            RAISE EXCEPTION 'epsilon is given once' USING ERRCODE = 'insufficient_privilege';
        END IF;
        IF NEW.delta > OLD.delta * rounding AND NOT (
           OLD.delta <= public.default_delta(OLD.units) * rounding AND OLD.delta * rounding >= public.default_delta(OLD.units)
           AND NEW.delta <= public.default_delta(NEW.units) * rounding) THEN
            RAISE EXCEPTION 'delta is given once' USING ERRCODE = 'insufficient_privilege';
        END IF;
    END IF;
    IF NEW.delta > 1.0::float8 / (10.0::float8 * NEW.units) * rounding THEN
        RAISE EXCEPTION 'delta is at most 1/(10 units)' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.renyi_capacity > public.largest_capacity(NEW.epsilon, NEW.delta, NEW.renyi_order) * rounding THEN
        RAISE EXCEPTION 'the Rényi account holds what epsilon and delta give' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER datasets_keep_their_promise
    BEFORE INSERT OR UPDATE OF epsilon, delta, units, renyi_order, renyi_capacity ON public.datasets
    FOR EACH ROW EXECUTE FUNCTION public.dataset_keeps_its_promise();
"""

NAMED_ONCE = """
-- Objects that a row of a dataset has ever named. No role has a right on it.
CREATE TABLE public.dataset_objects (
    dataset_id uuid NOT NULL,
    name text NOT NULL,
    CONSTRAINT pk_dataset_objects PRIMARY KEY (dataset_id, name)
);
INSERT INTO public.dataset_objects
    SELECT d.id, d.storage_key FROM public.datasets AS d WHERE d.storage_key IS NOT NULL
    UNION SELECT d.id, d.upload_key FROM public.datasets AS d WHERE d.upload_key IS NOT NULL;

CREATE FUNCTION public.dataset_names_objects_once() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    INSERT INTO public.dataset_objects (dataset_id, name)
        SELECT NEW.id, n.name FROM (VALUES
            (NEW.storage_key, CASE WHEN TG_OP = 'UPDATE' THEN OLD.storage_key END),
            (NEW.upload_key, CASE WHEN TG_OP = 'UPDATE' THEN OLD.upload_key END)) AS n (name, before_)
        WHERE n.name IS NOT NULL AND n.name IS DISTINCT FROM n.before_;
    RETURN NULL;
EXCEPTION WHEN unique_violation THEN
    RAISE EXCEPTION 'rows and uploads that are stored anew have a name of their own' USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER datasets_name_objects_once AFTER INSERT OR UPDATE OF storage_key, upload_key ON public.datasets
    FOR EACH ROW EXECUTE FUNCTION public.dataset_names_objects_once();
"""

REDECLARE = """
DROP FUNCTION public.dataset_redeclare;

CREATE FUNCTION public.dataset_redeclare(
    dataset uuid, declaration bigint, name text, schema jsonb, privacy_unit jsonb, units bigint,
    delta double precision, renyi_order integer, renyi_capacity double precision, storage_key text,
    key uuid DEFAULT NULL, request uuid DEFAULT gen_random_uuid(),
    OUT outcome text, OUT open_releases uuid[])
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Replaces the declaration of a dataset from which nothing was ever charged and nothing is ordered. done; charged;
-- ordered: these releases are reserved; redeclared: another declaration than `declaration` holds; erased; no_account.
-- Only `done` has changed anything. Then the audit log says so, as of this key of the tenant or, called by the version before, of
-- none; and says besides where the promise is another one: its unit, their number or δ.
DECLARE held public.balances;
        before_ public.datasets;
        act text;
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
    SELECT * INTO before_ FROM public.datasets AS d
        WHERE d.id = dataset AND d.erased_at IS NULL AND (d.rows_expire_at <= clock_timestamp()) IS NOT TRUE FOR UPDATE;
    IF NOT FOUND THEN outcome := 'erased'; RETURN; END IF;
    -- The rows are read anew under another declaration: those of the one before were checked, and grouped by unit, under that.
    IF dataset_redeclare.storage_key IS NOT DISTINCT FROM before_.storage_key THEN
        RAISE EXCEPTION 'another declaration has rows of its own' USING ERRCODE = 'insufficient_privilege';
    END IF;
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
    WHERE d.id = dataset;
    UPDATE public.balances AS b SET declaration = held.declaration + 1 WHERE b.dataset_id = dataset;
    FOR act IN
        SELECT 'replace_declaration'
        UNION ALL SELECT 'change_promise'
            WHERE (before_.privacy_unit, before_.units, before_.delta, before_.schema -> 'pixel_unit') IS DISTINCT FROM
                  (dataset_redeclare.privacy_unit, dataset_redeclare.units, dataset_redeclare.delta,
                   dataset_redeclare.schema -> 'pixel_unit')
    LOOP
        IF key IS NULL THEN
            INSERT INTO public.audit_events (tenant_id, action, object_kind, object_id, outcome, request_id)
                VALUES (before_.tenant_id, act, 'dataset', dataset, 'done', request);
        ELSE
            PERFORM public.audit_append(before_.tenant_id, key, act, 'dataset', dataset, 'done', 0, request);
        END IF;
    END LOOP;
    outcome := 'done';
END $$;
"""

RIGHTS = """
REVOKE ALL ON FUNCTION public.release_has_its_reservation, public.largest_capacity, public.default_delta,
    public.dataset_keeps_its_promise, public.dataset_names_objects_once, public.dataset_redeclare FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.dataset_redeclare TO imprimatur_api;
"""


def upgrade() -> None:
    for script in (RESERVED, PROMISED, NAMED_ONCE, REDECLARE, RIGHTS):
        # Through the driver, where a lone % would begin a parameter.
        op.get_bind().exec_driver_sql(script.replace("%", "%%"))


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
