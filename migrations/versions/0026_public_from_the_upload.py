"""A dataset is declared public in the statement that creates it, and by nothing else.

Revision: 0026; follows 0025. Expand: the version before works on beside it, but for its request that declares a dataset public.

The API's role inserts `rows_are_public` and has no right to update it. A trigger refuses to change it for every role. What was declared
by 0025, after the upload, is private again: its role could have written that line for any dataset. For the version before,
`public_datasets` is a view of the column. Time and transaction of a row prove nothing: a role that may update any column of a row
gives it a new version in its own transaction.
"""

from alembic import op

revision = "0026"
down_revision = "0025"

SCRIPT = """
ALTER TABLE public.datasets ADD COLUMN rows_are_public boolean NOT NULL DEFAULT false;
GRANT INSERT (rows_are_public) ON public.datasets TO imprimatur_api;

CREATE FUNCTION public.dataset_stays_private_or_public() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.rows_are_public IS DISTINCT FROM OLD.rows_are_public THEN
        RAISE EXCEPTION 'rows are declared public when they are uploaded, or never' USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;
REVOKE ALL ON FUNCTION public.dataset_stays_private_or_public FROM PUBLIC;

CREATE TRIGGER datasets_stay_private_or_public BEFORE UPDATE ON public.datasets
    FOR EACH ROW EXECUTE FUNCTION public.dataset_stays_private_or_public();

DROP TABLE public.public_datasets;
CREATE VIEW public.public_datasets AS
    SELECT d.id AS dataset_id, NULL::uuid AS key_id, d.created_at AS declared_at FROM public.datasets AS d WHERE d.rows_are_public;
GRANT SELECT ON public.public_datasets TO imprimatur_api, imprimatur_worker;
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(SCRIPT)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
