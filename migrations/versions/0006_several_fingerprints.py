"""A dataset may have two fingerprints: of its rows with the declared missing values, and as they are written.

Revision: 0006; follows 0005.

Processes of the version before refuse uploads (with an error, nothing is kept) until they are replaced.
"""

from alembic import op

revision = "0006"
down_revision = "0005"

UP = """
CREATE TABLE dataset_fingerprints (
    fingerprint bytea CONSTRAINT pk_dataset_fingerprints PRIMARY KEY,
    dataset_id uuid NOT NULL CONSTRAINT fk_dataset_fingerprints_dataset_id_datasets REFERENCES datasets
);
INSERT INTO dataset_fingerprints SELECT fingerprint, id FROM datasets;
ALTER TABLE datasets DROP COLUMN fingerprint;
GRANT SELECT, INSERT ON dataset_fingerprints TO imprimatur_app;
"""

DOWN = """
ALTER TABLE datasets ADD COLUMN fingerprint bytea CONSTRAINT uq_datasets_fingerprint UNIQUE;
UPDATE datasets SET fingerprint =
    (SELECT fingerprint FROM dataset_fingerprints WHERE dataset_id = datasets.id ORDER BY fingerprint LIMIT 1);
ALTER TABLE datasets ALTER COLUMN fingerprint SET NOT NULL;
DROP TABLE dataset_fingerprints;
"""


def upgrade() -> None:
    op.execute(UP)


def downgrade() -> None:
    op.execute(DOWN)
