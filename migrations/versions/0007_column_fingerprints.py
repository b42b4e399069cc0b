"""Columns have fingerprints without names, so that the same rows are recognised in a table that was changed a little.

Revision: 0007; follows 0006.

Processes of the version before write none: what they take in, and every dataset from before, is recognised by whole rows alone.
"""

from alembic import op

revision = "0007"
down_revision = "0006"

UP = """
CREATE TABLE dataset_column_fingerprints (
    dataset_id uuid NOT NULL
        CONSTRAINT fk_dataset_column_fingerprints_dataset_id_datasets REFERENCES datasets,
    fingerprint bytea NOT NULL,
    place integer NOT NULL CONSTRAINT ck_dataset_column_fingerprints_place CHECK (place >= 0),
    column_count integer NOT NULL CONSTRAINT ck_dataset_column_fingerprints_column_count CHECK (column_count >= 0),
    CONSTRAINT pk_dataset_column_fingerprints PRIMARY KEY (dataset_id, fingerprint)
);
CREATE INDEX ix_dataset_column_fingerprints_fingerprint ON dataset_column_fingerprints (fingerprint);
GRANT SELECT, INSERT ON dataset_column_fingerprints TO imprimatur_app;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute("DROP TABLE dataset_column_fingerprints")
