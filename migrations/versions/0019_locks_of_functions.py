"""Functions wait on locks that no other role can take; no role makes temporary tables or large objects.

Revision: 0019; follows 0018. Expand: the version before works on beside it, and calls the same functions.

An advisory lock can be taken by every role, and held: the API could stop all workers. The three functions that use one
for the whole service now lock an empty table, on which no role has a right. Each advisory lock is taken here first, so
that no call of the old text is at work. One that waits for it meanwhile goes on with the old text afterwards, once,
beside a new one. For a claim that costs only the order of turns; of two that give out the same places of a log, one
ends with an error of the primary key and is repeated.

What the migrating role may not revoke (temporary tables: of a database that it does not own; large objects: where it is
no superuser, as on most managed servers) is left with a notice, and `imprimatur install --check` says it.
"""

from alembic import op
from sqlalchemy import text

revision = "0019"
down_revision = "0018"

LOCKS = {
    "release_claim": ("imprimatur queue", "queue_lock"),
    "merkle_integrate": ("imprimatur merkle log", "merkle_lock"),
    "audit_integrate": ("imprimatur audit chain", "audit_lock"),
}
"""Function: its advisory lock, and the table that is locked instead."""

RIGHTS = """
DO $$
DECLARE one record;
BEGIN
    -- Rights on a database are in no dump of it, and are not copied from a template.
    IF (SELECT pg_has_role(d.datdba, 'USAGE') FROM pg_database AS d WHERE d.datname = current_database()) THEN
        EXECUTE format('REVOKE TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    ELSE
        RAISE NOTICE 'temporary tables are left to everybody: the database belongs to another role';
    END IF;
    FOR one IN
        SELECT p.oid::regprocedure AS function, pg_has_role(p.proowner, 'USAGE') AS mine
        FROM pg_proc AS p WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname IN (
            'lo_creat', 'lo_create', 'lo_from_bytea', 'lo_import', 'lo_export', 'lo_put', 'lowrite')
    LOOP
        IF one.mine THEN
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', one.function);
        ELSE
            RAISE NOTICE '% is left to everybody: only a superuser can revoke it', one.function;
        END IF;
    END LOOP;
END $$;
"""


def upgrade() -> None:
    connection = op.get_bind()
    for function, (advisory, table) in LOCKS.items():
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))"), {"name": advisory})
        connection.exec_driver_sql(f"CREATE TABLE public.{table} ()")
        body = connection.scalar(
            text("SELECT pg_get_functiondef(CAST(:name AS regproc))"), {"name": f"public.{function}"}
        )
        old = f"PERFORM pg_advisory_xact_lock(hashtextextended('{advisory}', 0));"
        if body.count(old) != 1:
            raise RuntimeError(f"{function} is not as migrations made it: {old} is expected in it once")
        new = body.replace(old, f"LOCK TABLE public.{table} IN EXCLUSIVE MODE;")
        connection.exec_driver_sql(new.replace("%", "%%"))
    connection.exec_driver_sql(RIGHTS.replace("%", "%%"))


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
