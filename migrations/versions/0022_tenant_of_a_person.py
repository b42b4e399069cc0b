"""The tenant of who signs in by OpenID Connect: looked up by name, by a role that sees no list of tenants.

Revision: 0022; follows 0021. Expand: the version before works on beside it and knows nothing of the function.
"""

from alembic import op

revision = "0022"
down_revision = "0021"

FUNCTION = """
CREATE FUNCTION public.tenant_named(wanted text) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
    SELECT t.id FROM public.tenants AS t WHERE t.name = wanted
$$;
REVOKE ALL ON FUNCTION public.tenant_named FROM PUBLIC;
GRANT EXECUTE ON FUNCTION public.tenant_named TO imprimatur_api;
"""


def upgrade() -> None:
    op.get_bind().exec_driver_sql(FUNCTION)


def downgrade() -> None:
    raise RuntimeError("the ledger is never taken down; restore a backup instead")
