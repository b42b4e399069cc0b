"""A worker claims the next release from the database, fair between tenants and between keys; open orders are limited.

Revision: 0011; follows 0010. Expand: the version before works on beside it. Its workers claim by id, its relay sends
ids, its API fills the outbox, which no new process reads. Replace workers before the last old relay: an old worker does
not know the new message. An order that an old API takes has the nil key and priority 3.
"""

from alembic import op

revision = "0011"
down_revision = "0010"

OPEN = "state IN ('reserved', 'charged')"

BY_INDEX = "SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off SET jit = off"
"""A queue grows faster than statistics of it are taken, and a plan without them reads all of it for each step."""

ROLES = "\n".join(
    f"""
DO $$ BEGIN
    CREATE ROLE {role} LOGIN;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END $$;
GRANT USAGE ON SCHEMA public TO {role};
"""
    for role in ("imprimatur_api", "imprimatur_relay", "imprimatur_worker")
)

TABLES = f"""
-- Which key ordered. No foreign key, as in the audit log: an order must not lock the key's row.
ALTER TABLE releases ADD COLUMN key_id uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000';
ALTER TABLE releases ADD COLUMN priority smallint NOT NULL DEFAULT 3
    CONSTRAINT ck_releases_priority CHECK (priority BETWEEN 0 AND 7);

-- The queue in the order in which it is looked through, and what is held or was.
CREATE INDEX ix_releases_open ON releases (tenant_id, key_id, priority, created_at, id) WHERE {OPEN};
CREATE INDEX ix_releases_held ON releases (lease_expires_at) WHERE {OPEN} AND lease_expires_at IS NOT NULL;

-- When a tenant or a key (`party`, the id of either) was last served, as a number that only grows.
CREATE TABLE queue_turns (
    party uuid CONSTRAINT pk_queue_turns PRIMARY KEY,
    served bigint GENERATED ALWAYS AS IDENTITY
);
"""

