"""A dataset of one image, where one unit is a part of it (`pixel_unit` of its schema); of all others two units are needed, as before.

Revision: 0023; follows 0022. Expand: the version before stores no such schema, and what it stores meets the new rule.
"""

from alembic import op

revision = "0023"
down_revision = "0022"

RULE = """
ALTER TABLE public.datasets
    DROP CONSTRAINT ck_datasets_units,
    ADD CONSTRAINT ck_datasets_units CHECK (units >= CASE WHEN schema ? 'pixel_unit' THEN 1 ELSE 2 END);
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(RULE)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
