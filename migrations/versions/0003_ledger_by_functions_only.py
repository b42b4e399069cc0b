"""The application role may read the ledger and call its functions, nothing else. Contract.

Revision: 0003; follows 0002. It works beside any version that moves money by the functions of 0002; a process older
than that is refused by missing grants, and changes nothing. Bring such processes down before this revision:
`python -m service.platform.database 0002`, new processes, old ones away, `python -m service.platform.database`.

Releases are held to their ledger as well. Without that, raw SQL could set a published release back to `charged`, and a
worker would find its charge posted and train it again; or settle a charge at nothing and publish nevertheless.
"""

from alembic import op

revision = "0003"
down_revision = "0002"

GRANTS = """
REVOKE INSERT, UPDATE ON balances FROM imprimatur_app;
REVOKE UPDATE (simple_pending, simple_posted, renyi_pending, renyi_posted, entry_count, head_hash)
    ON balances FROM imprimatur_app;
REVOKE INSERT ON ledger_entries FROM imprimatur_app;
REVOKE INSERT ON releases FROM imprimatur_app;
GRANT INSERT (id, tenant_id, dataset_id, order_, price, simple_cost, renyi_cost, idempotency_key, body_digest, steps)
    ON releases TO imprimatur_app;
-- No role makes functions or tables beside ours (the default since PostgreSQL 15, said for older clusters).
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
"""

STATES = """
CREATE FUNCTION public.release_moves_forward() RETURNS trigger
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    IF OLD.state IN ('published', 'failed', 'voided') THEN
        RAISE EXCEPTION 'a release that has ended never changes' USING ERRCODE = 'insufficient_privilege';
    END IF;
    IF NEW.state <> OLD.state AND (OLD.state, NEW.state) NOT IN
       (('reserved', 'charged'), ('reserved', 'voided'), ('charged', 'published'), ('charged', 'failed')) THEN
        RAISE EXCEPTION 'a release does not go from % to %', OLD.state, NEW.state
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER releases_move_forward BEFORE UPDATE ON releases
    FOR EACH ROW EXECUTE FUNCTION public.release_moves_forward();

CREATE FUNCTION public.release_agrees_with_ledger() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- At the end of the transaction, so that state and money may change in either order.
DECLARE kinds text[];
BEGIN
    SELECT array_agg(e.kind) INTO kinds FROM public.ledger_entries AS e
        WHERE e.release_id = NEW.id AND e.dataset_id = NEW.dataset_id
          AND (e.kind = 'settle' OR (e.simple, e.renyi) = (NEW.simple_cost, NEW.renyi_cost));
    IF NOT coalesce(CASE NEW.state
        WHEN 'charged' THEN 'post' = ANY (kinds)
        WHEN 'published' THEN 'post' = ANY (kinds) AND NOT 'settle' = ANY (kinds)
        WHEN 'failed' THEN 'post' = ANY (kinds)
        WHEN 'voided' THEN 'void' = ANY (kinds)
        ELSE true END, false) THEN
        RAISE EXCEPTION 'the ledger does not say that release % is %', NEW.id, NEW.state
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN NULL;
END $$;

CREATE CONSTRAINT TRIGGER releases_agree_with_ledger AFTER UPDATE OF state ON releases
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.state <> OLD.state)
    EXECUTE FUNCTION public.release_agrees_with_ledger();

REVOKE ALL ON FUNCTION public.release_moves_forward, public.release_agrees_with_ledger FROM PUBLIC;
"""


def upgrade() -> None:
    # Through the driver, where a lone % would begin a parameter.
    for script in (GRANTS, STATES):
        op.get_bind().exec_driver_sql(script.replace("%", "%%"))


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
