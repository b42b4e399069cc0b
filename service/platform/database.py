"""The connection to Postgres: one engine a process, short transactions, migrations from `migrations/`."""

from __future__ import annotations

import datetime as dt
import importlib.resources
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import psycopg
from sqlalchemy import Connection, Engine, MetaData, create_engine, event, func
from sqlalchemy.exc import ArgumentError, DBAPIError, DisconnectionError, InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import DeclarativeBase, Session, sessionmaker
from sqlalchemy.pool import QueuePool

from service.base.errors import Unavailable
from service.base.lazy import lazy
from service.platform.reasons import NO_RIGHT, NOT_MIGRATED, database_reason, is_not_set_up, tell
from service.platform.settings import Settings, get_settings

if TYPE_CHECKING:
    from alembic import command, config, script
else:
    command, config, script = lazy("alembic.command"), lazy("alembic.config"), lazy("alembic.script")

Mode = Literal["write", "statement", "snapshot"]
_MODES: dict[Mode, dict[str, Any]] = {
    "write": {},
    "statement": {"isolation_level": "AUTOCOMMIT"},
    "snapshot": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}


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
    engine = create_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=5,
        connect_args={"connect_timeout": 5, "options": "-c lock_timeout=10000 -c timezone=UTC"},
    )
    event.listen(engine, "checkout", _refuse_closed)
    return engine


def _refuse_closed(connection: psycopg.Connection[Any], *_: object) -> None:
    """A server that has gone has closed the socket. To look costs nothing; to ask would be a round trip a time.

    An idle connection has nothing to read but the end of the stream or the server's farewell.
    """
    if not connection.closed:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if not poll.poll(0):
            return
    raise DisconnectionError("the server has closed this connection")


@lru_cache
def _session_factory(url: str, pool_size: int, mode: Mode) -> sessionmaker[Session]:
    return sessionmaker(get_engine(url, pool_size).execution_options(**_MODES[mode]), expire_on_commit=False)


@contextmanager
def transaction(settings: Settings | None = None, mode: Mode = "write") -> Iterator[Session]:
    """One transaction: commits at the end, rolls back on any error. A database that does not answer is `Unavailable`."""
    settings = settings or get_settings()
    try:
        with _session_factory(settings.database_url, settings.database_pool_size, mode).begin() as session:
            yield session
    except (OperationalError, InterfaceError, PoolTimeout, ArgumentError) as error:
        raise _unavailable(error, settings) from error
    except DBAPIError as error:
        if error.connection_invalidated or getattr(error.orig, "sqlstate", None) in NOT_MIGRATED:
            raise _unavailable(error, settings) from error
        if is_not_set_up(error):
            tell("database", database_reason(error, settings.database_url))
        raise


@contextmanager
def driver(settings: Settings) -> Iterator[psycopg.Connection[Any]]:
    """A pooled connection as the driver knows it; each statement is a transaction by itself. Errors are the driver's.

    For the few statements of every order and every look at a budget: through the ORM they take ten times the processor
    time of the driver's own (measured: 0.7 ms against 0.06), and that is what limits an API process. To take a connection
    from the pool and give it back takes as long as a statement: see `kept_connection`.
    """
    kept: _Kept | None = getattr(_thread, "kept", None)
    held = kept or _Kept()
    try:
        try:
            yield held.take(settings)
        except (psycopg.OperationalError, psycopg.InterfaceError):
            held.throw_away()
            raise
        finally:
            if held is not kept:
                held.give_back()
    except (psycopg.OperationalError, psycopg.InterfaceError, OperationalError, InterfaceError, PoolTimeout) as error:
        raise _unavailable(error, settings) from error
    except (ArgumentError, psycopg.ProgrammingError) as error:
        if isinstance(error, ArgumentError) or error.sqlstate in NOT_MIGRATED:
            raise _unavailable(error, settings) from error
        if is_not_set_up(error):
            tell("database", database_reason(error, settings.database_url))
        raise


@contextmanager
def kept_connection() -> Iterator[None]:
    """Here `driver` gives this thread the same connection every time, out of the pool until it breaks or the block ends.

    For threads that do nothing else, and are fewer than the connections.
    """
    _thread.kept = kept = _Kept()
    try:
        yield
    finally:
        del _thread.kept
        kept.give_back()


