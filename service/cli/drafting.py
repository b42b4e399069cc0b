"""A first schema from a file, for its owner to correct. It reads the private rows, and says so in what it writes."""

from __future__ import annotations

import datetime as dt
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from service.datasets.cells import Cells
from service.datasets.ingest import ingest_table
from service.datasets.limits import IngestLimits
from service.datasets.reading import open_table
from service.datasets.table_schema import MAX_CATEGORIES

if TYPE_CHECKING:
    import polars as pl

    from service.datasets.table_schema import TableSchema

WARNING = (
    "DRAFT. The categories and bounds below were read from the data. A schema is public and no privacy budget protects "
    "it: declare what anybody may know of each column instead, then remove this description."
)
DAY_MICROSECONDS = 86_400_000_000


@dataclass
class _Column:
    """What the cells of one column have in common, chunk by chunk."""

    name: str
    texts: set[str] = field(default_factory=set)
    missing: bool = False
    booleans: bool = True
    whole: bool = True
    numbers: bool = True
    moments: bool = True
    midnights: bool = True
    low: float | None = None
    high: float | None = None

    def add(self, raw: pl.Series) -> None:
        cells = Cells(raw)
        absent = cells.missing([""])
        present = Cells(cells.text.filter(~absent))
        self.missing = self.missing or bool(absent.any())
        if len(present.text) == 0:
            return
        if len(self.texts) <= MAX_CATEGORIES:
            self.texts |= set(present.text.unique().to_list())
        self.booleans = self.booleans and bool(present.text.str.to_lowercase().is_in(["true", "false"]).all())
        self.whole = self.whole and present.whole.null_count() == 0
        self.numbers = self.numbers and bool(present.number.is_finite().fill_null(value=False).all())
        self.moments = self.moments and not self.numbers and present.moment.null_count() == 0
        if self.numbers:
            self._widen(present.number)
        elif self.moments:
            self.midnights = self.midnights and bool((present.moment % DAY_MICROSECONDS == 0).all())
            self._widen(present.moment)

    @property
    def is_open_text(self) -> bool:
        """More different texts than any schema may list."""
        return len(self.texts) > MAX_CATEGORIES and not self.numbers and not self.moments

    def as_field(self, max_categories: int) -> dict[str, Any]:
        """The column's part of the draft."""
        kind, constraints = self._domain(max_categories)
        drafted: dict[str, Any] = {"name": self.name, "type": kind}
        if not self.missing:
            constraints["required"] = True
        if constraints:
            drafted["constraints"] = constraints
        if kind == "string" and len(self.texts) > max_categories:
            drafted["description"] = f"DRAFT: {len(self.texts)} categories; fewer, broader ones are learnt better."
        return drafted

    def _domain(self, max_categories: int) -> tuple[str, dict[str, Any]]:
        if not self.texts:
            return "string", {"enum": ["DECLARE THE CATEGORIES"]}
        if self.booleans:
            return "boolean", {}
        if self.moments and self.low is not None and self.high is not None:
            return self._moment_domain(self.low, self.high)
        if self.numbers and self.low is not None and self.high is not None:
            return self._number_domain(self.low, self.high, max_categories)
        return "string", {"enum": sorted(self.texts)}

    def _number_domain(self, low: float, high: float, max_categories: int) -> tuple[str, dict[str, Any]]:
        if self.whole:
            values = {int(float(text)) for text in self.texts}
            if len(values) <= max_categories:
                return "integer", {"enum": sorted(values)}
            return "integer", {"minimum": int(low), "maximum": int(high)}
        return "number", {"enum": [low]} if low == high else {"minimum": low, "maximum": high}

    def _moment_domain(self, low: float, high: float) -> tuple[str, dict[str, Any]]:
        epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
        first, last = (epoch + dt.timedelta(microseconds=int(at)) for at in (low, high))
        if self.midnights:
            last = max(last, first + dt.timedelta(days=1))
            return "date", {"minimum": first.date().isoformat(), "maximum": last.date().isoformat()}
        last = max(last + dt.timedelta(seconds=1), first + dt.timedelta(seconds=1)).replace(microsecond=0)
        texts = [moment.replace(microsecond=0, tzinfo=None).isoformat() for moment in (first, last)]
        return "datetime", {"minimum": texts[0], "maximum": texts[1]}

    def _widen(self, values: pl.Series) -> None:
        low, high = float(values.min()), float(values.max())  # type: ignore[arg-type] # numbers, not null
        self.low = low if self.low is None else min(low, self.low)
        self.high = high if self.high is None else max(high, self.high)


def draft_schema(file: Path, *, max_categories: int) -> dict[str, Any]:
    """A Table Schema that fits this very file, with its warning."""
    table = open_table(file, IngestLimits())
    columns = [_Column(name) for name in table.names]
    for chunk in table.chunks():
        for column in columns:
            column.add(chunk[column.name])
    too_many = [column.name for column in columns if column.is_open_text]
    warning = WARNING
    if too_many:
        warning += (
            f" LEFT OUT, more than {MAX_CATEGORIES} different texts: {', '.join(too_many)}. Remove such a column from "
            "the file, group its values, or name it as the privacy unit."
        )
    fields = [column.as_field(max_categories) for column in columns if column.name not in too_many]
    return {"description": warning, "fields": fields, "missingValues": [""]}


def check_table(file: Path, schema: TableSchema) -> dict[str, Any]:
    """Read the whole file by the schema, as an upload would, and keep nothing."""
    with tempfile.TemporaryDirectory(prefix="imprimatur-check-") as folder:
        table = ingest_table(
            file,
            schema,
            privacy_unit=None,
            limits=IngestLimits(),
            workdir=Path(folder),
            fingerprint_key=bytes(32),
        )
    return {"rows": table.rows, "notices": list(table.notices)}