FUNCTIONS = f"""
CREATE FUNCTION public.release_claim(
    lease_seconds double precision, OUT release uuid, OUT token bigint, OUT attempts integer)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp {BY_INDEX} AS $$
-- The next release, claimed; nulls where nothing waits. Tenants take turns: first the one of whose releases the fewest
-- are held, then the one that was served longest ago. Within a tenant its keys take turns by the same rule; within a key
-- the smallest priority goes first, then the oldest. Call it as a statement of its own: the first lock is held until the
-- transaction ends, and everybody who claims waits for it.
DECLARE looked_at timestamptz;
        tenant uuid;
        key uuid;
BEGIN
    IF (lease_seconds > 0 AND lease_seconds <= 86400) IS NOT TRUE THEN
        RAISE EXCEPTION 'a lease is up to 86400 seconds' USING ERRCODE = 'check_violation';
    END IF;
    -- Two claims at once would both find the same tenant the one that has the fewest.
    PERFORM pg_advisory_xact_lock(hashtextextended('imprimatur queue', 0));
    looked_at := clock_timestamp();
    -- What a worker has given back, or no longer renews, waits again.
    UPDATE public.releases AS r SET lease_expires_at = NULL WHERE r.id IN (
        SELECT l.id FROM public.releases AS l WHERE l.{OPEN} AND l.lease_expires_at < looked_at FOR UPDATE SKIP LOCKED);
    FOR tenant IN
        -- One step in the index for each tenant with something that waits, however long its queue is.
        WITH RECURSIVE waiting AS (
            (SELECT r.tenant_id FROM public.releases AS r WHERE r.{OPEN} AND r.lease_expires_at IS NULL
                ORDER BY r.tenant_id LIMIT 1)
            UNION ALL
            SELECT more.tenant_id FROM waiting AS w CROSS JOIN LATERAL (
                SELECT r.tenant_id FROM public.releases AS r
                WHERE r.{OPEN} AND r.lease_expires_at IS NULL AND r.tenant_id > w.tenant_id
                ORDER BY r.tenant_id LIMIT 1) AS more
        ), held AS (
            SELECT r.tenant_id, count(*) AS number FROM public.releases AS r
            WHERE r.{OPEN} AND r.lease_expires_at >= looked_at GROUP BY r.tenant_id
        )
        SELECT w.tenant_id FROM waiting AS w
            LEFT JOIN held AS h ON h.tenant_id = w.tenant_id
            LEFT JOIN public.queue_turns AS t ON t.party = w.tenant_id
        ORDER BY coalesce(h.number, 0), coalesce(t.served, 0), w.tenant_id
    LOOP
        FOR key IN
            WITH RECURSIVE waiting AS (
                (SELECT r.key_id FROM public.releases AS r
                    WHERE r.tenant_id = tenant AND r.{OPEN} AND r.lease_expires_at IS NULL ORDER BY r.key_id LIMIT 1)
                UNION ALL
                SELECT more.key_id FROM waiting AS w CROSS JOIN LATERAL (
                    SELECT r.key_id FROM public.releases AS r
                    WHERE r.tenant_id = tenant AND r.{OPEN} AND r.lease_expires_at IS NULL AND r.key_id > w.key_id
                    ORDER BY r.key_id LIMIT 1) AS more
            ), held AS (
                SELECT r.key_id, count(*) AS number FROM public.releases AS r
                WHERE r.{OPEN} AND r.lease_expires_at >= looked_at AND r.tenant_id = tenant GROUP BY r.key_id
            )
            SELECT w.key_id FROM waiting AS w
                LEFT JOIN held AS h ON h.key_id = w.key_id
                LEFT JOIN public.queue_turns AS t ON t.party = w.key_id
            ORDER BY coalesce(h.number, 0), coalesce(t.served, 0), w.key_id
        LOOP
            -- A row that somebody holds just now, to cancel it or to claim it by id, is passed over.
            SELECT r.id INTO release FROM public.releases AS r
                WHERE r.tenant_id = tenant AND r.key_id = key AND r.{OPEN} AND r.lease_expires_at IS NULL
                ORDER BY r.priority, r.created_at, r.id LIMIT 1 FOR UPDATE SKIP LOCKED;
            IF FOUND THEN
                UPDATE public.releases AS r SET lease_token = r.lease_token + 1, attempts = r.attempts + 1,
                    updated_at = now(), lease_expires_at = clock_timestamp() + make_interval(secs => lease_seconds)
                    WHERE r.id = release RETURNING r.lease_token, r.attempts INTO token, attempts;
                INSERT INTO public.queue_turns (party) SELECT DISTINCT p FROM (VALUES (tenant), (key)) AS v (p)
                    ON CONFLICT (party) DO UPDATE SET served = DEFAULT;
                RETURN;
            END IF;
        END LOOP;
    END LOOP;
END $$;

CREATE FUNCTION public.order_reserve(
    tenant uuid, ordered_by uuid, most_of_key bigint, most_of_tenant bigint,
    dataset uuid, release uuid, simple bigint, renyi bigint, declaration bigint,
    OUT outcome text, OUT simple_left bigint, OUT renyi_left bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
-- ledger_reserve, unless the key or the tenant has as many open orders as it may: `key_full`, `tenant_full`. Orders of a
-- tenant take turns from here until they are committed, so that two at once do not both take the last place.
DECLARE of_key bigint;
        of_tenant bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('imprimatur open orders ' || tenant, 0));
    SELECT count(*) FILTER (WHERE r.key_id = ordered_by), count(*) INTO of_key, of_tenant
        FROM public.releases AS r WHERE r.tenant_id = tenant AND r.{OPEN};
    IF of_key >= most_of_key THEN outcome := 'key_full'; RETURN; END IF;
    IF of_tenant >= most_of_tenant THEN outcome := 'tenant_full'; RETURN; END IF;
    SELECT l.outcome, l.simple_left, l.renyi_left INTO outcome, simple_left, renyi_left
        FROM public.ledger_reserve(dataset, release, simple, renyi, declaration) AS l;
END $$;

CREATE FUNCTION public.queue_claimable(most integer) RETURNS bigint
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp {BY_INDEX} AS $$
    -- How many releases a worker could claim now; counts no further than `most`.
    SELECT count(*) FROM (
        SELECT FROM public.releases AS r
        WHERE r.{OPEN} AND (r.lease_expires_at IS NULL OR r.lease_expires_at < clock_timestamp()) LIMIT most) AS found
$$;

CREATE FUNCTION public.queue_state(
    OUT waiting bigint, OUT running bigint, OUT oldest_waiting_seconds double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    -- Of all tenants together: releases that wait, releases that a worker holds, and how long ago the oldest of those
    -- that wait was ordered (0 where none does).
    SELECT count(*) FILTER (WHERE held IS NOT TRUE), count(*) FILTER (WHERE held),
           coalesce(extract(epoch FROM clock_timestamp() - min(created_at) FILTER (WHERE held IS NOT TRUE)), 0)
    FROM (SELECT r.created_at, r.lease_expires_at >= clock_timestamp() AS held
          FROM public.releases AS r WHERE r.{OPEN}) AS open
$$;

REVOKE ALL ON FUNCTION public.release_claim, public.order_reserve, public.queue_claimable, public.queue_state FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.release_claim, public.order_reserve, public.queue_claimable, public.queue_state
    TO imprimatur_app;
GRANT EXECUTE ON FUNCTION public.release_claim TO imprimatur_worker;
GRANT EXECUTE ON FUNCTION public.order_reserve, public.queue_state TO imprimatur_api;
GRANT EXECUTE ON FUNCTION public.queue_claimable, public.queue_state TO imprimatur_relay;
GRANT INSERT (key_id, priority) ON releases TO imprimatur_app, imprimatur_api;
"""  # noqa: S608 - constants of this module


def upgrade() -> None:
    for script in (ROLES, TABLES, FUNCTIONS):
        op.get_bind().exec_driver_sql(script)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
