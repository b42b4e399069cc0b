"""The rows of an attempt's dataset: decrypted and encoded in memory, when a run asks for them and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeVar

from service.base.errors import InvalidFile, NotFound, Tampered
from service.datasets.stored_objects import is_from_before
from service.domain.alike import read_by
from service.domain.image_schema import ImageSchema
from service.methods.catalogue import method_of
from service.platform.crypto import HEADER_BYTES, decrypt, is_header_of, open_decrypted
from workers.encoding.images import EncodedImages, encode_images
from workers.encoding.table import EncodedTable, TableDomain, encode_table, names_units
from workers.encoding.values import TableValues, read_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from service.datasets.models import Dataset
    from service.methods.knobs import Order
    from service.platform.context import Context

Answer = TypeVar("Answer")


class Attempt(Protocol):
    """What reading rows needs of an attempt."""

    context: Context
    dataset: Dataset
    public: Dataset | None

    def patiently(self, action: Callable[[], Answer]) -> Answer: ...

    def data_key(self) -> bytes: ...


class PublicRows:
    """An attempt's public dataset, read as its own is, under its own key."""

    def __init__(self, attempt: Attempt, dataset: Dataset) -> None:
        self._attempt = attempt
        self.context, self.dataset = attempt.context, dataset
        self.public: Dataset | None = None

    def patiently(self, action: Callable[[], Answer]) -> Answer:
        return self._attempt.patiently(action)

    def data_key(self) -> bytes:
        if self.dataset.wrapped_data_key is None:
            raise NotFound("the rows were erased")
        return self.context.secrets.unwrap_data_key(bytes(self.dataset.wrapped_data_key), self.dataset.id)


class StoredRows:
    """The rows or images of an attempt's dataset, decrypted when a run asks for them."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._dataset = attempt.dataset
        self._public_tables: dict[int, tuple[EncodedTable, TableDomain]] = {}
        """Public rows, by how many bins they were read: the tries of a choice all begin from them."""
        self._public_images: EncodedImages | None = None

    def are_its_own(self) -> bool:
        """Whether what lies there was stored under its name and unit, as were the public rows of the order: asked before the charge.

        Who writes to the database names objects, and who writes to the store copies them. Nothing is decrypted.
        """
        return self._is_bound() and (self._attempt.public is None or self._public()._is_bound())  # noqa: SLF001 - another of this class

    def _is_bound(self) -> bool:
        if is_from_before(self._name):
            return True
        storage = self._attempt.context.storage
        if storage.size(self._name) < HEADER_BYTES:
            return False
        header = storage.read_range(self._name, 0, HEADER_BYTES)
        try:
            return is_header_of(header, self._attempt.data_key(), context=self._dataset.rows_context)
        except Tampered:  # its wrapped key is not its own
            return False

    @property
    def holds_images(self) -> bool:
        return self._dataset.image_schema is not None

    def table(self, *, numeric_bins: int, with_places: bool = False) -> tuple[EncodedTable, TableDomain]:
        domain = TableDomain.from_schema(self._dataset.table_schema, numeric_bins=numeric_bins)
        return self._attempt.patiently(lambda: self._encoded(domain, with_places=with_places)), domain

    def _encoded(self, domain: TableDomain, *, with_places: bool) -> EncodedTable:
        """Decrypt and encode a table group by group; large codes lie in a scratch file without a name."""
        attempt, dataset, unit = self._attempt, self._dataset, self._dataset.unit
        return encode_table(
            self._rows(),
            domain,
            units=dataset.units,
            max_rows_per_unit=1 if unit is None else unit.most,
            scratch_dir=attempt.context.settings.scratch_dir,
            with_places=with_places,
        )

    def values(self, names: Sequence[str]) -> TableValues:
        dataset, unit = self._dataset, self._dataset.unit
        most = 1 if unit is None else unit.most
        return self._attempt.patiently(
            lambda: read_values(
                self._rows(), dataset.table_schema.modelled, names, units=dataset.units, max_rows_per_unit=most
            )
        )

    def _rows(self) -> BinaryIO:
        key, storage = self._name, self._attempt.context.storage
        rows = open_decrypted(
            lambda start, stop: storage.read_range(key, start, stop),
            storage.size(key),
            self._attempt.data_key(),
            context=self._dataset.rows_context,
        )
        # Who writes to the database may say of rows that are units that all rows of a person are one: certificates would repeat it.
        if names_units(rows) != (self._dataset.unit is not None):
            raise InvalidFile("The stored rows are not grouped by the declared privacy unit; upload them again.")
        return rows

    def _pieces(self) -> Iterator[bytes]:
        """The canonical file, decrypted piece by piece. Plain data exist in this process's memory only."""
        pieces = self._attempt.context.storage.stream(self._name)
        return decrypt(pieces, self._attempt.data_key(), context=self._dataset.rows_context)

    @property
    def _name(self) -> str:
        if self._dataset.storage_key is None:
            raise NotFound("the rows were erased")
        return self._dataset.storage_key

    def keep_public(self, order: Order) -> None:
        """Read the public rows that the order begins from, and no other. They stay at hand, whatever becomes of them meanwhile."""
        if self.holds_images:
            self._public_images = self.public_images()
            return
        for bins in method_of(order).public_bins(order):
            self.public_table(numeric_bins=bins)

    def drop_public(self) -> None:
        """No run needs them any more."""
        self._public_tables, self._public_images = {}, None

    def public_images(self) -> EncodedImages:
        return self._public().images() if self._public_images is None else self._public_images

    def public_table(self, *, numeric_bins: int) -> tuple[EncodedTable, TableDomain]:
        if numeric_bins in self._public_tables:
            return self._public_tables[numeric_bins]
        public = self._public()
        schema = read_by(public._dataset.table_schema, self._dataset.table_schema)  # noqa: SLF001 - another of this class
        domain = TableDomain.from_schema(schema, numeric_bins=numeric_bins)
        rows = self._attempt.patiently(lambda: public._encoded(domain, with_places=False))  # noqa: SLF001
        self._public_tables[numeric_bins] = rows, domain
        return rows, domain

    def _public(self) -> StoredRows:
        """Of the public dataset that the order names, which the attempt has looked up and found declared public."""
        if self._attempt.public is None:
            raise NotFound("this order has no public dataset")
        return StoredRows(PublicRows(self._attempt, self._attempt.public))

    def images(self) -> EncodedImages:
        attempt, dataset = self._attempt, self._dataset
        schema, unit = ImageSchema.model_validate(dataset.schema), dataset.unit
        most = None if unit is None else unit.most
        return attempt.patiently(
            lambda: encode_images(self._pieces(), schema, units=dataset.units, max_images_per_unit=most)
        )
