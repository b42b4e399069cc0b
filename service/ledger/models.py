"""The two tables of the ledger: balances that move, entries that never change."""

from __future__ import annotations

import datetime as dt
import uuid

from sqlalchemy import BigInteger, DateTime, LargeBinary, Text
from sqlalchemy.orm import Mapped, mapped_column

from service.platform.database import Base


class Balance(Base):
    """Both accounts of one dataset, in nano-shares, and the head of its hash chain."""

    __tablename__ = "balances"

    dataset_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    simple_pending: Mapped[int] = mapped_column(BigInteger)
    simple_posted: Mapped[int] = mapped_column(BigInteger)
    renyi_pending: Mapped[int] = mapped_column(BigInteger)
    renyi_posted: Mapped[int] = mapped_column(BigInteger)
    entry_count: Mapped[int] = mapped_column(BigInteger)
    head_hash: Mapped[bytes] = mapped_column(LargeBinary)


class LedgerEntry(Base):
    """One line: what happened to one release's cost. Append-only, chained by hash within its dataset."""

    __tablename__ = "ledger_entries"

    dataset_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    seq: Mapped[int] = mapped_column(BigInteger, primary_key=True)
    release_id: Mapped[uuid.UUID]
    kind: Mapped[str] = mapped_column(Text)
    simple: Mapped[int] = mapped_column(BigInteger)
    renyi: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))
    previous_hash: Mapped[bytes] = mapped_column(LargeBinary)
    hash: Mapped[bytes] = mapped_column(LargeBinary)