_thread = threading.local()


class _Kept:
    """A connection taken from the pool, if there is one."""

    def __init__(self) -> None:
        self._pooled: Connection | None = None

    def take(self, settings: Settings) -> psycopg.Connection[Any]:
        """A connection whose server has not gone; the same one as before where that is still so."""
        if self._pooled is not None:
            try:
                _refuse_closed(self._driver())
            except DisconnectionError:
                self.throw_away()
        if self._pooled is None:
            self._pooled = _autocommit(settings.database_url, settings.database_pool_size).connect()
        return self._driver()

    def throw_away(self) -> None:
        """Close it; the pool may open another."""
        if self._pooled is not None:
            self._pooled.invalidate()
        self.give_back()

    def give_back(self) -> None:
        if self._pooled is not None:
            self._pooled.close()
        self._pooled = None

    def _driver(self) -> psycopg.Connection[Any]:
        return self._pooled.connection.driver_connection  # type: ignore[return-value, union-attr]  # psycopg's, as the URL says


@lru_cache
def _autocommit(url: str, pool_size: int) -> Engine:
    return get_engine(url, pool_size).execution_options(isolation_level="AUTOCOMMIT")


def pool_state(settings: Settings) -> tuple[int, int]:
    """How many connections of this process are in use, and how many there may be."""
    pool = get_engine(settings.database_url, settings.database_pool_size).pool
    return (pool.checkedout() if isinstance(pool, QueuePool) else 0), settings.database_pool_size


def _unavailable(error: Exception, settings: Settings) -> Unavailable:
    """Why, goes to the log; callers learn that it does not answer."""
    tell("database", database_reason(error, settings.database_url))
    # It may have happened nevertheless, when the answer was lost and not the question.
    return Unavailable(
        "the database does not answer; ask again, an order with its Idempotency-Key", retry_after_seconds=5
    )


def statement(settings: Settings | None = None) -> AbstractContextManager[Session]:
    """A session for one statement, which is a transaction by itself: one round trip, where `transaction` takes three.

    A lock it takes is held while the server works, never while a thread of ours waits for its turn. Several statements
    in it are several transactions.
    """
    return transaction(settings, "statement")


def snapshot(settings: Settings | None = None) -> AbstractContextManager[Session]:
    """A transaction that sees one moment of the whole database, changes nothing and holds up no writer."""
    return transaction(settings, "snapshot")


def migrate(database_url: str, revision: str = "head") -> None:
    """Bring the schema of the owning role's URL to `revision`. A database that does not answer is `Unavailable`."""
    try:
        command.upgrade(alembic_config(database_url), revision)
    except (OperationalError, ArgumentError) as error:
        raise Unavailable(database_reason(error, database_url).sentence) from None
    except DBAPIError as error:
        if getattr(error.orig, "sqlstate", None) != NO_RIGHT:
            raise
        raise Unavailable(
            "The owning role lacks a right that a migration needs: it must own the database and may make roles (CREATEROLE)."
            f" Postgres says: {str(error.orig).splitlines()[0]}"
        ) from None


def newest_revision() -> str:
    """The newest revision of the migrations that come with this program."""
    found = script.ScriptDirectory.from_config(alembic_config("")).get_current_head()
    return str(found)


def alembic_config(database_url: str) -> config.Config:
    """Alembic's configuration without an ini file: where the migrations lie and which database they change."""
    made = config.Config()
    made.set_main_option("script_location", str(Path(str(importlib.resources.files("migrations")))))
    made.attributes["database_url"] = database_url
    return made


def database_time(session: Session) -> dt.datetime:
    """Now, by the one clock that all machines share."""
    found: dt.datetime = session.execute(func.clock_timestamp()).scalar_one()
    return found.astimezone(dt.UTC)


def main() -> None:
    """`python -m service.platform.database [REVISION]`: migrate the database of the owning role, as far as the newest revision."""
    settings = get_settings()
    try:
        migrate(settings.migration_database_url or settings.database_url, *sys.argv[1:2])
    except Unavailable as error:
        sys.exit(f"not migrated. {error.detail}")


if __name__ == "__main__":
    main()
