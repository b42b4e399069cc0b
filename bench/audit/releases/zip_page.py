"""Attacks on a generator that was downloaded as ZIP, by the owner of its rows: likelihood, exposure, nearest rows.

One release proves no ε: its rows are not independent runs. What is shown is what an adversary would see of these rows, beside the
same of rows that were not used, if there are any. The page is not private.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from sklearn.metrics import roc_auc_score

from bench.audit.releases.exposure import CHANCE, bits
from bench.tables.tables import codes_of, frame_of, read_frame
from service.domain.table_schema import TableSchema, parse_table_schema
from service.samples.density import Density, nearest_distances
from service.samples.table.hierarchies import HierarchyColumn
from service.samples.table.ranges import GridColumn
from service.samples.table.sampler import TableSampler
from workers.encoding.table import TableDomain

REFERENCE_ROWS = 100_000
NEAREST_OF = 2_000
"""Rows whose nearest synthetic ones are sought."""
SEED = 0


@dataclass(frozen=True)
class Scored:
    """What the attacks say of some rows."""

    log_p: np.ndarray
    over_independent: np.ndarray
    """Less log p if its columns were independent."""
    among_admissible: np.ndarray
    """Exposure, bits, among rows drawn evenly from what the declaration allows,"""
    among_own: np.ndarray
    """and among rows drawn from the generator."""
    nearest: np.ndarray
    """Gower distance to the nearest synthetic row, of the first rows."""


class Downloaded:
    """A published ZIP, and the rows that it is compared with."""

    def __init__(self, content: bytes, schema: TableSchema) -> None:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            config, network = json.loads(archive.read("config.json")), archive.read("generator.onnx")
        self.schema = schema.modelled
        self.density = Density(config, network)
        self._sampler = TableSampler.from_files(config, network)
        self.domain = TableDomain.from_schema(schema, numeric_bins=32)

    def cells(self, frame: Any) -> np.ndarray:
        """(rows, columns) codes of typed rows in the generator's own cells, which may have been found from counts."""
        coarse = codes_of(frame, self.domain)
        found = []
        for place, (column, declared) in enumerate(zip(self.density.columns, self.domain.columns, strict=True)):
            if isinstance(column, GridColumn):
                numbers, known = declared.numbers(frame[declared.name])
                own = column.drawn_of(numbers.to_numpy(), np.where(known.to_numpy(), 0, column.size - 1))
                found.append(column.code_of(own))
            elif isinstance(column, HierarchyColumn) or column.size != declared.size:
                raise SystemExit(
                    f"{column.name}: coarse and fine categories are not compared here, or the schema is not that of the ZIP"
                )
            else:
                found.append(coarse[:, place])
        return np.stack(found, axis=1).astype(np.int64)

    def admissible(self, rows: int) -> np.ndarray:
        """(rows, columns) cells, drawn evenly."""
        rng = np.random.default_rng(SEED)
        return np.stack([rng.integers(width, size=rows) for width in self.density.widths], axis=1)

    def own_rows(self, rows: int) -> np.ndarray:
        """(rows, columns) cells of synthetic rows."""
        columns: dict[str, list[Any]] = {name: [] for name in self._sampler.names}
        for chunk in self._sampler.chunks(rows, seed=SEED):
            for name, values in chunk.items():
                columns[name] += values
        return self.cells(frame_of(columns, self.schema))

    def references(self, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Log densities of even rows and of its own, which are given, too."""
        own = self.own_rows(rows)
        return self.density.of_cells(self.admissible(rows)), self.density.of_cells(own), own

    def scored(self, cells: np.ndarray, references: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Scored:
        """What the attacks say of these rows."""
        rng = np.random.default_rng(SEED)
        log_p, (admissible, own, synthetic) = self.density.of_cells(cells), references
        is_range = [isinstance(column, GridColumn) for column in self.density.columns]
        return Scored(
            log_p,
            log_p - self.density.of_independent_cells(cells),
            bits(log_p, admissible, rng),
            bits(log_p, own, rng),
            nearest_distances(cells[:NEAREST_OF], synthetic[:10_000], is_range=is_range, widths=self.density.widths),
        )


def page_of_zip(
    generator: Path, rows: Path, schema: Path, held_out: Path | None, *, reference_rows: int = REFERENCE_ROWS
) -> str:
    """Everything, as text."""
    declared = parse_table_schema(json.loads(schema.read_text("utf-8")))
    own = declared.modelled
    downloaded = Downloaded(generator.read_bytes(), declared)
    references = downloaded.references(reference_rows)
    found = {"rows": downloaded.scored(downloaded.cells(read_frame(rows, own)), references)}
    if held_out is not None:
        found["held out"] = downloaded.scored(downloaded.cells(read_frame(held_out, own)), references)
    exact = "exact" if downloaded.density.is_exact else "an estimate: a network has no components"
    lines = [
        "Not private: this page is about real rows. Do not publish it.",
        "",
        f"Log p is {exact}, of the cells of a row.",
        "",
        "| | rows | log p, mean | log p - log p of independent columns | exposure among admissible rows, bits | exposure among synthetic rows, bits | distance to the nearest synthetic row, mean | the same row |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
        *(_row(name, scored) for name, scored in found.items()),
        "",
        f"A row that is like a random one of those it is compared with has {CHANCE:.2f} bits on average.",
    ]
    if len(found) == 2:
        lines += ["", *_beside(found["rows"], found["held out"])]
    else:
        lines += [
            "",
            "Real rows are likelier than even ones in any case: give --held-out to see what is due to their having been used.",
        ]
    return "\n".join(lines)


def _row(name: str, scored: Scored) -> str:
    means = [scored.log_p, scored.over_independent, scored.among_admissible, scored.among_own, scored.nearest]
    finite = [float(one[np.isfinite(one)].mean()) for one in means]
    return (
        f"| {name} | {len(scored.log_p)} | "
        + " | ".join(f"{one:.2f}" for one in finite)
        + f" | {100 * (scored.nearest == 0).mean():.1f} % |"
    )


def _beside(used: Scored, others: Scored) -> Sequence[str]:
    """How well each score tells used rows from others."""
    lines = [
        "| score | AUC: a used row scores higher than one held out | its 95 % interval |",
        "|---|---:|---:|",
    ]
    for name, own, other in (
        ("log p", used.log_p, others.log_p),
        ("log p - log p of independent columns", used.over_independent, others.over_independent),
        ("nearness of the nearest synthetic row", -used.nearest, -others.nearest),
    ):
        area, half = _area(own, other)
        lines.append(f"| {name} | {area:.3f} | {area - half:.3f} - {area + half:.3f} |")
    return [
        *lines,
        "",
        "0.5: no better than chance. Used and held-out rows must be split at random, or the difference is theirs.",
    ]


def _area(used: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Area under the curve, and half of its interval (Hanley and McNeil 1982)."""
    scores = np.nan_to_num(np.concatenate([used, others]), neginf=-1e300)
    area = float(roc_auc_score(np.repeat([1, 0], [len(used), len(others)]), scores))
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    variance = (area * (1 - area) + (len(used) - 1) * (first - area**2) + (len(others) - 1) * (second - area**2)) / (
        len(used) * len(others)
    )
    return area, float(stats.norm.isf(0.025) * max(variance, 0.0) ** 0.5)
