"""A Merkle log over the entries of all datasets, the keys that sign its heads, and the signed heads.

Revision: 0009; follows 0008. Expand: what moves money is not touched, and the version before works on beside it. Its
workers publish certificates without a tree head until they are replaced.

The log has the form of RFC 6962. The input of a leaf is the hash of an entry (32 bytes), which commits to the entry's
contents and to the entry before it. Entries get their place in the log after they are committed, in batches: the moves
of different datasets need no common lock. Within a dataset the log keeps the order of the chain. A place that is given
is never given anew.
"""

from alembic import op

revision = "0009"
down_revision = "0008"

TABLES = """
CREATE TABLE merkle_leaves (
    leaf_index bigint CONSTRAINT pk_merkle_leaves PRIMARY KEY
        CONSTRAINT ck_merkle_leaves_leaf_index CHECK (leaf_index >= 0),
    dataset_id uuid NOT NULL,
    seq bigint NOT NULL,
    CONSTRAINT uq_merkle_leaves_dataset_id_seq UNIQUE (dataset_id, seq)
);
-- No foreign key to the entries: a place outlives whatever becomes of its entry, and that is how a loss is seen.

-- Complete subtrees: the node `place` of level L covers the leaves from place * 2^L on, 2^L of them.
CREATE TABLE merkle_nodes (
    level smallint NOT NULL CONSTRAINT ck_merkle_nodes_level CHECK (level BETWEEN 0 AND 62),
    place bigint NOT NULL CONSTRAINT ck_merkle_nodes_place CHECK (place >= 0),
    hash bytea NOT NULL CONSTRAINT ck_merkle_nodes_hash CHECK (length(hash) = 32),
    CONSTRAINT pk_merkle_nodes PRIMARY KEY (level, place)
);

-- How far each dataset's entries are in the log. The only table here that is updated.
CREATE TABLE merkle_cursors (
    dataset_id uuid CONSTRAINT pk_merkle_cursors PRIMARY KEY,
    entry_count bigint NOT NULL
);

-- Sizes of the log, and of its part of the dataset, at which certificates of the dataset were made: a later certificate
-- proves that both only grew since.
CREATE TABLE merkle_certified (
    dataset_id uuid NOT NULL,
    tree_size bigint NOT NULL,
    entry_count bigint NOT NULL,
    CONSTRAINT pk_merkle_certified PRIMARY KEY (dataset_id, tree_size)
);

CREATE TABLE signing_keys (
    number bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT pk_signing_keys PRIMARY KEY,
    id text NOT NULL CONSTRAINT uq_signing_keys_id UNIQUE,
    public_key bytea NOT NULL CONSTRAINT ck_signing_keys_public_key CHECK (length(public_key) = 32),
    endorsed_by text CONSTRAINT fk_signing_keys_endorsed_by_signing_keys REFERENCES signing_keys (id),
    endorsement bytea,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT ck_signing_keys_endorsement CHECK ((endorsed_by IS NULL) = (endorsement IS NULL))
);

CREATE TABLE tree_heads (
    tree_size bigint NOT NULL CONSTRAINT ck_tree_heads_tree_size CHECK (tree_size >= 0),
    key_id text NOT NULL CONSTRAINT fk_tree_heads_key_id_signing_keys REFERENCES signing_keys (id),
    timestamp_ms bigint NOT NULL,
    root_hash bytea NOT NULL CONSTRAINT ck_tree_heads_root_hash CHECK (length(root_hash) = 32),
    signature bytea NOT NULL CONSTRAINT ck_tree_heads_signature CHECK (length(signature) = 64),
    CONSTRAINT pk_tree_heads PRIMARY KEY (tree_size, key_id)
);
"""

APPEND_ONLY = "".join(
    f"""
CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}
    FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}
    FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
"""
    for table in ("merkle_leaves", "merkle_nodes", "merkle_certified", "signing_keys", "tree_heads")
)

