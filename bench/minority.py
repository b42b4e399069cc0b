"""Classifiers by subgroup where a minority is larger or smaller: the training rows drawn anew so that one value has a wanted share of them.

    python -m bench.minority [--shared FOLDER] [--rows 10000] [--shares 0.3,0.5,0.7] [--epsilons 0.3,1] [--seeds 2]

Adult, whose protected field `sex` has two values: as many training rows each time, of them a wanted share with `Female`, drawn without
replacement; test rows are as they are. Classifiers learn from the real rows so drawn and from rows that `marginals` made of them, and are
tested on the same real rows. Writes bench/results/minority.md.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from bench.pages import keep
from bench.tables.methods import METHODS, Ask
from bench.tables.sources import source
from bench.tables.subgroups import MARK, PARITY, subgroup_scores
from bench.tables.tables import Table, codes_of, read_table

ROOT = Path(__file__).parents[1]
FIELD, MINORITY = "sex", "Female"
LEARNER = "GB"
DELTA = 1e-5
"""Of one release."""
FIGURES = ("accuracy", "AUROC", "TPR")

Scores = Mapping[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, default=ROOT / "shared" / "data")
    parser.add_argument("--rows", type=int, default=10_000, help="that are trained on")
    parser.add_argument("--shares", default="0.3,0.4,0.5,0.6,0.7", help="of the minority among them")
    parser.add_argument("--epsilons", default="0.3,1")
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = source("adult", Path(folder), asked.shared)
        if files is None:
            raise SystemExit(f"Adult is not in {asked.shared}")
        table = read_table(files.data, files.schema, None, files.test, None)
    lines = []
    for share in asked.shares.split(","):
        for line in lines_of(table, asked.rows, float(share), asked.epsilons.split(","), asked.seeds):
            print(line, flush=True)
            lines.append(line)
    keep("minority", page(lines, asked))


def lines_of(table: Table, rows: int, share: float, epsilons: Sequence[str], seeds: int) -> Iterator[str]:
    """The lines of one share: trained on real rows, then on synthetic rows at each ε with the gap to it."""
    drawn = [with_share(table, rows, share, seed) for seed in range(1, seeds + 1)]
    real = _mean([subgroup_scores(one.train_codes, one) for one in drawn])
    yield _line(share, "real rows", real, None)
    for epsilon in epsilons:
        found = [_synthetic(one, float(epsilon), seed) for seed, one in enumerate(drawn, start=1)]
        yield _line(share, f"marginals, ε = {epsilon}", _mean(found), real)


def with_share(table: Table, rows: int, share: float, seed: int) -> Table:
    """So many training rows of which the minority has this share; none is drawn twice."""
    is_minority = (table.train[FIELD] == MINORITY).fill_null(value=False).to_numpy()
    rng = np.random.default_rng(seed)
    wanted = round(share * rows)
    places = [
        rng.choice(np.flatnonzero(mask), number, replace=False)
        for mask, number in ((is_minority, wanted), (~is_minority, rows - wanted))
    ]
    return replace(table, train=table.train[rng.permutation(np.concatenate(places))])


def _synthetic(table: Table, epsilon: float, seed: int) -> Scores:
    frame, _ = METHODS["marginals"](Ask(table, epsilon, DELTA, len(table.train), seed, {}))
    assert isinstance(frame, pl.DataFrame)
    return subgroup_scores(codes_of(frame, table.domain), table)


def _mean(found: Sequence[Scores]) -> Scores:
    return {name: float(np.mean([one[name] for one in found])) for name in found[0]}


def _line(share: float, what: str, scores: Scores, real: Scores | None) -> str:
    names = [
        *(f"{LEARNER} {figure}{MARK}{FIELD}={value}" for value in (MINORITY, "Male") for figure in FIGURES),
        f"{LEARNER} {PARITY}{MARK}{FIELD}",
    ]
    cells = [f"{scores[name]:.3f}" + ("" if real is None else f" ({scores[name] - real[name]:+.3f})") for name in names]
    return f"| {share:.0%} | {what} | {' | '.join(cells)} |"


def page(lines: Sequence[str], asked: argparse.Namespace) -> str:
    heads = [f"{figure} of {value}" for value in (MINORITY, "Male") for figure in FIGURES]
    return "\n".join(
        [
            (
                f"{os.cpu_count()} cores; `python -m bench.minority --rows {asked.rows} --shares {asked.shares} --epsilons {asked.epsilons} "
                f"--seeds {asked.seeds}`; δ = {DELTA:g} of one release; draws of rows: {asked.seeds}."
            ),
            (
                f"Adult; boosted trees trained on {asked.rows:,} rows, of which {MINORITY} has the share in the first column, or on as many synthetic ones "
                "made of them; tested on the UCI test file. In brackets the gap to the same trained on the real rows of that share."
            ),
            "",
            f"| {MINORITY} | trained on | {' | '.join(heads)} | {PARITY} |",
            f"|---|---|{'---|' * (len(heads) + 1)}",
            *lines,
        ]
    )


if __name__ == "__main__":
    main()
