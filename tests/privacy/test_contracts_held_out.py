"""A report with held-out units on neighbouring rows: a unit moves the tables or the answers, never both, and by no more than is said."""

from __future__ import annotations

import json
import uuid
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from service.domain.table_schema import parse_table_schema
from service.methods.catalogue import parse_order
from service.privacy.events import GaussianEvent
from tests.exact_changes import squared_change
from tests.forced_outputs import Outputs, heard
from tests.neighbouring_tables import neighbours
from tests.tiny_mixtures import mixture_files
from workers.encoding.table import EncodedTable
from workers.held_out import Split
from workers.mechanism.secure_random import SecureRandom
from workers.plan import Plan
from workers.reports import accuracy, charged
from workers.reports.rows import domain_of, draw_frame
from workers.sources import GivenTable

if TYPE_CHECKING:
    import polars as pl

SCHEMA = {
    "fields": [
        {"name": "kind", "type": "string", "constraints": {"enum": ["a", "b", "c"], "required": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
        {"name": "open", "type": "boolean", "constraints": {"required": True}},
    ],
    "target": "kind",
}
PARSED = parse_table_schema(SCHEMA)
DOMAIN = domain_of(PARSED)
UNITS, RELEASE, NOISE = 24, uuid.UUID(int=7), 3.0
ORDER: Any = parse_order({"method": "marginals", "epsilon": 1.0, "report": {"held_out": 0.5}})
SPLIT = Split.of(ORDER, RELEASE)


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    width = sum(column.size for column in DOMAIN.columns)
    logits = 2.0 * torch.randn(1, 4, width, generator=torch.Generator().manual_seed(1))
    config, network = mixture_files(SCHEMA, logits, numeric_bins=32)
    return {"config.json": json.dumps(config).encode(), "generator.onnx": network}


@pytest.fixture(autouse=True)
def same_synthetic_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are drawn by coins of their own, and here twice the same."""
    monkeypatch.setattr(charged, "SYNTHETIC_ROWS", 500)
    drawn: list[pl.DataFrame] = []

    def draw(bundle: bytes, rows: int) -> pl.DataFrame:
        if not drawn:
            drawn.append(draw_frame(bundle, rows))
        return drawn[0]

    monkeypatch.setattr(charged, "draw_frame", draw)


def table_of(rows_per_unit: int, most: int) -> EncodedTable:
    random = np.random.default_rng(2)
    rows = UNITS * rows_per_unit
    codes = np.stack([random.integers(width, size=rows) for width in DOMAIN.widths], axis=1).astype(np.uint16)
    starts = None if most == 1 and rows_per_unit == 1 else np.arange(0, rows + 1, rows_per_unit)
    return EncodedTable(codes, UNITS, starts, most)


def reported(table: EncodedTable, files: dict[str, bytes], forced: Any = None) -> Outputs:
    assert SPLIT is not None
    source = GivenTable(table, DOMAIN)
    plan = Plan((GaussianEvent("report_held_out", NOISE),))
    with heard(charged, accuracy, forced=forced) as outputs:
        charged.charged_report(
            ORDER,
            plan,
            SPLIT.training(source),
            SecureRandom(),
            files,
            PARSED,
            held_out=SPLIT.held_out(source),
        )
    return outputs


@pytest.mark.parametrize(("rows_per_unit", "most"), [(1, 1), (3, 3), (5, 2)])
def test_a_unit_moves_the_tables_or_the_answers(rows_per_unit: int, most: int, files: dict[str, bytes]) -> None:
    """(5, 2): a reader that promised two rows of each unit and gave five."""
    assert SPLIT is not None
    table = table_of(rows_per_unit, most)
    held_out = set(SPLIT.units(UNITS, held_out=True).tolist())
    full = reported(table, files)
    assert len(full.sums) == 2
    assert len(held_out) == UNITS // 2
    largest = [0.0, 0.0]
    for unit in range(UNITS):
        for neighbour in neighbours(table, unit):
            other = reported(neighbour, files, forced=full.noisy)
            moved = [squared_change(a, b) for a, b in zip(full.sums, other.sums, strict=True)]
            assert all(change == 0 for change in moved[0 if unit in held_out else 1])
            for place, (changes, private) in enumerate(zip(moved, full.sums, strict=True)):
                for change, sensitivity in zip(changes, private.sensitivities, strict=True):
                    assert change <= Fraction(sensitivity) ** 2
                    largest[place] = max(largest[place], float(change) / sensitivity**2)
    assert min(largest) > (0.99 if rows_per_unit == 1 else 0.3)  # the bounds are no wider than they must be


def test_each_side_has_the_noise_of_the_whole_event(files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Σ (sensitivity / std)² = 1/σ² for the tables, and the same for the answers."""
    spent = []
    for module in (charged, accuracy):
        real = module.release_counts

        def noted(private: Any, *, noise_stds: Any, real: Any = real, **how: Any) -> Any:
            spent.append(sum((c / s) ** 2 for c, s in zip(private.sensitivities, noise_stds, strict=True)))
            return real(private, noise_stds=noise_stds, **how)

        monkeypatch.setattr(module, "release_counts", noted)
    reported(table_of(1, 1), files)
    assert spent == pytest.approx([NOISE**-2] * 2)


def test_held_out_rows_are_those_of_the_order(files: dict[str, bytes]) -> None:
    source = GivenTable(table_of(1, 1), DOMAIN)
    for order, side in ((ORDER, None), (ORDER.model_copy(update={"report": None}), source)):
        with pytest.raises(ValueError, match="held-out units are those of the order"):
            charged.charged_report(order, Plan(()), source, SecureRandom(), files, PARSED, held_out=side)
