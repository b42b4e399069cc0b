"""A whole publish without noise, on this machine: draft, check, encode, measure, sample. For tests alone; nothing of it is private."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from service.domain.table_schema import TableSchema, parse_table_schema
from service.intake.ingest import ingest_table
from service.intake.limits import IngestLimits
from service.intake.sealed import SealedFile
from service.intake.table.draft import draft_schema
from service.methods.marginals.order import MarginalsOrder
from service.methods.marginals.price import marginals_events
from service.samples import row_streams
from service.samples.request import Wanted
from service.samples.table.sampler import TableSampler
from tests.runs import train
from workers.encoding.table import TableDomain, encode_table
from workers.generators.table.bundle import table_files
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from torch import Tensor

ALMOST_NONE = 1e-6
"""A noise multiplier, so that counts are taken for exact, as they are under `NoNoise`."""


class NoNoise(SecureRandom):
    """Zeros where noise is drawn."""

    def __init__(self, *, is_private: bool = False) -> None:
        super().__init__()
        self.is_private = is_private

    def discrete_gaussian(
        self, *shape: int, variance: float, fractions: Tensor | None = None, device: torch.device | None = None
    ) -> Tensor:
        del variance, fractions
        return torch.zeros(shape, dtype=torch.int64, device=device)


class Published(NamedTuple):
    """Synthetic rows as CSV has them, by column; and what the owner was told at the upload."""

    columns: dict[str, list[str]]
    notices: tuple[str, ...]
    schema: TableSchema


def publish(path: Path, schema: dict[str, Any] | None = None, *, rows: int = 4_000) -> Published:
    """Of a file and its drafted schema, or this one."""
    declared = parse_table_schema(json.loads(json.dumps(draft_schema(path) if schema is None else schema)))
    with (
        SealedFile.in_the_clear(path) as upload,
        ingest_table(
            upload,
            declared,
            privacy_unit=None,
            limits=IngestLimits(),
            scratch_dir=path.parent,
            fingerprint_key=bytes(32),
        ) as table,
    ):
        order = MarginalsOrder.model_validate(
            {"method": "marginals", "epsilon": 1.0, "device": "cpu", "pairs": "none", "tree_precision_share": 0.01}
        )
        domain = TableDomain.from_schema(declared, numeric_bins=order.numeric_bins)
        encoded = encode_table(table.canonical.reader(), domain, units=table.units, with_places=True)
        notices = table.notices
    plan = Plan(marginals_events(order, noise_multiplier=ALMOST_NONE))
    made = train(order, plan, encoded, domain, NoNoise())
    files = table_files(
        made.generator,
        made.domain,
        noise_dimension=made.noise_dimension,
        condition_index=made.condition_index,
        condition_frequencies=made.condition_frequencies,
        schema=declared,
        certificate={},
        order={"method": "marginals"},
    )
    sampler = TableSampler.from_files(json.loads(files["config.json"]), files["generator.onnx"])
    content = b"".join(row_streams.csv(sampler, Wanted(rows=rows, seed=1, where=None)))
    header, *lines = csv.reader(io.StringIO(content.decode(), newline=""))
    return Published({name: [line[at] for line in lines] for at, name in enumerate(header)}, notices, declared)


def table_of(columns: dict[str, Sequence[str]]) -> str:
    """CSV."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
