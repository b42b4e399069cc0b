"""A dataset: its public declaration, its promise, and where its encrypted rows lie."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any

from sqlalchemy import BigInteger, DateTime, LargeBinary, Text, false, func
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, column_property, mapped_column

from service.datasets.promise import promised
from service.datasets.stored_objects import context_of_rows
from service.domain.image_schema import DeclaredSchema, ImageSchema, is_image_schema
from service.domain.privacy_unit import DeclaredUnit, parse_privacy_unit
from service.domain.table_schema import TableSchema
from service.platform.database import Base
from service.privacy.filters import Budget


class DatasetFingerprint(Base):
    """Rows that have a budget (`fingerprint.py`): with the declared missing values, and as they are written where that differs."""

    __tablename__ = "dataset_fingerprints"

    fingerprint: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    dataset_id: Mapped[uuid.UUID]


class DatasetColumnFingerprint(Base):
    """A column of rows that have a budget, without its name (`column_fingerprint.py`); place 0: whole rows without names."""

    __tablename__ = "dataset_column_fingerprints"

    dataset_id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    fingerprint: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    place: Mapped[int]
    column_count: Mapped[int]


class Dataset(Base):
    """One uploaded table or set of images. The rows can be erased; this row and the ledger stay."""

    __tablename__ = "datasets"

    id: Mapped[uuid.UUID] = mapped_column(primary_key=True)
    tenant_id: Mapped[uuid.UUID]
    name: Mapped[str] = mapped_column(Text)
    schema: Mapped[dict[str, Any]] = mapped_column(JSONB)
    privacy_unit: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    units: Mapped[int] = mapped_column(BigInteger)
    epsilon: Mapped[float]
    delta: Mapped[float]
    renyi_order: Mapped[int]
    renyi_capacity: Mapped[float]
    storage_key: Mapped[str | None] = mapped_column(Text)
    wrapped_data_key: Mapped[bytes | None] = mapped_column(LargeBinary)
    created_at: Mapped[dt.datetime] = mapped_column(DateTime(timezone=True))
    erased_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))
    rows_expire_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))
    is_past_its_date: Mapped[bool] = column_property(func.coalesce(rows_expire_at <= func.clock_timestamp(), false()))
    """When it was read, by the database's clock: this machine's may be wrong."""
    declared_at: Mapped[dt.datetime | None] = mapped_column(DateTime(timezone=True))
    """When the declaration was replaced; None while it is the first."""
    upload_key: Mapped[str | None] = mapped_column(Text)
    """Where the upload lies as it came, until the first charge: only it has the columns that the declaration left out."""
    wrapped_upload_key: Mapped[bytes | None] = mapped_column(LargeBinary)
    upload_key_id: Mapped[uuid.UUID | None]
    """The API key that sent it; no other may have it read again, whose holder may never have had the rows."""
    upload_reads: Mapped[int]
    rows_are_public: Mapped[bool]
    """The owner's word at the upload; the database lets it never change."""
    idempotency_key: Mapped[str | None] = mapped_column(Text)
    """Of the request that made it and orders a release besides (`POST /v1/publish`); sent again, that goes on with this dataset."""
    order_digest: Mapped[bytes | None] = mapped_column(LargeBinary)
    """Of the order in that request: with another one it does not go on."""

    @property
    def table_schema(self) -> TableSchema:
        return TableSchema.model_validate(self.schema)

    @property
    def declared_schema(self) -> DeclaredSchema:
        """The declared schema, of a table or of images."""
        return self.image_schema or self.table_schema

    @property
    def image_schema(self) -> ImageSchema | None:
        """The declared schema of images; None where the dataset is a table."""
        return ImageSchema.model_validate(self.schema) if is_image_schema(self.schema) else None

    @property
    def unit(self) -> DeclaredUnit | None:
        return None if self.privacy_unit is None else parse_privacy_unit(self.privacy_unit)

    @property
    def rows_context(self) -> str:
        """The encryption context of its stored rows; of none, once they are erased."""
        return context_of_rows(self.storage_key or "", self.unit)

    @property
    def budget(self) -> Budget:
        return promised(self.epsilon, self.delta, self.renyi_order, self.renyi_capacity)

    @property
    def state(self) -> str:
        """From their deletion date on nothing uses the rows, even before the sweep has destroyed them."""
        return "erased" if self.erased_at is not None or self.is_past_its_date else "ready"
