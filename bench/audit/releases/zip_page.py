"""Attacks on a generator that was downloaded as ZIP, by the owner of its rows: likelihood, exposure, nearest rows.

One release proves no ε: its rows are not independent runs. What is shown is what an adversary would see of these rows, beside the
same of rows that were not used, if there are any. The page is not private.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.tables.tables import read_frame
from service.domain.table_schema import parse_table_schema
from workers.reports.attacks import CHANCE, Attacked, Scored, area
from workers.reports.rows import modelled, rows_of

REFERENCE_ROWS = 100_000
SEED = 0


def page_of_zip(
    generator: Path, rows: Path, schema: Path, held_out: Path | None, *, reference_rows: int = REFERENCE_ROWS
) -> str:
    """Everything, as text."""
    declared = parse_table_schema(json.loads(schema.read_text("utf-8")))
    try:
        attacked = Attacked(generator.read_bytes(), declared)
    except ValueError as error:
        raise SystemExit(str(error)) from None
    random = np.random.default_rng(SEED)
    references = attacked.references(reference_rows, random, seed=SEED)

    def scored(file: Path) -> Scored:
        frame = modelled(read_frame(file, declared.modelled), declared)
        return attacked.scored(attacked.cells(rows_of(frame, attacked.domain)), references, random)

    found = {"rows": scored(rows)}
    if held_out is not None:
        found["held out"] = scored(held_out)
    exact = "exact" if attacked.has_density else "an estimate: a network has no components"
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
        found, half = area(own, other)
        lines.append(f"| {name} | {found:.3f} | {found - half:.3f} - {found + half:.3f} |")
    return [
        *lines,
        "",
        "0.5: no better than chance. Used and held-out rows must be split at random, or the difference is theirs.",
    ]
