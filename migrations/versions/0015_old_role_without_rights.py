"""`imprimatur_app` loses its rights, and no checkpoint is named before its steps are recorded. Contract.

Revision: 0015; follows 0014. A process of the version before, or one that still logs in as `imprimatur_app`, is refused
from here on and changes nothing. In this order:

1. `python -m service.platform.database 0014`
2. give the three roles passwords: `ALTER ROLE imprimatur_api PASSWORD '…'`, and so for `imprimatur_relay` and
   `imprimatur_worker` (`imprimatur up` does it by itself)
3. start the new processes, each with the `IMPRIMATUR_DATABASE_URL` of its role, and stop the old ones
4. `python -m service.platform.database`

The role stays, because a cluster may hold other databases; drop it when none has it: `DROP ROLE imprimatur_app`.
A training that an old worker had begun goes on from its checkpoint. What it ran since its last one was never recorded
and is settled as before: by the steps of that checkpoint.
"""

from alembic import op

revision = "0015"
down_revision = "0014"

RIGHTS = """
REVOKE ALL ON ALL TABLES IN SCHEMA public FROM imprimatur_app;
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA public FROM imprimatur_app;
REVOKE ALL ON SCHEMA public FROM imprimatur_app;
-- It only raises, and a trigger needs no right of a role to be called.
REVOKE ALL ON FUNCTION public.refuse_change FROM PUBLIC;
"""

NAMED_AFTER_THE_RECORD = """
CREATE FUNCTION public.checkpoint_is_recorded() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF NEW.recorded_token = 0 OR NEW.recorded_token <> NEW.lease_token OR EXISTS (
        SELECT FROM public.ledger_entries AS e WHERE e.release_id = NEW.id AND e.kind = 'settle') THEN
        RAISE EXCEPTION 'the steps of a checkpoint are recorded before it is named, and none is named after a settlement'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER releases_name_what_is_recorded BEFORE UPDATE OF checkpoint_key ON releases
    FOR EACH ROW WHEN (NEW.checkpoint_key IS NOT NULL AND NEW.checkpoint_key IS DISTINCT FROM OLD.checkpoint_key)
    EXECUTE FUNCTION public.checkpoint_is_recorded();

REVOKE ALL ON FUNCTION public.checkpoint_is_recorded FROM PUBLIC;
"""


def upgrade() -> None:
    for script in (RIGHTS, NAMED_AFTER_THE_RECORD):
        op.get_bind().exec_driver_sql(script)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
