"""Alembic's entry: runs migrations on the URL handed over by `service.platform.database.alembic_config`."""

from alembic import context
from sqlalchemy import create_engine, pool

from service.platform.database import Base

context.config.attributes.setdefault("database_url", context.get_x_argument(as_dictionary=True).get("url"))
engine = create_engine(context.config.attributes["database_url"], poolclass=pool.NullPool)
with engine.connect() as connection:
    context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True)
    with context.begin_transaction():
        # Two processes that start together must not migrate together.
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(7061)")
        context.run_migrations()
engine.dispose()
