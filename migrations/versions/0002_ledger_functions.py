"""The ledger's moves as functions. Expand: nothing that stood before is touched.

Revision: 0002; follows 0001.

Each function checks, moves and appends in one round trip, under the row lock of the dataset's balance. They run with
the rights of the role that migrates, so that the application role needs none on the tables (0003 takes them away).
What is searched for is named in full and `search_path` is fixed: nothing the caller creates can stand in for a table,
a function or an operator. Amounts come from the entries; only a reservation's cost and a settlement come from outside.

Beside it the previous version still moves balances itself: it takes the same row lock and writes the same chain.
"""

from alembic import op

revision = "0002"
down_revision = "0001"

NANO = 1_000_000_000
LARGEST_COST = 1_000 * NANO
FULL = 4 * 10**18
"""No account is ever filled beyond this, so that sums stay inside 64 bits whatever is asked."""

OUTCOMES = """
OUT outcome text, OUT entry public.ledger_entries, OUT simple_left bigint, OUT renyi_left bigint
"""
"""done; again: it had happened before, here is its entry; exhausted: no account has room, what is left is told;
conflict: earlier entries rule it out; no_account: no such balance. Only `done` has changed anything."""

FUNCTIONS = f"""
CREATE FUNCTION public.ledger_hash(
    dataset uuid, seq bigint, release uuid, kind text, simple bigint, renyi bigint, at timestamptz, previous bytea
) RETURNS bytea LANGUAGE sql STABLE SET search_path = pg_catalog, pg_temp AS $$
    -- SHA-256 of the canonical JSON of imprimatur/verify/chain.py; no setting of the session changes a byte of it.
    SELECT sha256(convert_to(concat(
        '{{"created_at":"', to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US'), '+00:00"',
        ',"dataset_id":"', dataset, '","kind":"', kind, '","previous_hash":"', encode(previous, 'hex'),
        '","release_id":"', release, '","renyi":', renyi, ',"seq":', seq, ',"simple":', simple, '}}'
    ), 'UTF8'))
$$;

CREATE FUNCTION public.ledger_append(
    held public.balances, release uuid, kind text, simple bigint, renyi bigint,
    simple_pending bigint, simple_posted bigint, renyi_pending bigint, renyi_posted bigint
) RETURNS public.ledger_entries LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
-- The next line of the chain, and the change of the balance whose row the caller has locked and read.
DECLARE entry public.ledger_entries;
BEGIN
    entry := ROW(held.dataset_id, held.entry_count + 1, release, kind, simple, renyi,
                 clock_timestamp(), held.head_hash, NULL);
    entry.hash := public.ledger_hash(entry.dataset_id, entry.seq, release, kind, simple, renyi,
                                     entry.created_at, entry.previous_hash);
    INSERT INTO public.ledger_entries VALUES (entry.*);
    UPDATE public.balances AS b SET
        simple_pending = held.simple_pending + ledger_append.simple_pending,
        simple_posted = held.simple_posted + ledger_append.simple_posted,
        renyi_pending = held.renyi_pending + ledger_append.renyi_pending,
        renyi_posted = held.renyi_posted + ledger_append.renyi_posted,
        entry_count = entry.seq,
        head_hash = entry.hash
    WHERE b.dataset_id = held.dataset_id;
    RETURN entry;
END $$;

CREATE FUNCTION public.ledger_has_room(held public.balances, simple bigint, renyi bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    -- The filter of docs/privacy.md: one account with room is enough.
    SELECT (held.simple_pending + held.simple_posted + simple <= {NANO}
            OR held.renyi_pending + held.renyi_posted + renyi <= {NANO})
       AND held.simple_pending + held.simple_posted <= {FULL}
       AND held.renyi_pending + held.renyi_posted <= {FULL}
$$;

CREATE FUNCTION public.ledger_hold(dataset uuid) RETURNS public.balances
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
-- The balance, held until the transaction ends; all nulls where there is none. A transaction that wants it waits in the queue of an
-- advisory lock: 64 that wait for the row itself wake one another up (measured: two thirds of the orders a second).
DECLARE held public.balances;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended(dataset::text, 0));
    SELECT * INTO held FROM public.balances AS b WHERE b.dataset_id = dataset FOR UPDATE;
    RETURN held;
END $$;

CREATE FUNCTION public.ledger_open(dataset uuid) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    -- An empty account; asking again changes nothing.
    INSERT INTO public.balances (dataset_id) VALUES (dataset) ON CONFLICT (dataset_id) DO NOTHING
$$;

CREATE FUNCTION public.ledger_reserve(dataset uuid, release uuid, simple bigint, renyi bigint, {OUTCOMES})
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE held public.balances;
BEGIN
    IF (simple BETWEEN 0 AND {LARGEST_COST}) IS NOT TRUE OR (renyi BETWEEN 0 AND {LARGEST_COST}) IS NOT TRUE
       OR dataset IS NULL OR release IS NULL THEN
        RAISE EXCEPTION 'a cost is a whole number of nano-shares from 0 to {LARGEST_COST}'
            USING ERRCODE = 'check_violation';
    END IF;
    -- First a look without the lock: an order for which no room is committed is refused as of this moment, and a crowd
    -- of refusals holds up nobody. Only whoever seems to fit takes the lock, and is judged again by what it finds then.
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
    ELSIF NOT public.ledger_has_room(held, simple, renyi) THEN
        outcome := 'exhausted';
    ELSE
        outcome := 'done';
        entry := public.ledger_append(held, release, 'reserve', simple, renyi, simple, 0, renyi, 0);
    END IF;
END $$;

CREATE FUNCTION public.ledger_post(dataset uuid, release uuid, {OUTCOMES})
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE held public.balances;
        reserved public.ledger_entries;
BEGIN
    held := public.ledger_hold(dataset);
    IF held.dataset_id IS NULL THEN outcome := 'no_account'; RETURN; END IF;
    SELECT * INTO entry FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'post' AND e.dataset_id = dataset;
    IF FOUND THEN outcome := 'again'; RETURN; END IF;
    SELECT * INTO reserved FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'reserve' AND e.dataset_id = dataset;
    IF NOT FOUND OR EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.release_id = release AND e.kind = 'void') THEN
        outcome := 'conflict'; RETURN;
    END IF;
    outcome := 'done';
    entry := public.ledger_append(held, release, 'post', reserved.simple, reserved.renyi,
                                  -reserved.simple, reserved.simple, -reserved.renyi, reserved.renyi);
END $$;

CREATE FUNCTION public.ledger_void(dataset uuid, release uuid, {OUTCOMES})
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE held public.balances;
        reserved public.ledger_entries;
BEGIN
    held := public.ledger_hold(dataset);
    IF held.dataset_id IS NULL THEN outcome := 'no_account'; RETURN; END IF;
    SELECT * INTO entry FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'void' AND e.dataset_id = dataset;
    IF FOUND THEN outcome := 'again'; RETURN; END IF;
    SELECT * INTO reserved FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'reserve' AND e.dataset_id = dataset;
    IF NOT FOUND OR EXISTS (SELECT FROM public.ledger_entries AS e WHERE e.release_id = release AND e.kind = 'post') THEN
        outcome := 'conflict'; RETURN;
    END IF;
    outcome := 'done';
    entry := public.ledger_append(held, release, 'void', reserved.simple, reserved.renyi,
                                  -reserved.simple, 0, -reserved.renyi, 0);
END $$;

CREATE FUNCTION public.ledger_settle(dataset uuid, release uuid, renyi bigint, {OUTCOMES})
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE held public.balances;
        posted public.ledger_entries;
BEGIN
    -- The release before the balance, as everybody else does. What is published is paid for in full.
    PERFORM FROM public.releases AS r WHERE r.id = release FOR SHARE;
    held := public.ledger_hold(dataset);
    IF held.dataset_id IS NULL THEN outcome := 'no_account'; RETURN; END IF;
    SELECT * INTO entry FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'settle' AND e.dataset_id = dataset;
    IF FOUND THEN outcome := 'again'; RETURN; END IF;
    SELECT * INTO posted FROM public.ledger_entries AS e
        WHERE e.release_id = release AND e.kind = 'post' AND e.dataset_id = dataset;
    IF NOT FOUND OR (renyi BETWEEN 0 AND posted.renyi) IS NOT TRUE
       OR EXISTS (SELECT FROM public.releases AS r WHERE r.id = release AND r.state = 'published') THEN
        outcome := 'conflict'; RETURN;
    END IF;
    outcome := 'done';
    entry := public.ledger_append(held, release, 'settle', posted.simple, renyi, 0, 0, 0, renyi - posted.renyi);
END $$;

REVOKE ALL ON FUNCTION public.ledger_hash, public.ledger_append, public.ledger_has_room, public.ledger_hold, public.ledger_open,
    public.ledger_reserve, public.ledger_post, public.ledger_void, public.ledger_settle FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.ledger_open, public.ledger_reserve, public.ledger_post, public.ledger_void,
    public.ledger_settle TO imprimatur_app;
"""  # noqa: S608 - constants of this module


def upgrade() -> None:
    op.get_bind().exec_driver_sql(FUNCTIONS)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
