"""Draws synthetic rows from a published table generator. Needs numpy and onnxruntime, nothing else.

    python sample.py --rows 1000
    python sample.py --rows 1000 --seed 7 --where "age>=65&sex=f" --format jsonl -o rows.jsonl
    python sample.py --rows 1000 --weights '{"income": {">50K": 0.5, "<=50K": 0.5}}'
    python sample.py --complete mine.csv -o completed.csv

A row: draw noise z ~ N(0, I) and, for a conditional generator, the value of its condition column. The network turns
them into logits, side by side for all columns. Each other column is one independent draw from the softmax of its own
logits. A drawn cell is a category or a bin of a public grid. In a bin the value is one that many rows share, as often
as config.json says, or a uniform one. A row that the schema excludes gets other values. A condition on a mixture is met
by drawing the component by its share times the chance of the condition (`ConditionalRows`). Rows are dealt random numbers
in blocks (`Dealt`), and rows of a mixture are chosen between two draws (`balance`), so that the tables of a sample vary
less than those of independent rows.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from service.samples.table.base import SamplingError
from service.samples.table.completing import rows_of_csv, rows_of_jsonl
from service.samples.table.sampler import TableSampler

WRITERS = {"csv": TableSampler.csv, "jsonl": TableSampler.jsonl}


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw synthetic rows from the generator beside this file.")
    parser.add_argument("--rows", type=int, default=1_000, help="how many rows (default 1000)")
    parser.add_argument("--seed", type=int, help="makes the draw repeatable; without it every draw is new")
    parser.add_argument(
        "--where",
        action="append",
        metavar="CONDITION",
        help='only such rows: "age>=65&sex=f", "rank in [1, 2]", "age not missing", "COLUMN:VALUE"; several must all be met',
    )
    parser.add_argument(
        "--weights", type=json.loads, metavar="JSON", help='how often values are drawn: {"sex": "uniform"}'
    )
    parser.add_argument(
        "--complete",
        type=Path,
        metavar="FILE",
        help="instead of new rows, yours (CSV or JSON lines) with what they lack",
    )
    parser.add_argument("--format", choices=list(WRITERS), default="csv")
    parser.add_argument("-o", "--output", type=Path, help="file to write (default: standard output)")
    arguments = parser.parse_args()
    folder = Path(__file__).resolve().parent
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    sampler = TableSampler.from_files(config, (folder / "generator.onnx").read_bytes())
    try:
        if arguments.complete is None:
            asked = {"seed": arguments.seed, "where": arguments.where, "weights": arguments.weights}
            pieces = WRITERS[arguments.format](sampler, arguments.rows, **asked)
        else:
            given = arguments.complete.read_bytes()
            rows = rows_of_jsonl(given) if arguments.complete.suffix == ".jsonl" else rows_of_csv(given)
            completed = list(sampler.completed(rows, seed=arguments.seed, as_spelled=True))
            pieces = {"csv": sampler.csv_of, "jsonl": sampler.jsonl_of}[arguments.format](completed)
        if arguments.output:
            with arguments.output.open("w", encoding="utf-8", newline="") as file:
                file.writelines(pieces)
        else:
            for piece in pieces:
                sys.stdout.buffer.write(piece.encode())
            sys.stdout.flush()
    except SamplingError as error:
        parser.error(str(error))
    except BrokenPipeError:  # the reader has seen enough, as in `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
