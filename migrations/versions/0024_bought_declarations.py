"""What was bought of a declaration is written into it, once, with the publication of the release that bought it.

Revision: 0024; follows 0023.

`dataset_declare` changes only columns that say `infer`, only for the worker that holds a charged order of method `declaration`, and
only to constraints that name this release. The number of the declaration goes up, so that no order that was priced before fits after.
Of one dataset, one such order is open at a time: two would pay twice for one declaration. The version before knows no such order.
"""

from alembic import op

revision = "0024"
down_revision = "0023"

INDEX = """
CREATE UNIQUE INDEX uq_releases_declaration ON releases (dataset_id)
    WHERE order_ ->> 'method' = 'declaration' AND state IN ('reserved', 'charged');
"""

FUNCTION = """
CREATE FUNCTION public.dataset_declare(release uuid, token bigint, schema jsonb, OUT outcome text)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- done; lost: another worker holds the release; refused: it is no charged order of a declaration, the dataset is erased or
-- its declaration is complete, or more would be changed than what was bought. Only `done` has changed anything.
DECLARE its public.releases;
        before_ jsonb;
BEGIN
    outcome := 'refused';
    SELECT * INTO its FROM public.releases AS r WHERE r.id = release FOR UPDATE;
    IF NOT FOUND OR its.lease_token IS DISTINCT FROM token THEN outcome := 'lost'; RETURN; END IF;
    IF its.state NOT IN ('charged', 'published') OR its.order_ ->> 'method' IS DISTINCT FROM 'declaration'
       OR NOT EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.release_id = release AND e.kind = 'post') THEN
        RETURN;
    END IF;
    PERFORM public.ledger_hold(its.dataset_id);
    SELECT d.schema INTO before_ FROM public.datasets AS d WHERE d.id = its.dataset_id AND d.erased_at IS NULL FOR UPDATE;
    IF NOT FOUND OR (schema - 'fields') IS DISTINCT FROM (before_ - 'fields') THEN RETURN; END IF;
    IF NOT EXISTS (SELECT FROM jsonb_array_elements(before_ -> 'fields') AS f WHERE f ? 'infer') THEN RETURN; END IF;
    IF EXISTS (
        SELECT FROM jsonb_array_elements(before_ -> 'fields') WITH ORDINALITY AS old(field, place)
        FULL JOIN jsonb_array_elements(schema -> 'fields') WITH ORDINALITY AS new(field, place) USING (place)
        WHERE CASE WHEN old.field ? 'infer' THEN
            old.field - '{infer,constraints}'::text[] IS DISTINCT FROM new.field - '{bought,constraints}'::text[]
            OR new.field -> 'bought' ->> 'release' IS DISTINCT FROM release::text
            OR NOT (coalesce(new.field -> 'constraints', '{}') @> coalesce(old.field -> 'constraints', '{}'))
        ELSE old.field IS DISTINCT FROM new.field END
    ) THEN RETURN; END IF;
    UPDATE public.datasets AS d SET schema = dataset_declare.schema, declared_at = clock_timestamp()
        WHERE d.id = its.dataset_id;
    UPDATE public.balances AS b SET declaration = b.declaration + 1 WHERE b.dataset_id = its.dataset_id;
    outcome := 'done';
END $$;

REVOKE ALL ON FUNCTION public.dataset_declare FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.dataset_declare TO imprimatur_worker;
"""


def upgrade() -> None:
    for script in (INDEX, FUNCTION):
        op.get_bind().exec_driver_sql(script)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