FUNCTIONS = r"""
CREATE FUNCTION public.merkle_integrate() RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- Gives every committed entry that has no place yet the next one, and returns the size of the log. One at a time: the
-- lock is held until the transaction ends, so run it in one of its own.
DECLARE old_size bigint;
        new_size bigint;
        lower smallint := 0;
BEGIN
    -- A head must never speak of places that a crash could give anew: this commit is flushed, whatever the session says.
    PERFORM set_config('synchronous_commit', 'on', true);
    PERFORM pg_advisory_xact_lock(hashtextextended('imprimatur merkle log', 0));
    SELECT coalesce(max(l.leaf_index) + 1, 0) INTO old_size FROM public.merkle_leaves AS l;
    WITH fresh AS (
        SELECT e.dataset_id, e.seq, e.hash, row_number() OVER (ORDER BY e.dataset_id, e.seq) - 1 AS place
        FROM public.balances AS b
        LEFT JOIN public.merkle_cursors AS c ON c.dataset_id = b.dataset_id
        JOIN public.ledger_entries AS e ON e.dataset_id = b.dataset_id AND e.seq > coalesce(c.entry_count, 0)
        WHERE b.entry_count > coalesce(c.entry_count, 0)
    ), leaves AS (
        INSERT INTO public.merkle_leaves (leaf_index, dataset_id, seq)
            SELECT old_size + f.place, f.dataset_id, f.seq FROM fresh AS f
    ), nodes AS (
        INSERT INTO public.merkle_nodes (level, place, hash)
            SELECT 0, old_size + f.place, sha256('\x00'::bytea || f.hash) FROM fresh AS f
    ), cursors AS (
        INSERT INTO public.merkle_cursors AS c (dataset_id, entry_count)
            SELECT f.dataset_id, max(f.seq) FROM fresh AS f GROUP BY f.dataset_id
            ON CONFLICT (dataset_id) DO UPDATE SET entry_count = excluded.entry_count
    )
    SELECT old_size + count(*) INTO new_size FROM fresh;
    WHILE new_size > old_size AND new_size >> (lower + 1) > 0 LOOP
        INSERT INTO public.merkle_nodes (level, place, hash)
            SELECT lower + 1, above.place, sha256('\x01'::bytea || l.hash || r.hash)
            FROM generate_series(old_size >> (lower + 1), (new_size >> (lower + 1)) - 1) AS above (place)
            JOIN public.merkle_nodes AS l ON l.level = lower AND l.place = 2 * above.place
            JOIN public.merkle_nodes AS r ON r.level = lower AND r.place = 2 * above.place + 1;
        lower := lower + 1;
    END LOOP;
    RETURN new_size;
END $$;

CREATE FUNCTION public.merkle_certify(dataset uuid, OUT tree_size bigint, OUT entry_count bigint)
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- The size of the log for a certificate of this dataset, and how many of its entries are the dataset's. Noted under the
-- same lock: the next certificate sees it.
BEGIN
    tree_size := public.merkle_integrate();
    SELECT c.entry_count INTO entry_count FROM public.merkle_cursors AS c WHERE c.dataset_id = dataset;
    INSERT INTO public.merkle_certified VALUES (dataset, tree_size, entry_count) ON CONFLICT DO NOTHING;
END $$;

CREATE FUNCTION public.tree_head_is_possible() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
-- The role of the application cannot forge a signature, but could put a head here that no key signed.
BEGIN
    IF NEW.tree_size > (SELECT coalesce(max(l.leaf_index) + 1, 0) FROM public.merkle_leaves AS l)
       OR NEW.key_id IS DISTINCT FROM (SELECT k.id FROM public.signing_keys AS k ORDER BY k.number DESC LIMIT 1) THEN
        RAISE EXCEPTION 'a tree head is signed by the newest key, and speaks of a log that exists'
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE TRIGGER tree_heads_are_possible BEFORE INSERT ON tree_heads
    FOR EACH ROW EXECUTE FUNCTION public.tree_head_is_possible();

REVOKE ALL ON FUNCTION public.merkle_integrate, public.merkle_certify, public.tree_head_is_possible FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.merkle_integrate, public.merkle_certify TO imprimatur_app;
GRANT SELECT ON merkle_leaves, merkle_nodes, merkle_cursors, merkle_certified, signing_keys TO imprimatur_app;
GRANT SELECT, INSERT ON tree_heads TO imprimatur_app;
"""


def upgrade() -> None:
    for script in (TABLES, APPEND_ONLY, FUNCTIONS):
        op.get_bind().exec_driver_sql(script)
    op.get_bind().exec_driver_sql("SELECT public.merkle_integrate()")


def downgrade() -> None:
    raise RuntimeError("the log is never taken down; restore a backup instead")
