"""The connection to Postgres: one engine a process, short transactions, migrations from `migrations/`."""

from __future__ import annotations

import importlib.resources
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import alembic.command
import alembic.config
from sqlalchemy import Engine, MetaData, create_engine
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker

from service.errors import Unavailable
from service.settings import Settings, get_settings


class Base(DeclarativeBase):
    """Every table; constraint names are fixed so that migrations and errors can name them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


@lru_cache
def get_engine(url: str, pool_size: int = 10) -> Engine:
    """The engine for a URL; waits at most five seconds for a connection or a lock."""
    return create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=5,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 5, "options": "-c lock_timeout=10000 -c timezone=UTC"},
    )


@contextmanager
def transaction(settings: Settings | None = None, **options: Any) -> Iterator[Session]:
    """One transaction: commits at the end, rolls back on any error. A database that does not answer is `Unavailable`.

    `options` are SQLAlchemy's execution options of the engine.
    """
    settings = settings or get_settings()
    engine = get_engine(settings.database_url, settings.database_pool_size)
    factory = sessionmaker(engine.execution_options(**options) if options else engine, expire_on_commit=False)
    try:
        with factory.begin() as session:
            yield session
    except (OperationalError, InterfaceError, PoolTimeout) as error:
        raise Unavailable("the database does not answer; nothing was changed", retry_after_seconds=5) from error
    except DBAPIError as error:
        if error.connection_invalidated:
            raise Unavailable("the database connection was lost; ask again", retry_after_seconds=5) from error
        raise


def snapshot(settings: Settings | None = None) -> AbstractContextManager[Session]:
    """A transaction that sees one moment of the whole database, changes nothing and holds up no writer."""
    return transaction(settings, isolation_level="REPEATABLE READ", postgresql_readonly=True)


def migrate(database_url: str, revision: str = "head") -> None:
    """Bring the schema of the owning role's URL to `revision`."""
    alembic.command.upgrade(alembic_config(database_url), revision)


def alembic_config(database_url: str) -> alembic.config.Config:
    """Alembic's configuration without an ini file: where the migrations lie and which database they change."""
    config = alembic.config.Config()
    config.set_main_option("script_location", str(Path(str(importlib.resources.files("migrations")))))
    config.attributes["database_url"] = database_url
    return config


def main() -> None:
    """`python -m service.db [REVISION]`: migrate the database of the owning role, as far as the newest revision."""
    settings = get_settings()
    migrate(settings.migration_database_url or settings.database_url, *sys.argv[1:2])


if __name__ == "__main__":
    main()
